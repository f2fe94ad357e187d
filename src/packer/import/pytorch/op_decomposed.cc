// quantize and dequantize as PT2E writes them: operators on plain integers, which name scale, zero point and
// range beside each tensor. The passes turn what is between them into integer operators.
#include <algorithm>
#include <cmath>

#include "src/packer/import/pytorch/weights.h"

namespace qplan::pt {
namespace {

// The dtypes that integers stand for numbers in.
ir::DType quantized_dtype(int64_t number) {
  for (const ScalarType type :
       {ScalarType::kInt8, ScalarType::kUint8, ScalarType::kInt16, ScalarType::kInt32}) {
    if (number == static_cast<int64_t>(type)) return dtype_of(type);
  }
  throw Unsupported{cat("elements of scalar type ", number, " as integers")};
}

// The argument, which the model may not compute.
double known_number(OpContext& op, size_t i) {
  if (op.is_flow(i)) throw Unsupported{"a scale or zero point that the model computes"};
  return op.number(i);
}

QuantParams params_of(OpContext& op, ir::DType dtype) {
  const double zero_point = known_number(op, 2);
  if (zero_point != std::trunc(zero_point) || !(std::fabs(zero_point) < 0x1p31))
    invalid("the zero point is " + to_text(static_cast<float>(zero_point)));
  return checked_quantization(known_number(op, 1), static_cast<int64_t>(zero_point), dtype);
}

// Scales and zero points of an axis, as constants.
struct AxisParams {
  ir::ValueId scales, zero_points;
  int64_t axis;
};
AxisParams axis_params(OpContext& op, const Flow& input, ir::DType dtype) {
  const ir::Shape& shape = op.shape(input);
  AxisParams params{.scales = {}, .zero_points = {}, .axis = OpContext::axis_of(op.integer(3), shape.size())};
  const int64_t extent = shape[static_cast<size_t>(params.axis)];
  const auto numbers = [&](size_t i, const char* what) {
    const Tensor* tensor = op.values().get<Tensor>(op.ref(i));
    if (tensor == nullptr) throw Unsupported{"a scale or zero point that the model computes"};
    std::vector<double> found = op.tensors().read_numbers(*tensor, what);
    if (std::ssize(found) != extent)
      invalid(cat("there are ", found.size(), " ", what, ", expected ", extent));
    return found;
  };
  const std::vector<double> scales = numbers(1, "scales");
  std::vector<double> zero_points(scales.size());
  if (op.has(2)) zero_points = numbers(2, "zero points");
  std::vector<float> narrow;
  std::vector<int32_t> points;
  bool same_points = true;
  for (size_t i = 0; i < scales.size(); ++i) {
    if (!(std::fabs(zero_points[i]) < 0x1p31)) invalid("a zero point is outside of int32");
    const QuantParams checked = checked_quantization(scales[i], static_cast<int64_t>(zero_points[i]), dtype);
    narrow.push_back(checked.scale);
    points.push_back(checked.zero_point);
    same_points = same_points && checked.zero_point == points[0];
  }
  params.scales = op.constant(ir::make_constant(ir::kFloat32, {extent}, narrow));
  params.zero_points =
      same_points ? op.zero_point(points[0]) : op.constant(ir::make_constant(ir::kInt32, {extent}, points));
  return params;
}

struct Range {
  int64_t min, max;
};
// The part of the dtype's range that arguments i and i + 1 leave.
Range range_of(OpContext& op, size_t i, ir::DType dtype) {
  const int64_t min = op.integer(i), max = op.integer(i + 1);
  if (min > max || max < dtype.min() || min > dtype.max())
    invalid(cat("the range ", min, " to ", max, " has no ", dtype));
  return {std::max(min, dtype.min()), std::min(max, dtype.max())};
}

// clamp(zero_point + half_even(x * (1 / scale)), quant_min, quant_max): the dtype's range, or less.
Ref quantize(OpContext& op, ir::ValueId scale, ir::ValueId zero_point, Range range, ir::DType dtype,
             std::optional<int64_t> axis) {
  ir::Attrs attrs{{"out_dtype", ir::to_string(dtype)},
                  {"contract", std::string("f32e")},
                  {"rule", std::string("mul_even")}};
  if (axis) attrs.set("axis", *axis);
  ir::ValueId value = op.emit("qnn.quantize", {op.float_flow(0).value, scale, zero_point}, std::move(attrs));
  if (range.min > dtype.min() || range.max < dtype.max()) {
    value = op.emit("clip", {value},
                    {{"a_min", static_cast<double>(range.min)}, {"a_max", static_cast<double>(range.max)}});
  }
  return op.result(value);
}

Flow integers_of(OpContext& op, ir::DType dtype, size_t out_dtype) {
  const Flow input = op.flow(0);
  if (input.quantization) throw Unsupported{"a tensor with a quantisation of its own"};
  if (op.dtype(input) != dtype) invalid(cat("the tensor is ", op.dtype(input), ", expected ", dtype));
  if (op.integer(out_dtype, static_cast<int64_t>(ScalarType::kFloat32)) !=
      static_cast<int64_t>(ScalarType::kFloat32)) {
    throw Unsupported{"a result other than float32"};
  }
  return input;
}

Ref dequantize(OpContext& op, const Flow& input, ir::ValueId scale, ir::ValueId zero_point,
               std::optional<int64_t> axis) {
  ir::Attrs attrs{{"contract", std::string("f32e")}};
  if (axis) attrs.set("axis", *axis);
  return op.result(op.emit("qnn.dequantize", {input.value, scale, zero_point}, std::move(attrs)));
}

}  // namespace

Ref import_decomposed_quantize(OpContext& op) {
  const ir::DType dtype = quantized_dtype(op.integer(5));
  const Range range = range_of(op, 3, dtype);
  if (has_dynamic_scale(op)) return emit_dynamic_quantize(op, range.min, range.max, dtype);
  const QuantParams params = params_of(op, dtype);
  const ir::ValueId scale = op.scale(params.scale), zero_point = op.zero_point(params.zero_point);
  return quantize(op, scale, zero_point, range, dtype, std::nullopt);
}

Ref import_decomposed_dequantize(OpContext& op) {
  const ir::DType dtype = quantized_dtype(op.integer(5));
  if (has_dynamic_scale(op)) return emit_dynamic_dequantize(op, integers_of(op, dtype, 6));
  const QuantParams params = params_of(op, dtype);
  const Flow input = integers_of(op, dtype, 6);
  const ir::ValueId scale = op.scale(params.scale), zero_point = op.zero_point(params.zero_point);
  return dequantize(op, input, scale, zero_point, std::nullopt);
}

Ref import_decomposed_quantize_per_channel(OpContext& op) {
  const ir::DType dtype = quantized_dtype(op.integer(6));
  const AxisParams params = axis_params(op, op.float_flow(0), dtype);
  return quantize(op, params.scales, params.zero_points, range_of(op, 4, dtype), dtype, params.axis);
}

Ref import_decomposed_dequantize_per_channel(OpContext& op) {
  const ir::DType dtype = quantized_dtype(op.integer(6));
  const Flow input = integers_of(op, dtype, 7);
  const AxisParams params = axis_params(op, input, dtype);
  return dequantize(op, input, params.scales, params.zero_points, params.axis);
}

}  // namespace qplan::pt
