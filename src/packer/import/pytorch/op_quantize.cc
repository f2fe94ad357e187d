// Quantisation as PT2E writes it: quantize and dequantize, static and dynamic.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/op/op_def.h"

namespace qplan::pt {
namespace {

// ---- static: operators on plain integers, which name scale, zero point and range beside each tensor. The
// passes turn what is between them into integer operators.

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

// ---- dynamic: choose_qparams, quantize and dequantize with what it gives, as operators on float32 that the
// network computes, each rounded as PyTorch rounds it; and layers of tensors that are quantised so, as
// products of integers.

namespace {

// The largest element as [1]: two maximum pools, the first keeps channels apart.
ir::ValueId largest(OpContext& op, ir::ValueId data) {
  const auto pool = [&](ir::ValueId value, ir::Ints size, const char* layout) {
    return op.emit("nn.max_pool2d", {value},
                   {{"pool_size", std::move(size)}, {"layout", std::string(layout)}});
  };
  const ir::Shape shape = op.shape(Flow{data});
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  int64_t channels = shape.empty() ? 1 : shape.back();
  if (shape.size() == 4) {
    channels = shape[0] * shape[1];
    data = pool(data, {shape[2], shape[3]}, "NCHW");
  } else {
    data = pool(op.reshape(data, {1, count / channels, 1, channels}), {count / channels, 1}, "NHWC");
  }
  return op.reshape(pool(op.reshape(data, {1, channels, 1, 1}), {channels, 1}, "NHWC"), {1});
}

struct Ends {
  ir::ValueId high, low;  // max(x, 0) and max(-x, 0) of all x
};
Ends ends_of(OpContext& op, const Flow& data) {
  const auto not_negative = [&](ir::ValueId value) {
    return op.emit("maximum", {largest(op, value), op.scale(0.0f)}, {});
  };
  return {not_negative(data.value), not_negative(op.emit("negative", {data.value}, {}))};
}

// The arguments of both forms: a tensor, the range of the integers, the least scale, their dtype.
struct Choice {
  Flow data;
  int64_t min, max;
  float least_scale;
  ir::DType dtype;

