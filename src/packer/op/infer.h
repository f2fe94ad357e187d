// What the files that define operators share: parts of their rows, refusals, and checks of dtypes, axes and
// quantisation constants. A refusal's text begins after the node's name, which infer_types puts in front.
#ifndef QPLAN_SRC_PACKER_OP_INFER_H_
#define QPLAN_SRC_PACKER_OP_INFER_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"

namespace qplan::op {

// One function per operator of ops.def: op_def.cc calls them to build the table, the family files define
// them.
namespace list {
#define QPLAN_OP(function) OpDef function();
#include "src/packer/op/ops.def"
#undef QPLAN_OP
}  // namespace list

// ---- parts of rows ----

inline AttrDef with_role(AttrRole role, AttrDef attr) {
  attr.role = role;
  return attr;
}
inline AttrDef axis_attr(ir::AttrValue fallback, AttrKind kind = AttrKind::kInt) {
  return {.name = "axis", .kind = kind, .fallback = std::move(fallback), .role = AttrRole::kAxis};
}
inline AttrDef contract_attr() {
  return {.name = "contract", .kind = AttrKind::kString, .fallback = "tfl2", .role = AttrRole::kContract};
}
inline OperandDef scale(std::string name, size_t tensor) {
  return {.name = std::move(name), .role = OperandRole::kScale, .of = tensor, .dtype = ir::kFloat32};
}
inline OperandDef zero_point(std::string name, size_t tensor) {
  return {.name = std::move(name), .role = OperandRole::kZeroPoint, .of = tensor, .dtype = ir::kInt32};
}
// Data, then scale and zero point of the data and of the result.
inline std::vector<OperandDef> quantized_unary(std::string data_scale = "input_scale",
                                               std::string data_zero_point = "input_zero_point") {
  return {{"data"},
          scale(std::move(data_scale), 0),
          zero_point(std::move(data_zero_point), 0),
          scale("output_scale", kResult),
          zero_point("output_zero_point", kResult)};
}
// An operator that moves the elements of its first operand.
inline OpDef moving(std::string name, Movement movement, std::vector<AttrDef> attrs) {
  return {.name = std::move(name),
          .operands = {{"data"}},
          .attrs = std::move(attrs),
          .kind = OpKind::kMovement,
          .movement = movement,
          .quantization = Quantization::kShared,
          .keeps_dtype = true};
}

// ---- inference ----

// The dtypes that arithmetic on constants knows (evaluate.h); all have at least 8 bits, bool among them.
inline constexpr std::initializer_list<ir::DType> kArithmetic = {
    ir::kInt8,  ir::kUint8,  ir::kInt16,   ir::kUint16,  ir::kInt32, ir::kUint32,
    ir::kInt64, ir::kUint64, ir::kFloat32, ir::kFloat64, ir::kBool};

std::string to_text(const ir::Ints& values);  // "[1, 2]"

// The shape of a product of matrices [..., m, k] and [..., k, n] (operands 0 and 1), whose second is
// [..., n, k] where attribute `transpose_b` says so.
ir::Shape matmul_shape(const InferInput& input);

[[noreturn]] void invalid(const std::string& text);      // PackError, QPLAN_MODEL_INVALID
[[noreturn]] void unsupported(const std::string& text);  // PackError, QPLAN_MODEL_UNSUPPORTED

// `'weight'`: the operand's name for messages.
std::string operand_name(const InferInput& input, size_t operand);

void check_rank(const InferInput& input, size_t operand, size_t rank);
void check_dtype(const InferInput& input, size_t operand, std::initializer_list<ir::DType> allowed);
void check_8_bit(const InferInput& input, size_t operand);      // int8, uint8
void check_quantized(const InferInput& input, size_t operand);  // int8, uint8, int16
void check_same_dtype(const InferInput& input, size_t operand, size_t as);
// The dtype that a string attribute names, one of the allowed.
ir::DType dtype_attr(const ir::Node& node, std::string_view name, std::initializer_list<ir::DType> allowed);
// The string attribute, one of the allowed; another is unsupported.
const std::string& choice_attr(const ir::Node& node, std::string_view name,
                               std::initializer_list<std::string_view> allowed);
void check_contract(const ir::Node& node);

// OpDef::complete of operators with a layout: takes away Relay's `out_layout` where it is the operator's own
// layout, or empty, which means the same. Any other is unsupported.
void complete_out_layout(ir::Function* function, ir::Node* node);

// The contents of an operand that must be a constant.
const ir::Constant& constant_operand(const InferInput& input, size_t operand);

// Along which extent quantisation constants may vary; without a value they are scalars.
using PerAxis = std::optional<int64_t>;
// A float32 constant, positive and finite; a scalar, or as many values as per_axis says.
void check_scale(const InferInput& input, size_t operand, PerAxis per_axis = std::nullopt);
// An int32 constant whose values lie in the range of the dtype; a scalar, or as many values as per_axis says.
void check_zero_point(const InferInput& input, size_t operand, ir::DType dtype,
                      PerAxis per_axis = std::nullopt);
// Both, scale at `operand` and zero point after it.
void check_qparams(const InferInput& input, size_t operand, ir::DType dtype, PerAxis per_axis = std::nullopt);
// The extent of the data's axis that attribute `axis` names, when the constants at `operand` (scale) or after
// it (zero point) are per axis; no value when both are scalars (then the axis means nothing and is not
// checked).
PerAxis per_axis_extent(const InferInput& input, size_t operand, const ir::TensorType& data);

}  // namespace qplan::op

#endif  // QPLAN_SRC_PACKER_OP_INFER_H_
