// QuantizeLinear, DequantizeLinear, of ONNX and of ONNX Runtime's own domain: float32 arithmetic, halves to
// even.
#include <limits>

#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

// The axis of per-channel scales, which counts only where there are several.
int64_t axis_attr(const OpContext& op, const Value& data, const QParams& params) {
  const int64_t axis = op.attr_int("axis", 1);
  if (op.attr_int("block_size", 0) != 0) throw Unsupported{"quantisation in blocks"};
  if (!params.per_axis()) return -1;
  return OpContext::axis_of(axis, op.shape(data).size());
}

// Networks with 16 bits unsigned, as QNN's tools write them, are computed on int16: q - 2^15 has the same
// real value where the zero point is 2^15 less, and both saturate together.
constexpr int32_t kShift = 1 << 15;

QParams shifted_down(const OpContext& op, QParams params) {
  std::vector<int32_t> zero_points(params.zero_point->as<int32_t>().begin(),
                                   params.zero_point->as<int32_t>().end());
  op.graph().charge(zero_points.size() * sizeof(int32_t));
  for (int32_t& zero_point : zero_points) zero_point -= kShift;
  params.zero_point = ir::make_constant(ir::kInt32, params.zero_point->type().shape, zero_points);
  return params;
}

Value shifted_down(const OpContext& op, const ir::ConstantRef& data) {
  std::vector<int16_t> values;
  op.graph().charge(data->bytes().size());
  for (const uint16_t value : data->as<uint16_t>())
    values.push_back(static_cast<int16_t>(static_cast<int32_t>(value) - kShift));
  return ir::make_constant(ir::kInt16, data->type().shape, values);
}

}  // namespace

// The scale and the zero point that the data itself gives, in float32 arithmetic that the network computes
// while it runs.
namespace {

// The largest element, as a scalar: two maximum pools, along all axes but the last, then along that.
Value largest(const OpContext& op, const Value& data) {
  const auto pool = [&](const Value& value, int64_t rows, int64_t channels) {
    return op.emit("nn.max_pool2d", {op.reshape(value, {1, rows, 1, channels})},
                   {{"pool_size", ir::Ints{rows, 1}}, {"layout", std::string("NHWC")}});
  };
  const ir::Shape& shape = op.shape(data);
  const int64_t channels = shape.empty() ? 1 : shape.back();
  const Value of_channels = pool(data, op.type(data).num_elements() / channels, channels);
  return op.reshape(pool(of_channels, channels, 1), {});
}

}  // namespace

DynamicallyQuantized dynamically_quantized(const OpContext& op, const Value& x) {
  if (op.type(x).dtype != ir::kFloat32) throw Unsupported{ir::to_string(op.type(x).dtype) + " data"};
  const auto number = [](float value) { return Value{ir::make_scalar(value)}; };
  if (op.type(x).num_elements() == 0) throw Unsupported{"data without elements"};
  // Both are not negative: the range has 0 in it.
  const Value high = op.emit("maximum", {largest(op, x), number(0)});
  const Value low = op.emit("maximum", {largest(op, op.emit("negative", {x})), number(0)});
  const Value range = op.emit("add", {high, low});
  // 1 where the range is empty.
  const Value scaled = op.emit("multiply", {range, number(std::numeric_limits<float>::max())});
  const Value is_empty = op.emit("subtract", {number(1), op.emit("minimum", {scaled, number(1)})});
  const Value scale = op.emit("add", {op.emit("divide", {range, number(255)}), is_empty});
  const auto held = [&](const Value& value) {
    return op.emit("clip", {value}, {{"a_min", 0.0}, {"a_max", 255.0}});
  };
  const Value zero_point = op.emit("round", {held(op.emit("divide", {low, scale}))});
  const Value quotient = op.emit("round", {op.emit("divide", {x, scale})});
  const auto as_uint8 = [&](const Value& value) {
    return op.emit("cast", {value}, {{"dtype", std::string("uint8")}});
  };
  return {as_uint8(held(op.emit("add", {quotient, zero_point}))), scale, as_uint8(zero_point)};
}

void import_dynamic_quantize_linear(const OpContext& op) {
  op.expect_counts(1, 1, 3);
  const DynamicallyQuantized quantized = dynamically_quantized(op, op.input(0));
  op.define(0, quantized.data);
  op.define(1, quantized.scale);
  op.define(2, quantized.zero_point);
}

