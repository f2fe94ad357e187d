#include "src/vta/compiler/layer.h"

#include <algorithm>

#include "src/packer/target/layer_scales.h"

namespace qplan::target::vta {
namespace {

enum ProductOperand { kData, kWeight, kInputZeroPoint, kKernelZeroPoint, kInputScale, kKernelScale };
enum RequantizeOperand { kRequantizeData, kAccumulatorScale, kAccumulatorZeroPoint, kOutputScale };

bool is_conv(const ir::Node& product) { return product.op->name == "qnn.conv2d"; }

Geometry conv_geometry(const ir::Function& function, const ir::Node& product) {
  const ir::TensorType& data = function.type(product.operands[kData]);
  const ir::TensorType& weight = function.type(product.operands[kWeight]);
  const ir::TensorType& result = function.type(product.results[0]);
  const op::DataLayout d = op::data_layout(op::attr_string(product, "data_layout"));
  Geometry g;
  g.batch = data.shape[d.n];
  g.in_h = data.shape[d.h], g.in_w = data.shape[d.w], g.in_c = data.shape[d.c];
  g.out_h = result.shape[d.h], g.out_w = result.shape[d.w], g.out_c = result.shape[d.c];
  g.groups = op::attr_int(product, "groups");
  g.window = op::conv2d_window(product, weight);
  return g;
}

Geometry dense_geometry(const ir::Function& function, const ir::Node& product) {
  const ir::TensorType& weight = function.type(product.operands[kWeight]);
  Geometry g;
  g.in_c = weight.shape[1];
  g.out_c = weight.shape[0];
  g.out_w = function.type(product.results[0]).num_elements() / g.out_c;
  g.in_w = g.out_w;
  return g;
}

Geometry pool_geometry(const ir::Function& function, const ir::Node& pool) {
  const ir::TensorType& data = function.type(pool.operands[0]);
  const ir::TensorType& result = function.type(pool.results[0]);
  const op::DataLayout d = op::data_layout(op::attr_string(pool, "layout"));
  Geometry g;
  g.batch = data.shape[d.n];
  g.in_h = data.shape[d.h], g.in_w = data.shape[d.w], g.in_c = data.shape[d.c];
  g.out_h = result.shape[d.h], g.out_w = result.shape[d.w], g.out_c = result.shape[d.c];
  g.window = op::pool2d_window(pool);
  return g;
}

// Weights in the order [o][k], with their zero points.
struct Weights {
  const ir::Constant* bytes = nullptr;
  std::span<const int32_t> zero_points;  // one or one per channel
  size_t num_o = 0, num_k = 0;

