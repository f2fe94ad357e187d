// choose_qparams, and quantize and dequantize with what it gives: operators on float32 that the network
// computes, each rounded as PyTorch rounds it.
#include <cmath>

#include "src/packer/import/pytorch/dynamic.h"

namespace qplan::pt {
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

}  // namespace qplan::pt