void import_quantize_linear(const OpContext& op) {
  op.expect_counts(2, 3);
  const Value& data = op.input(0);
  const QParams params = op.qparams(1);
  const int64_t axis = axis_attr(op, data, params);
  op.attr_int("saturate", 1);  // means something for float8 only
  if (op.attr_int("precision", 1) > 1) throw Unsupported{"another precision than float32"};
  const int64_t named = op.attr_int("output_dtype", 0);
  if (named < 0 || named > INT32_MAX) invalid(cat("attribute 'output_dtype' is ", named));
  const auto named_type = static_cast<int32_t>(named);
  ir::DType dtype = op.zero_point_dtype(2);
  if (named != 0) {
    const std::optional<ir::DType> found = ir_dtype(named_type);
    if (!found) throw Unsupported{type_name(named_type) + " output"};
    if (op.has_input(2) && dtype != *found) {
      invalid(cat("attribute 'output_dtype' is ", *found, ", but the zero point is ", dtype));
    }
    dtype = *found;
  }
  if (dtype == ir::kUint16) {
    Value shifted = op.quantize(data, shifted_down(op, params), ir::kInt16, axis);
    shifted.is_shifted = true;
    return op.define(0, std::move(shifted));
  }
  if (dtype != ir::kInt8 && dtype != ir::kUint8 && dtype != ir::kInt16 && dtype != ir::kInt32) {
    throw Unsupported{cat(dtype, " output; expected 8 or 16 bits")};
  }
  op.define(0, op.quantize(data, params, dtype, axis));
}

namespace {

// (data - zero point) * scale, in arithmetic on numbers, of data with one of both for each index of the axis.
Value dequantized_along(const OpContext& op, const Value& data, const QParams& params, int64_t axis) {
  const size_t rank = op.shape(data).size();
  ir::Shape shape;  // of the parameters
  if (params.per_axis()) {
    shape.resize(rank - static_cast<size_t>(OpContext::axis_of(axis, rank)), 1);
    shape[0] = params.scale->type().num_elements();
  }
  const Value wide =
      op.type(data).dtype == ir::kInt32 ? data : op.emit("cast", {data}, {{"dtype", std::string("int32")}});
  const Value zero_points = params.zero_point->type().shape.empty() ? Value{params.zero_point}
                                                                    : op.reshape(params.zero_point, shape);
  const Value steps = op.emit("subtract", {wide, zero_points});
  const Value reals = op.emit("cast", {steps}, {{"dtype", std::string("float32")}});
  return op.emit("multiply", {reals, op.reshape(params.scale, shape)});
}

}  // namespace

void import_dequantize_linear(const OpContext& op) {
  op.expect_counts(2, 3);
  Value data = op.quantised_input(0);
  const ir::DType dtype = data.is_shifted ? ir::kUint16 : op.type(data).dtype;
  const int64_t named = op.attr_int("output_dtype", 0);
  if (named != 0 && named != 1) throw Unsupported{"another output type than float32"};
  if (const int64_t block = op.attr_int("block_size", 0); block != 0)
    return op.define(0, dequantized_in_blocks(op, op.attr_int("axis", 1), block));
  QParams params = op.qparams(1);
  const int64_t axis = axis_attr(op, data, params);
  if (op.has_input(2) && op.zero_point_dtype(2) != dtype) {
    invalid(cat("the data is ", dtype, ", but the zero point is ", op.zero_point_dtype(2)));
  }
  if (dtype == ir::kUint16 && (data.is_shifted || data.is_constant())) {
    params = shifted_down(op, params);
    if (!data.is_shifted) data = shifted_down(op, data.constant);
  }
  // No kernel dequantises accumulators, which ConvInteger and MatMulInteger give.
  const bool in_numbers = params.per_axis() || dtype == ir::kInt32;
  if (in_numbers && !depends_on_constants(op, data))
    return op.define(0, dequantized_along(op, data, params, axis));
  op.define(0, op.dequantize(data.is_constant() ? Value(op.widened(data.constant)) : data, params, axis));
}

