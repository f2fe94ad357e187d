#include "src/packer/op/infer.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "src/packer/error.h"
#include "src/packer/op/attributes.h"

namespace qplan::op {
namespace {

std::string float_text(float value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end) + "f";
}

std::string join(std::initializer_list<ir::DType> dtypes) {
  std::string text;
  for (const ir::DType dtype : dtypes) text += (text.empty() ? "" : ", ") + ir::to_string(dtype);
  return text;
}

bool contains(std::initializer_list<ir::DType> dtypes, ir::DType dtype) {
  return std::ranges::find(dtypes, dtype) != dtypes.end();
}

void check_qparam_type(const InferInput& input, size_t operand, ir::DType dtype, PerAxis per_axis) {
  const ir::TensorType& type = input.type(operand);
  const bool scalar = type.shape.empty();
  const bool vector = per_axis && type.shape == ir::Shape{*per_axis};
  if (type.dtype == dtype && (scalar || vector)) return;
  std::string expected = ir::to_string(dtype);
  if (per_axis) expected += " or " + ir::to_string(ir::TensorType{dtype, {*per_axis}});
  invalid(cat(operand_name(input, operand), " is ", type, ", expected ", expected));
}

}  // namespace

std::string to_text(const ir::Ints& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  return text + "]";
}

void invalid(const std::string& text) { throw PackError(QPLAN_MODEL_INVALID, text); }
void unsupported(const std::string& text) { throw PackError(QPLAN_MODEL_UNSUPPORTED, text); }

std::string operand_name(const InferInput& input, size_t operand) {
  const OpDef& op = *input.node.op;
  if (op.variadic) return cat("'", op.operands.at(0).name, "' ", operand);
  return cat("'", op.operands.at(operand).name, "'");
}

void check_rank(const InferInput& input, size_t operand, size_t rank) {
  const ir::TensorType& type = input.type(operand);
  if (type.shape.size() == rank) return;
  invalid(cat(operand_name(input, operand), " is ", type, ", expected rank ", rank));
}

void check_dtype(const InferInput& input, size_t operand, std::initializer_list<ir::DType> allowed) {
  const ir::DType dtype = input.type(operand).dtype;
  if (contains(allowed, dtype)) return;
  unsupported(cat("dtype ", dtype, " of ", operand_name(input, operand), " is not supported, expected ",
                  allowed.size() > 1 ? "one of " : "", join(allowed)));
}

void check_8_bit(const InferInput& input, size_t operand) {
  check_dtype(input, operand, {ir::kInt8, ir::kUint8});
}

void check_quantized(const InferInput& input, size_t operand) {
  check_dtype(input, operand, {ir::kInt8, ir::kUint8, ir::kInt16});
}

void check_same_dtype(const InferInput& input, size_t operand, size_t as) {
  const ir::DType found = input.type(operand).dtype, expected = input.type(as).dtype;
  if (found == expected) return;
  invalid(cat(operand_name(input, operand), " is ", found, ", expected ", expected, " as ",
              operand_name(input, as)));
}

ir::DType dtype_attr(const ir::Node& node, std::string_view name, std::initializer_list<ir::DType> allowed) {
  const std::string& text = attr_string(node, name);
  const std::optional<ir::DType> dtype = ir::dtype_from_string(text);
  if (!dtype) invalid(cat("attribute '", name, "' names an unknown dtype '", text, "'"));
  if (!contains(allowed, *dtype)) {
    unsupported(cat("attribute '", name, "' is ", *dtype, ", expected ", allowed.size() > 1 ? "one of " : "",
                    join(allowed)));
  }
  return *dtype;
}

const std::string& choice_attr(const ir::Node& node, std::string_view name,
                               std::initializer_list<std::string_view> allowed) {
  const std::string& value = attr_string(node, name);
  if (std::ranges::find(allowed, value) != allowed.end()) return value;
  std::string expected;
  for (const std::string_view choice : allowed) expected += cat(expected.empty() ? "'" : ", '", choice, "'");
  unsupported(cat("attribute '", name, "' is '", value, "', expected ", allowed.size() > 1 ? "one of " : "",
                  expected));
}

void check_contract(const ir::Node& node) {
  choice_attr(node, "contract", {"tfl2", "tfl1", "f32e", "pot", "acc32"});
}

ir::Shape matmul_shape(const InferInput& input) {
  const ir::Shape& a = input.type(0).shape;
  ir::Shape b = input.type(1).shape;
  if (a.size() < 2 || b.size() < 2)
    invalid(cat("operands are ", input.type(0), " and ", input.type(1), ", expected rank 2 or more"));
  if (attr_bool(input.node, "transpose_b")) std::swap(b[b.size() - 1], b[b.size() - 2]);
  if (a.back() != b[b.size() - 2]) {
    invalid(cat("matrices of ", a[a.size() - 2], " x ", a.back(), " and ", b[b.size() - 2], " x ", b.back(),
                " cannot be multiplied"));
  }
  ir::Shape shape = broadcast_shape({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
  shape.push_back(a[a.size() - 2]);
  shape.push_back(b.back());
  return shape;
}

const ir::Constant& constant_operand(const InferInput& input, size_t operand) {
  const ir::Value& value = input.function.value(input.node.operands.at(operand));
  if (value.kind == ir::ValueKind::kConstant) return *value.constant;
  const bool param = value.kind == ir::ValueKind::kParam;
  invalid(cat(operand_name(input, operand), " must be a constant, got ",
              param ? cat("parameter '", value.name, "'") : std::string("the result of a node"),
              "; fold or bind it first"));
}

void check_scale(const InferInput& input, size_t operand, PerAxis per_axis) {
  check_qparam_type(input, operand, ir::kFloat32, per_axis);
  for (const float scale : constant_operand(input, operand).as<float>()) {
    if (std::isfinite(scale) && scale > 0) continue;
    invalid(cat(operand_name(input, operand), " has a value ", float_text(scale),
                ", expected positive and finite"));
  }
}

void check_zero_point(const InferInput& input, size_t operand, ir::DType dtype, PerAxis per_axis) {
  check_qparam_type(input, operand, ir::kInt32, per_axis);
  for (const int32_t zero_point : constant_operand(input, operand).as<int32_t>()) {
    if (zero_point >= dtype.min() && zero_point <= dtype.max()) continue;
    invalid(cat(operand_name(input, operand), " has a value ", zero_point, ", outside of ", dtype));
  }
}

void check_qparams(const InferInput& input, size_t operand, ir::DType dtype, PerAxis per_axis) {
  check_scale(input, operand, per_axis);
  check_zero_point(input, operand + 1, dtype, per_axis);
}

PerAxis per_axis_extent(const InferInput& input, size_t operand, const ir::TensorType& data) {
  if (input.type(operand).shape.empty() && input.type(operand + 1).shape.empty()) return std::nullopt;
  const int64_t axis = normalized_axis(attr_int(input.node, "axis"), data.shape.size());
  return data.shape[static_cast<size_t>(axis)];
}

}  // namespace qplan::op
