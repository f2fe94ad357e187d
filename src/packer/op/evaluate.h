// Operators on constants without a kernel: shape arithmetic, the float operators between dequantise and
// quantise, movement of elements of any dtype. The same bits on every host: basic operations of IEEE 754 are
// rounded one by one in the result's dtype, functions come from own double arithmetic, a NaN
// that is computed is the positive quiet one. Integers wrap; integer division truncates and refuses 0. Linear
// in the bytes of operands and results.
#ifndef QPLAN_SRC_PACKER_OP_EVALUATE_H_
#define QPLAN_SRC_PACKER_OP_EVALUATE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/packer/op/op_def.h"

namespace qplan::op {

using Operands = std::span<const ir::ConstantRef>;
using Results = std::vector<ir::ConstantRef>;

// A broadcast or a chain of concatenations in a small file could ask for any size.
inline constexpr int64_t kMaxEvaluatedBytes = int64_t{256} << 20;

// The node's results for these contents of its operands (the node's own operands are not looked at). nullopt:
// the operator has no evaluation, or its results take more than kMaxEvaluatedBytes. PackError naming the node
// where the operands or attributes are wrong, an index is out of range, or an integer is divided by 0.
std::optional<Results> evaluate(const ir::Node& node, Operands operands);

// The types of the results; PackError as infer_types.
std::vector<ir::TensorType> result_types(const ir::Node& node, Operands operands);

// OpDef::function of a float operator with one operand, for tables and constants: nn.relu, sigmoid, tanh,
// sqrt, ... with the node's attributes. NaN and infinities are those of the mathematical function's limits.
double unary_function(const ir::Node& node, double x);

// OpDef::evaluate of the operators.
Results evaluate_unary(const ir::Node& node, Operands operands);
Results evaluate_binary(const ir::Node& node, Operands operands);     // arithmetic and comparisons
Results evaluate_reduction(const ir::Node& node, Operands operands);  // mean, sum, prod, max, min
Results evaluate_where(const ir::Node& node, Operands operands);
Results evaluate_clip(const ir::Node& node, Operands operands);
Results evaluate_cast(const ir::Node& node, Operands operands);
Results evaluate_softmax(const ir::Node& node, Operands operands);
Results evaluate_reshape(const ir::Node& node,
                         Operands operands);  // whatever keeps the order of the elements
Results evaluate_transpose(const ir::Node& node, Operands operands);
Results evaluate_concatenate(const ir::Node& node, Operands operands);
Results evaluate_split(const ir::Node& node, Operands operands);
Results evaluate_strided_slice(const ir::Node& node, Operands operands);
Results evaluate_take(const ir::Node& node, Operands operands);

// Functions of one real in double, without libm: the same bits on every host. NaN gives NaN, infinities the
// limits.
double exp_function(double x);
double sigmoid_function(double x);  // 1 / (1 + exp(-x))
double tanh_function(double x);
double log_function(double x);  // natural
double erf_function(double x);
double exp_less_one_function(double x);
// The sine of x + quarters * pi/2; NaN from 2^30 on.
double sine_function(double x, uint32_t quarters);
double round_half_even(double x);

// The nearest float32, infinity beyond its range.
float to_float32(double x);

}  // namespace qplan::op

#endif  // QPLAN_SRC_PACKER_OP_EVALUATE_H_