// ONNX Runtime's quantised operators on elements: scales and zero points are inputs next to the tensors.
namespace {

ir::Attrs f32e() { return {{"contract", std::string("f32e")}}; }

// A, A scale, A zero point, B, B scale, B zero point, C scale, C zero point.
void qlinear_binary(const OpContext& op, std::string_view ir_op) {
  op.expect_counts(7, 8);
  const QParams a = op.per_tensor_qparams(1), b = op.per_tensor_qparams(4), c = op.per_tensor_qparams(6);
  op.define(0, op.emit(ir_op,
                       {op.input(0), op.input(3), a.scale, a.zero_point, b.scale, b.zero_point, c.scale,
                        c.zero_point},
                       f32e()));
}

// X, X scale, X zero point, Y scale, Y zero point.
struct Unary {
  explicit Unary(const OpContext& op) {
    op.expect_counts(4, 5);
    data = op.input(0);
    in = op.per_tensor_qparams(1);
    out = op.per_tensor_qparams(3);
  }
  std::vector<Value> operands(const Value& input) const {
    return {input, in.scale, in.zero_point, out.scale, out.zero_point};
  }
  Value data;
  QParams in, out;
};

bool same(const QParams& a, const QParams& b) {
  return a.scale->as<float>()[0] == b.scale->as<float>()[0] &&
         a.zero_point->as<int32_t>()[0] == b.zero_point->as<int32_t>()[0];
}

}  // namespace

void import_qlinear_add(const OpContext& op) { qlinear_binary(op, "qnn.add"); }
void import_qlinear_mul(const OpContext& op) { qlinear_binary(op, "qnn.mul"); }

void import_qlinear_sigmoid(const OpContext& op) {
  const Unary unary(op);
  op.define(0, op.emit("qnn.sigmoid", unary.operands(unary.data), f32e()));
}

void import_qlinear_leaky_relu(const OpContext& op) {
  const Unary unary(op);
  const double alpha = op.attr_float("alpha", 0.01f);
  const Value activated = op.emit("nn.leaky_relu", {op.dequantize(unary.data, unary.in)}, {{"alpha", alpha}});
  op.define(0, op.quantize(activated, unary.out, op.type(unary.data).dtype));
}

void import_qlinear_softmax(const OpContext& op) {
  const Unary unary(op);
  const int64_t opset = op.attr_int("opset", 0);
  if (opset < 1) invalid("attribute 'opset', that of the Softmax that is meant, is missing");
  const SoftmaxShape shape = softmax_shape(op, op.shape(unary.data), opset);
  ir::Attrs attrs = f32e();
  attrs.set("axis", shape.axis);
  const Value result =
      op.emit("qnn.softmax", unary.operands(op.reshape(unary.data, shape.shape)), std::move(attrs));
  op.define(0, op.reshape(result, op.shape(unary.data)));
}

// Y scale, Y zero point, then tensor, scale and zero point of each operand. Inputs of another quantisation
// are requantised to the output's.
void import_qlinear_concat(const OpContext& op) {
  constexpr size_t kMaxInputs = 2 + 3 * 4096;
  op.expect_counts(5, kMaxInputs);
  if (op.num_inputs() % 3 != 2)
    invalid(cat("the node has ", op.num_inputs(), " inputs, expected 2 + 3 per tensor"));
  const Attribute* axis = op.find_attr("axis", AttributeKind::kInt);
  if (axis == nullptr) invalid("attribute 'axis' is missing");
  const QParams out = op.per_tensor_qparams(0);
  const ir::DType dtype = op.zero_point_dtype(1);
  std::vector<Value> parts;
  for (size_t i = 2; i < op.num_inputs(); i += 3) {
    const Value& part = op.input(i);
    const QParams in = op.per_tensor_qparams(i + 1);
    if (op.type(part).dtype == dtype && same(in, out)) {
      parts.push_back(part);
      continue;
    }
    parts.push_back(op.emit("qnn.requantize", {part, in.scale, in.zero_point, out.scale, out.zero_point},
                            {{"out_dtype", ir::to_string(dtype)}, {"contract", std::string("f32e")}}));
  }
  const int64_t normalized = OpContext::axis_of(axis->i, op.shape(parts[0]).size());
  op.define(0, op.emit("concatenate", parts, {{"axis", normalized}}));
}

}  // namespace qplan::onnx