  explicit Choice(OpContext& op) : data(op.float_flow(0)), min(op.integer(1)), max(op.integer(2)) {
    const int64_t type = op.integer(4);
    const bool is_signed = type == static_cast<int64_t>(ScalarType::kInt8);
    if (!is_signed && type != static_cast<int64_t>(ScalarType::kUint8))
      throw Unsupported{cat("elements of scalar type ", type, " as integers")};
    dtype = is_signed ? ir::kInt8 : ir::kUint8;
    if (min >= max || min < dtype.min() || max > dtype.max())
      invalid(cat("the range ", min, " to ", max, " is none of ", dtype));
    least_scale = static_cast<float>(op.number(3));
    if (!(least_scale > 0) || !std::isfinite(least_scale))
      invalid(cat("the least scale is ", to_text(least_scale), ", expected a positive finite number"));
    for (const int64_t extent : op.shape(data)) {
      if (extent == 0) throw Unsupported{"a tensor without elements"};
    }
  }
};

Ref scale_and_zero_point(OpContext& op, ir::ValueId scale, ir::ValueId zero_point) {
  return op.add(Tuple{{op.result(scale), op.result(zero_point)}});
}

ir::ValueId cast(OpContext& op, ir::ValueId value, ir::DType dtype) {
  return op.emit("cast", {value}, {{"dtype", ir::to_string(dtype)}});
}
ir::ValueId clip(OpContext& op, ir::ValueId value, int64_t min, int64_t max) {
  return op.emit("clip", {value}, {{"a_min", static_cast<double>(min)}, {"a_max", static_cast<double>(max)}});
}

// Argument i: a tensor of one element of the dtype, as [1].
ir::ValueId one_element(OpContext& op, size_t i, ir::DType dtype, const char* what) {
  const Flow found = op.flow(i);
  if (op.dtype(found) != dtype) throw Unsupported{cat("a ", what, " of ", op.dtype(found))};
  for (const int64_t extent : op.shape(found)) {
    if (extent != 1) invalid(cat("the ", what, " is ", to_text(op.shape(found)), ", expected one element"));
  }
  return op.shape(found).size() == 1 ? found.value : op.reshape(found.value, {1});
}
ir::ValueId scale_of(OpContext& op) { return one_element(op, 1, ir::kFloat32, "scale"); }
ir::ValueId zero_point_of(OpContext& op) { return one_element(op, 2, ir::kInt32, "zero point"); }

}  // namespace

// scale = max((high + low) / (max - min), least); zero point = min + half_even(low / scale) in [min, max].
Ref import_choose_qparams(OpContext& op) {
  const Choice choice(op);
  const Ends ends = ends_of(op, choice.data);
  const ir::ValueId range = op.emit("add", {ends.high, ends.low}, {});
  const ir::ValueId step =
      op.emit("divide", {range, op.scale(static_cast<float>(choice.max - choice.min))}, {});
  const ir::ValueId scale = op.emit("maximum", {step, op.scale(choice.least_scale)}, {});
  const ir::ValueId below = op.emit("round", {op.emit("divide", {ends.low, scale}, {})}, {});
  const ir::ValueId point = op.emit("add", {below, op.scale(static_cast<float>(choice.min))}, {});
  return scale_and_zero_point(op, scale, cast(op, clip(op, point, choice.min, choice.max), ir::kInt32));
}

// scale = max(max(high, low) / ((max - min) / 2), least); the zero point is 0, of uint8 128.
Ref import_choose_qparams_symmetric(OpContext& op) {
  const Choice choice(op);
  const Ends ends = ends_of(op, choice.data);
  const ir::ValueId most = op.emit("maximum", {ends.low, ends.high}, {});
  const ir::ValueId step =
      op.emit("divide", {most, op.scale(static_cast<float>(choice.max - choice.min) / 2)}, {});
  const ir::ValueId scale = op.emit("maximum", {step, op.scale(choice.least_scale)}, {});
  const int32_t point = choice.dtype == ir::kUint8 ? 128 : 0;
  return scale_and_zero_point(op, scale, op.constant(ir::make_constant(ir::kInt32, {1}, std::vector{point})));
}

bool has_dynamic_scale(OpContext& op) {
  if (op.is_flow(1) != op.is_flow(2)) throw Unsupported{"a scale or zero point that the model computes"};
  return op.is_flow(1);
}

// clamp(half_even(x * (1 / scale)) + zero_point, min, max)
Ref emit_dynamic_quantize(OpContext& op, int64_t min, int64_t max, ir::DType dtype) {
  if (dtype != ir::kInt8 && dtype != ir::kUint8)
    throw Unsupported{cat("integers of ", dtype, " with a scale that the model computes")};
  const Flow data = op.float_flow(0);
  if (op.shape(data).empty()) throw Unsupported{"a scalar"};
  const ir::ValueId inverse = op.emit("divide", {op.scale(1.0f), scale_of(op)}, {});
  const ir::ValueId steps = op.emit("round", {op.emit("multiply", {data.value, inverse}, {})}, {});
  const ir::ValueId moved = op.emit("add", {steps, cast(op, zero_point_of(op), ir::kFloat32)}, {});
  return op.result(cast(op, clip(op, moved, min, max), dtype));
}

// (float(q) - zero_point) * scale
Ref emit_dynamic_dequantize(OpContext& op, const Flow& input) {
  if (op.shape(input).empty()) throw Unsupported{"a scalar"};
  const Dequantised source = {input.value, scale_of(op), zero_point_of(op)};
  const ir::ValueId steps = op.emit(
      "subtract", {cast(op, input.value, ir::kFloat32), cast(op, source.zero_point, ir::kFloat32)}, {});
  Flow result = {.value = op.emit("multiply", {steps, source.scale}, {}), .quantization = {}};
  // Products take integers of 8 bits.
  if (op.dtype(input) == ir::kInt8 || op.dtype(input) == ir::kUint8) result.source = source;
  return op.add(std::move(result));
}

// Layers of tensors that the model quantises while it runs, as products of integers.
namespace {

// Constant integers [o, ...], with a scale and a sum for each output. The integers' own zero points are
// subtracted in the product and in the sums.
struct IntegerWeights {
  ir::ValueId value, zero_points;
  std::vector<float> scales;
  std::vector<int32_t> sums;
};

const ir::Constant* constant_of(const ir::Function& function, ir::ValueId value) {
  return function.is_constant(value) ? function.value(value).constant.get() : nullptr;
}

template <typename T>
void add_sums(std::span<const T> values, std::span<const int32_t> zero_points, std::vector<int32_t>* sums) {
  const size_t count = values.size() / sums->size();
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t o = i / count;
    (*sums)[o] += static_cast<int32_t>(values[i]) - zero_points[zero_points.size() == 1 ? 0 : o];
  }
}

// Nothing where the value is anything else than constants dequantised along their first axis or as a whole,
// or where int32 might not hold a sum of products.
std::optional<IntegerWeights> integer_weights(OpContext& op, ir::ValueId value) {
  const ir::Function& function = op.function();
  const ir::Node* node = function.producer(value);
  // The kernel of a sequence was given a height.
  const bool is_reshaped = node != nullptr && node->op != nullptr && node->op->name == "reshape" &&
                           op.shape(Flow{value}).size() == 4 &&
                           op.shape(Flow{node->operands[0]}).size() == 3 &&
                           op.shape(Flow{value})[0] == op.shape(Flow{node->operands[0]})[0];
  if (is_reshaped) node = function.producer(node->operands[0]);
  if (node == nullptr || node->op == nullptr || node->op->name != "qnn.dequantize") return std::nullopt;
  const ir::Constant* data = constant_of(function, node->operands[0]);
  const ir::Constant* scales = constant_of(function, node->operands[1]);
  const ir::Constant* points = constant_of(function, node->operands[2]);
  if (data == nullptr || scales == nullptr || points == nullptr) return std::nullopt;
  const ir::TensorType& type = data->type();
  if (type.dtype != ir::kInt8 && type.dtype != ir::kUint8) return std::nullopt;
  const int64_t channels = type.shape.empty() ? 0 : type.shape[0];
  if (channels < 1 || type.num_elements() == 0) return std::nullopt;
  // One number for all is a scalar, or [1]; several are those of the axis.
  const bool is_whole = scales->type().num_elements() == 1 && points->type().num_elements() == 1;
  if (!is_whole && op::attr_int(*node, "axis") != 0) return std::nullopt;
  constexpr int64_t kMostProduct = int64_t{255} * 255;
  if (type.num_elements() / channels > std::numeric_limits<int32_t>::max() / kMostProduct)
    return std::nullopt;

  const std::span<const float> given = scales->as<float>();
  const std::span<const int32_t> zero_points = points->as<int32_t>();
  const auto count = static_cast<size_t>(channels);
  IntegerWeights weights{.value = node->operands[0],
                         .zero_points = node->operands[2],
                         .scales = std::vector<float>(count, given[0]),
                         .sums = std::vector<int32_t>(count)};
  if (given.size() > 1) weights.scales.assign(given.begin(), given.end());
  if (type.dtype == ir::kInt8) {
    add_sums(data->as<int8_t>(), zero_points, &weights.sums);
  } else {
    add_sums(data->as<uint8_t>(), zero_points, &weights.sums);
  }
  if (is_reshaped) weights.value = op.reshape(weights.value, ir::Shape(op.shape(Flow{value})));
  return weights;
}

// The float32 numbers that sums [..., o] stand for.
ir::ValueId scaled(OpContext& op, ir::ValueId sums, const Dequantised& data, const IntegerWeights& weights) {
  const auto channels = static_cast<int64_t>(weights.scales.size());
  const ir::ValueId scales = op.constant(ir::make_constant(ir::kFloat32, {channels}, weights.scales));
  const ir::ValueId of_weights = op.constant(ir::make_constant(ir::kInt32, {channels}, weights.sums));
  return op.emit("nn.dynamic_dequantize", {sums, data.scale, data.zero_point, scales, of_weights},
                 {{"rows", int64_t{0}}});
}

std::vector<ir::ValueId> operands_of(OpContext& op, ir::ValueId data, const IntegerWeights& weights) {
  return {data, weights.value, op.zero_point(0), weights.zero_points, op.scale(1.0f), op.scale(1.0f)};
}

// Whether the value, one int32, is in the range of the dtype whatever the network computes: a constant, or
// what choose_qparams holds in its range.
bool is_in_range(const ir::Function& function, ir::ValueId value, ir::DType dtype) {
  if (const ir::Constant* constant = constant_of(function, value)) {
    const std::span<const int32_t> points = constant->as<int32_t>();
    return points.size() == 1 && points[0] >= dtype.min() && points[0] <= dtype.max();
  }
  const ir::Node* node = function.producer(value);
  if (node == nullptr || node->op == nullptr) return false;
  if (node->op->name == "reshape") return is_in_range(function, node->operands[0], dtype);
  const ir::Node* clip = node->op->name == "cast" ? function.producer(node->operands[0]) : nullptr;
  return clip != nullptr && clip->op != nullptr && clip->op->name == "clip" &&
         op::attr_float(*clip, "a_min") >= static_cast<double>(dtype.min()) &&
         op::attr_float(*clip, "a_max") <= static_cast<double>(dtype.max());
}

// The integers NCHW with their zero point around them: a mask chooses between both. The zero point is in the
// range of the integers.
ir::ValueId padded(OpContext& op, const Dequantised& data, const ir::Ints& padding) {
  if (padding == ir::Ints{0, 0, 0, 0}) return data.integers;
  const std::vector<ir::Ints> width = {{0, 0}, {0, 0}, {padding[0], padding[2]}, {padding[1], padding[3]}};
  const ir::ValueId wide = op.emit("nn.pad", {data.integers, op.zero_point(0)}, {{"pad_width", width}});
  const ir::Shape from = op.shape(Flow{data.integers}), to = op.shape(Flow{wide});
  op.charge_elements(to[2] * to[3]);
  std::vector<uint8_t> is_inside(static_cast<size_t>(to[2] * to[3]));
  for (int64_t y = 0; y < from[2]; ++y) {
    for (int64_t x = 0; x < from[3]; ++x)
      is_inside[static_cast<size_t>((y + padding[0]) * to[3] + x + padding[1])] = 1;
  }
  const ir::ValueId mask = op.constant(ir::make_constant(ir::kBool, {1, 1, to[2], to[3]}, is_inside));
  const ir::ValueId point =
      op.emit("cast", {data.zero_point}, {{"dtype", ir::to_string(op.dtype(Flow{wide}))}});
  return op.emit("where", {mask, wide, op.reshape(point, {1, 1, 1, 1})}, {});
}

}  // namespace

std::optional<ir::ValueId> emit_dynamic_dense(OpContext& op, const Flow& input, const Flow& weights) {
  if (!input.source) return std::nullopt;
  const std::optional<IntegerWeights> integers = integer_weights(op, weights.value);
  if (!integers) return std::nullopt;
  const ir::ValueId sums = op.emit("qnn.dense", operands_of(op, input.source->integers, *integers), {});
  return scaled(op, sums, *input.source, *integers);
}

std::optional<ir::ValueId> emit_dynamic_conv(OpContext& op, const Flow& input, const Flow& weights,
                                             ir::Attrs attrs) {
  if (!input.source) return std::nullopt;
  const std::optional<IntegerWeights> integers = integer_weights(op, weights.value);
  if (!integers) return std::nullopt;
  const ir::Ints padding = attrs.get_ints("padding", {0, 0, 0, 0});
  if (padding != ir::Ints{0, 0, 0, 0} &&
      !is_in_range(op.function(), input.source->zero_point, op.dtype(Flow{input.source->integers})))
    return std::nullopt;
  const ir::ValueId data = padded(op, *input.source, padding);
  attrs.set("padding", ir::Ints{0, 0, 0, 0});
  const ir::ValueId sums = op.emit("qnn.conv2d", operands_of(op, data, *integers), std::move(attrs));
  const ir::ValueId last = op.emit("transpose", {sums}, {{"axes", ir::Ints{0, 2, 3, 1}}});
  const ir::ValueId real = scaled(op, last, *input.source, *integers);
  return op.emit("transpose", {real}, {{"axes", ir::Ints{0, 3, 1, 2}}});
}

}  // namespace qplan::pt