  int64_t operator()(size_t o, size_t k) const {
    const uint8_t byte = bytes->bytes()[o * num_k + k];
    const int64_t value = bytes->type().dtype == ir::kInt8 ? static_cast<int8_t>(byte) : byte;
    return value - zero_points[zero_points.size() == 1 ? 0 : o];
  }
};

std::optional<Weights> read_weights(const Candidate& candidate) {
  const ir::Node* product = candidate.node("product");
  if (product == nullptr || !has_canonical_layout(candidate)) return std::nullopt;
  const ir::ConstantRef& constant = candidate.function().value(product->operands[kWeight]).constant;
  const ir::ConstantRef& zero_points =
      candidate.function().value(product->operands[kKernelZeroPoint]).constant;
  if (constant == nullptr || zero_points == nullptr || constant->type().dtype.bits != 8) return std::nullopt;
  Weights weights;
  weights.bytes = constant.get();
  weights.zero_points = zero_points->as<int32_t>();
  weights.num_o = static_cast<size_t>(constant->type().shape[0]);
  weights.num_k = static_cast<size_t>(constant->type().num_elements()) / weights.num_o;
  return weights;
}

// One window over a whole image.
Geometry mean_geometry(const ir::Function& function, const ir::Node& mean) {
  const ir::Shape& shape = function.type(mean.operands[0]).shape;
  Geometry g;
  if (shape.size() != 4) return g;
  g.batch = shape[0];
  g.in_h = g.window.kernel_h = shape[1];
  g.in_w = g.window.kernel_w = shape[2];
  g.in_c = g.out_c = shape[3];
  return g;
}

}  // namespace

Geometry geometry(const Candidate& candidate) {
  const ir::Function& function = candidate.function();
  if (const ir::Node* mean = candidate.node("mean")) return mean_geometry(function, *mean);
  if (const ir::Node* pool = candidate.node("pool")) return pool_geometry(function, *pool);
  const ir::Node& product = *candidate.node("product");
  return is_conv(product) ? conv_geometry(function, product) : dense_geometry(function, product);
}

bool has_canonical_layout(const Candidate& candidate) {
  if (const ir::Node* pool = candidate.node("pool")) return op::attr_string(*pool, "layout") == "NHWC";
  const ir::Node* product = candidate.node("product");
  if (product == nullptr || !is_conv(*product)) return true;
  return op::attr_string(*product, "data_layout") == "NHWC" &&
         op::attr_string(*product, "kernel_layout") == "OHWI";
}

std::optional<std::vector<AccumulatorRange>> accumulator_ranges(const Candidate& candidate) {
  const std::optional<Weights> weights = read_weights(candidate);
  if (!weights) return std::nullopt;
  const ir::Function& function = candidate.function();
  const ir::Node& product = *candidate.node("product");
  const ir::DType dtype = function.type(product.operands[kData]).dtype;
  const ir::ConstantRef& zero_point = function.value(product.operands[kInputZeroPoint]).constant;
  if (zero_point == nullptr || dtype.bits != 8) return std::nullopt;
  std::span<const int32_t> bias;
  if (const ir::Node* bias_add = candidate.node("bias_add")) {
    const ir::ConstantRef& constant = function.value(bias_add->operands[1]).constant;
    if (constant == nullptr || constant->type().dtype != ir::kInt32) return std::nullopt;
    bias = constant->as<int32_t>();
    if (bias.size() != weights->num_o) return std::nullopt;
  }
  // What pads is a value of the input's dtype too.
  const int64_t x_min = dtype.min() - zero_point->as<int32_t>()[0];
  const int64_t x_max = dtype.max() - zero_point->as<int32_t>()[0];
  std::vector<AccumulatorRange> ranges(weights->num_o);
  for (size_t o = 0; o < weights->num_o; ++o) {
    int64_t positive = 0, negative = 0;  // sums of the weights of each sign
    for (size_t k = 0; k < weights->num_k; ++k) {
      const int64_t w = (*weights)(o, k);
      (w > 0 ? positive : negative) += w;
    }
    const int64_t b = bias.empty() ? 0 : bias[o];
    ranges[o] = {b + positive * x_min + negative * x_max, b + positive * x_max + negative * x_min};
  }
  return ranges;
}

std::optional<std::vector<QuantizedMultiplier>> multipliers(const Candidate& candidate) {
  const ir::Node* product = candidate.node("product");
  const ir::Node* requantize = candidate.node("requantize");
  if (product == nullptr || requantize == nullptr) return std::nullopt;
  const ir::Function& function = candidate.function();
  const auto floats = [&](ir::ValueId value) {
    const ir::ConstantRef& constant = function.value(value).constant;
    return constant == nullptr ? std::span<const float>() : constant->as<float>();
  };
  const std::span<const float> input = floats(product->operands[kInputScale]);
  const std::span<const float> output = floats(requantize->operands[kOutputScale]);
  LayerScales scales;
  scales.weights = floats(product->operands[kKernelScale]);
  scales.product = floats(requantize->operands[kAccumulatorScale]);
  const auto num_o = static_cast<size_t>(geometry(candidate).out_c);
  const auto fits = [&](std::span<const float> values) {
    return values.size() == 1 || values.size() == num_o;
  };
  if (input.size() != 1 || output.size() != 1 || !fits(scales.weights) || !fits(scales.product))
    return std::nullopt;
  scales.input = input[0];
  scales.output = output[0];
  scales.product_in_float = op::attr_string(*requantize, "multiplier") == "product_f32";
  std::vector<QuantizedMultiplier> result(num_o);
  for (size_t o = 0; o < num_o; ++o) result[o] = quantize_multiplier(scales.multiplier(o));
  return result;
}

std::optional<std::vector<int32_t>> left_shifts(const Candidate& candidate) {
  const std::optional<std::vector<QuantizedMultiplier>> quantized = multipliers(candidate);
  if (!quantized) return std::nullopt;
  std::vector<int32_t> shifts;
  for (const QuantizedMultiplier& multiplier : *quantized) shifts.push_back(std::max(multiplier.shift, 0));
  return shifts;
}

std::optional<std::vector<int16_t>> centred_weights(const Candidate& candidate) {
  const std::optional<Weights> weights = read_weights(candidate);
  if (!weights) return std::nullopt;
  std::vector<int16_t> centred;
  centred.reserve(weights->num_o * weights->num_k);
  for (size_t o = 0; o < weights->num_o; ++o) {
    for (size_t k = 0; k < weights->num_k; ++k) centred.push_back(static_cast<int16_t>((*weights)(o, k)));
  }
  return centred;
}

std::optional<WeightRange> weight_range(const Candidate& candidate) {
  const std::optional<Weights> weights = read_weights(candidate);
  if (!weights) return std::nullopt;
  WeightRange range;
  for (size_t o = 0; o < weights->num_o; ++o) {
    for (size_t k = 0; k < weights->num_k; ++k) {
      range.min = std::min(range.min, (*weights)(o, k));
      range.max = std::max(range.max, (*weights)(o, k));
    }
  }
  return range;
}

int64_t num_weight_planes(const Candidate& candidate) {
  const std::optional<WeightRange> range = weight_range(candidate);
  return range && (range->min < -128 || range->max > 127) ? 2 : 1;
}

}  // namespace qplan::target::vta
