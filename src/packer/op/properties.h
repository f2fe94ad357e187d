// Questions about operators that several passes ask. Each is answered from the OpDef alone; where `op` is
// null (a call of a function), nothing holds.
#ifndef QPLAN_SRC_PACKER_OP_PROPERTIES_H_
#define QPLAN_SRC_PACKER_OP_PROPERTIES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/op/op_def.h"

namespace qplan::op {

// The attribute with the role; null if the operator has no such attribute.
const AttrDef* attr_with(const OpDef* op, AttrRole role);
inline bool has_contract(const OpDef* op) { return attr_with(op, AttrRole::kContract) != nullptr; }

// The first operand with the role.
std::optional<size_t> operand_with(const OpDef& op, OperandRole role);
// Scale and zero point of a tensor (an operand's index, or kResult); nullopt: the operator has none for it.
std::optional<size_t> scale_of(const OpDef& op, size_t tensor);
std::optional<size_t> zero_point_of(const OpDef& op, size_t tensor);
// The operands with OperandRole::kData; all of a variadic operator's.
std::vector<size_t> data_operands(const ir::Node& node);
size_t num_data_operands(const OpDef& op);  // as written: 1 for a variadic operator

// A convolution or fully connected layer, on floats or on 8 bits.
bool is_product(const OpDef* op);
bool is_quantized_product(const OpDef* op);
bool is_float_product(const OpDef* op);
// Between floats and their 8-bit form: qnn.quantize, qnn.dequantize.
bool is_float_border(const OpDef* op);
// It has an attribute for its results' dtype, and their scale and zero point among its operands:
// qnn.quantize, qnn.requantize.
bool chooses_dtype(const OpDef* op);
// A result of one tensor whose elements are some of its elements, chosen by place or by order: applying a
// monotone function to all elements before or after is the same. A kDataValue among the operands takes part.
bool chooses_elements(const OpDef* op);
// A result of two tensors whose elements are one or the other of theirs, by order: maximum, minimum. Applying
// a monotone function to both before, or to the result after, is the same.
bool chooses_between(const OpDef* op);
// A function of real numbers, one by one, that can be evaluated: chains of these are tables where the data
// has 8 bits.
bool is_real_function(const OpDef* op);
// Results on the same grid as the data: io's scale and zero point pass from one to the other.
bool passes_quantization(const OpDef* op);
// The rate by which the operator's time is estimated, whatever its attributes.
Work work_of(const OpDef* op);

// The name without its dialect: "conv2d" of "nn.conv2d".
std::string_view plain_name(const OpDef& op);
// The names of the operators that have the property, in the order of ops.def: for patterns.
std::vector<std::string> names_where(bool (*property)(const OpDef* op));

// Which scale of an accumulator is meant: a convolution's or fully connected layer's requantisation carries
// one, and the product of the layer's scales is another. Sources print or round the first one
// (docs/numerics.md, "Scales").

// Relative distance from `given` up to which it is the product, rounded.
inline constexpr double kScaleTolerance = 1e-5;

// Both positive. True: the product is meant.
inline bool means_product(double given, double product) {
  const double distance = given - product, tolerance = kScaleTolerance * given;
  return distance <= tolerance && -distance <= tolerance;
}

}  // namespace qplan::op

#endif  // QPLAN_SRC_PACKER_OP_PROPERTIES_H_
