#include "src/packer/import/onnx/op_context.h"

#include <algorithm>
#include <cmath>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/evaluate.h"

namespace qplan::onnx {
namespace {

// Axes, extents, positions: some per dimension. A Split may have many.
constexpr int64_t kMaxInts = 4096;

ir::ConstantRef cast(const ir::ConstantRef& constant, ir::DType dtype) {
  if (constant->type().dtype == dtype) return constant;
  ir::Node node;
  node.op = &op::get_op("cast");
  node.attrs.set("dtype", ir::to_string(dtype));
  const auto results = op::evaluate(node, std::span(&constant, 1));
  if (!results) invalid("a constant is too large to compute with");
  return results->front();
}

// The same elements under another shape.
ir::ConstantRef reshaped(const ir::ConstantRef& constant, const ir::Shape& shape) {
  if (constant->type().shape == shape) return constant;
  const auto bytes = constant->bytes();
  return std::make_shared<const ir::Constant>(ir::TensorType{constant->type().dtype, shape},
                                              std::vector<uint8_t>(bytes.begin(), bytes.end()));
}

std::string name_of(const NodeInfo& node, size_t index) {
  if (!node.name.empty()) return clean_name(node.name);
  for (const std::string& output : node.outputs) {
    if (!output.empty()) return clean_name(output);
  }
  return clean_name(node.op_type) + "_" + std::to_string(index);
}

}  // namespace

ir::ConstantRef scalar_of(double value, ir::DType dtype) {
  return cast(ir::make_constant<double>(ir::kFloat64, {}, {value}), dtype);
}

std::vector<double> numbers_of(const ir::Constant& constant) {
  const auto bytes = constant.bytes();
  const auto copy =
      std::make_shared<const ir::Constant>(constant.type(), std::vector<uint8_t>(bytes.begin(), bytes.end()));
  const ir::ConstantRef doubles = cast(copy, ir::kFloat64);
  const auto values = doubles->as<double>();
  return {values.begin(), values.end()};
}

OpContext::OpContext(Graph& graph, const NodeInfo& node, size_t index, int64_t opset)
    : graph_(graph),
      node_(node),
      name_(name_of(node, index)),
      opset_(opset),
      read_(node.attributes.size(), false) {}

void OpContext::warn(const std::string& text) const {
  if (graph_.log()) {
    graph_.log()(QPLAN_LOG_WARNING,
                 "onnx: " + clean_name(node_.op_type) + " " + in_quotes(name_) + ": " + text);
  }
}

void OpContext::expect_counts(size_t min_inputs, size_t max_inputs, size_t max_outputs) const {
  if (num_inputs() < min_inputs || num_inputs() > max_inputs) {
    invalid(cat("the node has ", num_inputs(), " inputs, expected ", min_inputs,
                min_inputs == max_inputs ? "" : cat(" to ", max_inputs)));
  }
  for (size_t i = 0; i < min_inputs; ++i) quantised_input(i);
  if (!has_output(0)) invalid("the node has no output");
  for (size_t i = max_outputs; i < num_outputs(); ++i) {
    if (has_output(i) && graph_.is_read(node_.outputs[i])) {
      throw Unsupported{cat("output ", i + 1, " in use")};
    }
  }
}

const Value& OpContext::quantised_input(size_t i) const {
  if (!has_input(i)) invalid(cat("input ", i, " is absent"));
  return graph_.value(node_.inputs[i]);
}

const Value& OpContext::input(size_t i) const {
  const Value& value = quantised_input(i);
  if (value.is_shifted) throw Unsupported{"uint16 data, which only DequantizeLinear may read"};
  return value;
}

ir::ConstantRef OpContext::constant(size_t i, const std::string& what) const {
  const Value& value = input(i);
  if (value.is_constant()) return value.constant;
  const ir::Value& found = graph_.function().value(value.id);
  const bool is_input = found.kind == ir::ValueKind::kParam;
  throw Unsupported{what + " that are not constant" +
                    (is_input ? ", but input " + in_quotes(found.name) + " (--bind gives it a value)" : "")};
}

std::vector<int64_t> OpContext::ints(size_t i, const std::string& what) const {
  const ir::ConstantRef found = constant(i, what);
  const ir::TensorType& type = found->type();
  if (type.dtype != ir::kInt32 && type.dtype != ir::kInt64) {
    invalid(cat(what, " are ", type, ", expected int32 or int64"));
  }
  if (type.num_elements() > kMaxInts) invalid(cat(what, " are ", type.num_elements(), " values"));
  if (type.dtype == ir::kInt32) {
    const auto narrow = found->as<int32_t>();
    return {narrow.begin(), narrow.end()};
  }
  const auto wide = found->as<int64_t>();
  return {wide.begin(), wide.end()};
}

QParams OpContext::qparams(size_t scale_input, size_t zero_point_input) const {
  QParams params;
  params.scale = constant(scale_input, "scales");
  const ir::TensorType& type = params.scale->type();
  if (type.shape.size() > 1) throw Unsupported{"scales in blocks"};
  if (type.dtype != ir::kFloat32) throw Unsupported{ir::to_string(type.dtype) + " scales"};
  if (type.num_elements() == 0) invalid("there is no scale");
  const bool one = type.num_elements() == 1;
  params.scale = reshaped(params.scale, one ? ir::Shape{} : type.shape);
  if (!has_input(zero_point_input)) {
    params.zero_point = ir::make_scalar(int32_t{0});
    return params;
  }
  const ir::ConstantRef zero_point = widened(constant(zero_point_input, "zero points"));
  const int64_t count = zero_point->type().num_elements();
  if (zero_point->type().shape.size() > 1) throw Unsupported{"zero points in blocks"};
  if (count != type.num_elements() && count != 1) {
    invalid(cat("there are ", count, " zero points, but ", type.num_elements(), " scales"));
  }
  const ir::DType dtype = zero_point->type().dtype;
  if (dtype.is_float() || dtype.bits > 32) throw Unsupported{ir::to_string(dtype) + " zero points"};
  // Nodes may share what each of them turns into int32.
  if (count > 1 && dtype != ir::kInt32) graph_.charge(static_cast<uint64_t>(count) * sizeof(int32_t));
  params.zero_point = cast(reshaped(zero_point, count == 1 ? ir::Shape{} : ir::Shape{count}), ir::kInt32);
  return params;
}

QParams OpContext::per_tensor_qparams(size_t i) const {
  QParams params = qparams(i);
  if (params.per_axis() || !params.zero_point->type().shape.empty()) {
    throw Unsupported{"per-channel quantisation of activations"};
  }
  return params;
}

ir::ConstantRef OpContext::widened(const ir::ConstantRef& constant) const {
  const ir::TensorType& type = constant->type();
  if (type.dtype.bits != 4) return constant;
  const bool is_signed = type.dtype == ir::kInt4;
  const int64_t count = type.num_elements();
  graph_.charge(static_cast<uint64_t>(count));
  return std::make_shared<const ir::Constant>(ir::TensorType{is_signed ? ir::kInt8 : ir::kUint8, type.shape},
                                              ir::widened_4_bits(constant->bytes(), count, is_signed));
}

ir::DType OpContext::zero_point_dtype(size_t i) const {
  return has_input(i) ? type(input(i)).dtype : ir::kUint8;
}

const Attribute* OpContext::find_attr(std::string_view name) const {
  for (size_t i = 0; i < node_.attributes.size(); ++i) {
    if (node_.attributes[i].name != name) continue;
    read_[i] = true;
    return &node_.attributes[i];
  }
  return nullptr;
}

const Attribute* OpContext::find_attr(std::string_view name, AttributeKind kind) const {
  const Attribute* found = find_attr(name);
  if (found != nullptr && found->kind != kind) {
    invalid(cat("attribute '", name, "' has another type than the operator's"));
  }
  return found;
}

int64_t OpContext::attr_int(std::string_view name, int64_t fallback) const {
  const Attribute* found = find_attr(name, AttributeKind::kInt);
  return found == nullptr ? fallback : found->i;
}

float OpContext::attr_float(std::string_view name, float fallback) const {
  const Attribute* found = find_attr(name, AttributeKind::kFloat);
  const float value = found == nullptr ? fallback : found->f;
  if (std::isnan(value)) invalid(cat("attribute '", name, "' is not a number"));
  return value;
}

std::string OpContext::attr_string(std::string_view name, std::string_view fallback) const {
  const Attribute* found = find_attr(name, AttributeKind::kString);
  return found == nullptr ? std::string(fallback) : found->s;
}

std::optional<ir::Ints> OpContext::attr_ints(std::string_view name) const {
  const Attribute* found = find_attr(name);
  if (found == nullptr) return std::nullopt;
  // An empty list may be written without its type.
  if (found->kind != AttributeKind::kInts && !(found->kind == AttributeKind::kOther && found->ints.empty())) {
    invalid(cat("attribute '", name, "' has another type than the operator's"));
  }
  if (static_cast<int64_t>(found->ints.size()) > kMaxInts) {
    invalid(cat("attribute '", name, "' has ", found->ints.size(), " values"));
  }
  return found->ints;
}

const std::vector<Attribute>& OpContext::all_attributes() const {
  read_.assign(read_.size(), true);
  return node_.attributes;
}

void OpContext::refuse_unread_attributes() const {
  for (size_t i = 0; i < read_.size(); ++i) {
    if (!read_[i]) throw Unsupported{"attribute " + in_quotes(node_.attributes[i].name)};
  }
}

int64_t OpContext::axis_of(int64_t axis, size_t rank) {
  const auto extent = static_cast<int64_t>(rank);
  if (axis < -extent || axis >= extent) invalid(cat("axis ", axis, " is out of range for rank ", rank));
  return axis < 0 ? axis + extent : axis;
}

std::vector<Value> OpContext::emit_many(std::string_view op, const std::vector<Value>& operands,
                                        ir::Attrs attrs) const {
  return graph_.emit(op, operands, std::move(attrs), name_);
}

Value OpContext::emit(std::string_view op, const std::vector<Value>& operands, ir::Attrs attrs) const {
  return emit_many(op, operands, std::move(attrs)).front();
}

Value OpContext::reshape(const Value& value, const ir::Shape& new_shape) const {
  if (shape(value) == new_shape) return value;
  return emit("reshape", {value}, {{"newshape", new_shape}});
}

Value taken(const OpContext& op, const Value& data, size_t axis, const ir::Ints& positions) {
  bool identity = static_cast<int64_t>(positions.size()) == op.shape(data)[axis];
  for (size_t i = 0; identity && i < positions.size(); ++i)
    identity = positions[i] == static_cast<int64_t>(i);
  if (identity) return data;
  return op.emit("take", {data, make_vector(ir::kInt64, positions)}, {{"axis", static_cast<int64_t>(axis)}});
}

Value OpContext::quantize(const Value& data, const QParams& params, ir::DType dtype, int64_t axis) const {
  ir::Attrs attrs{{"out_dtype", ir::to_string(dtype)}, {"contract", std::string("f32e")}};
  if (axis >= 0 && params.per_axis()) attrs.set("axis", axis);
  return emit("qnn.quantize", {data, params.scale, params.zero_point}, std::move(attrs));
}

Value OpContext::dequantize(const Value& data, const QParams& params, int64_t axis) const {
  ir::Attrs attrs{{"contract", std::string("f32e")}};
  if (axis >= 0 && params.per_axis()) attrs.set("axis", axis);
  return emit("qnn.dequantize", {data, params.scale, params.zero_point}, std::move(attrs));
}

void OpContext::define(size_t output, Value value) const {
  if (!has_output(output)) return;
  const std::string name = clean_name(node_.outputs[output]);
  if (value.is_constant()) {
    value.name = name;
  } else {
    const ir::Value& known = graph_.function().value(value.id);
    if (known.kind == ir::ValueKind::kResult && known.name.empty()) {
      graph_.function().set_value_name(value.id, name);
    }
  }
  graph_.define(node_.outputs[output], std::move(value));
}

namespace {

constexpr ImportRow kRows[] = {
#define QPLAN_ONNX_OP(domain, name, oldest, newest, function) {domain, #name, oldest, newest, function},
#include "src/packer/import/onnx/ops.def"
#undef QPLAN_ONNX_OP
};

}  // namespace

std::span<const ImportRow> rows() { return kRows; }

const ImportRow* find_row(std::string_view domain, std::string_view op_type) {
  for (const ImportRow& row : kRows) {
    if (row.domain == domain && row.op_type == op_type) return &row;
  }
  return nullptr;
}

namespace {

// Weights are a few nodes away from their constants; what is further is counted as data.
bool is_made_of_constants(const ir::Function& function, ir::ValueId value, int32_t depth) {
  if (function.is_constant(value)) return true;
  const ir::Value& known = function.value(value);
  if (known.kind != ir::ValueKind::kResult || depth == 0) return false;
  return std::ranges::all_of(function.nodes()[known.producer].operands, [&](ir::ValueId operand) {
    return is_made_of_constants(function, operand, depth - 1);
  });
}

}  // namespace

bool depends_on_constants(const OpContext& op, const Value& value) {
  constexpr int32_t kMaxDepth = 6;
  return value.is_constant() || is_made_of_constants(op.graph().function(), value.id, kMaxDepth);
}

}  // namespace qplan::onnx
