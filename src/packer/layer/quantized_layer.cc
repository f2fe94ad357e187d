#include "src/packer/layer/quantized_layer.h"

#include <algorithm>
#include <variant>

#include "src/packer/ir/cat.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/op_def.h"

namespace qplan::layer {
namespace {

enum ProductOperand { kData, kWeight, kInputZeroPoint, kKernelZeroPoint, kInputScale, kKernelScale };
enum RequantizeOperand {
  kAccumulator,
  kAccumulatorScale,
  kAccumulatorZeroPoint,
  kOutputScale,
  kOutputZeroPoint
};
enum BiasAddOperand { kBiasData, kBias };
enum PadOperand { kPadData, kPadValue };

// Of an integer-valued clip bound, which may be infinite.
int32_t bound_in(double bound, ir::DType dtype) {
  if (bound <= static_cast<double>(dtype.min())) return static_cast<int32_t>(dtype.min());
  if (bound >= static_cast<double>(dtype.max())) return static_cast<int32_t>(dtype.max());
  return static_cast<int32_t>(bound);
}

class Reader {
 public:
  explicit Reader(const LayerNodes& nodes)
      : n_(nodes), function_(*nodes.function), product_(*nodes.product) {}

  QuantizedLayer read() {
    QuantizedLayer layer;
    layer.nodes = n_;
    layer.geometry = product_geometry(function_, product_);
    layer.is_canonical = has_canonical_layout(product_);
    layer.input_dtype = function_.type(product_.operands[kData]).dtype;
    layer.weight_dtype = function_.type(product_.operands[kWeight]).dtype;
    layer.output_dtype = function_.type(last().results[0]).dtype;
    if (is_8_bit(layer.output_dtype)) {
      layer.clamp =
          n_.clip != nullptr ? clip_clamp(*n_.clip, layer.output_dtype) : full_clamp(layer.output_dtype);
    }
    layer.padding = padding(layer.geometry.window);
    layer.input_zero_point = zero_point(product_, kInputZeroPoint, "the input's zero point");
    layer.weight_constant = constant(product_, kWeight, "the weight tensor");
    layer.weight_zero_point = zero_point(product_, kKernelZeroPoint, "the weights' zero point");
    layer.weights = weights(layer);
    layer.bias = ir::ConstantRef();
    if (n_.bias_add != nullptr) {
      layer.bias = constant(*n_.bias_add, kBias, "the bias");
      layer.has_bias_on_last_axis = is_on_last_axis(*n_.bias_add);
    }
    if (n_.requantize != nullptr) requantization(&layer);
    return layer;
  }

 private:
  const ir::Node& last() const {
    for (const ir::Node* node : {n_.clip, n_.requantize, n_.bias_add}) {
      if (node != nullptr) return *node;
    }
    return product_;
  }

  Part<ir::ConstantRef> constant(const ir::Node& node, size_t operand, const char* what) const {
    const ir::ConstantRef& result = function_.value(node.operands[operand]).constant;
    if (result == nullptr) return Part<ir::ConstantRef>::unreadable(cat(what, " is not a constant"));
    return result;
  }

  Part<int32_t> zero_point(const ir::Node& node, size_t operand, const char* what) const {
    const Part<ir::ConstantRef> zero_points = constant(node, operand, what);
    if (!zero_points) return Part<int32_t>::unreadable(zero_points.why());
    const std::span<const int32_t> values = (*zero_points)->as<int32_t>();
    if (values.empty() || std::ranges::any_of(values, [&](int32_t v) { return v != values[0]; }))
      return Part<int32_t>::unreadable(cat(what, " is not one number"));
    return values[0];
  }

  bool is_on_last_axis(const ir::Node& node) const {
    const size_t rank = function_.type(node.results[0]).shape.size();
    return op::normalized_axis(op::attr_int(node, "axis"), rank) == static_cast<int64_t>(rank) - 1;
  }

  Part<Padding> padding(const op::Window2d& window) const {
    const auto unreadable = [](const char* why) { return Part<Padding>::unreadable(why); };
    Padding result = {window.pad_top, window.pad_left, window.pad_bottom, window.pad_right, std::nullopt};
    if (const ir::AttrValue* value = product_.attrs.find("pad_value"))
      result.value = static_cast<int32_t>(std::get<int64_t>(*value));
    if (n_.pad == nullptr) return result;
    if (!result.is_empty()) return unreadable("nn.pad and the layer itself pad");
    if (op::attr_string(*n_.pad, "pad_mode") != "constant")
      return unreadable("nn.pad does not pad with a constant");
    const auto& widths = op::attr_int_lists(*n_.pad, "pad_width");  // NHWC
    if (widths.size() != 4 || widths[0] != ir::Ints{0, 0} || widths[3] != ir::Ints{0, 0})
      return unreadable("nn.pad pads other axes than height and width");
    for (const size_t axis : {size_t{1}, size_t{2}}) {
      if (widths[axis][0] < 0 || widths[axis][1] < 0) return unreadable("nn.pad cuts");
    }
    const Part<ir::ConstantRef> value = constant(*n_.pad, kPadValue, "nn.pad's value");
    if (!value) return Part<Padding>::unreadable(value.why());
    return Padding{widths[1][0], widths[2][0], widths[1][1], widths[2][1], pad_value(**value)};
  }

  Part<LayerWeights> weights(const QuantizedLayer& layer) const {
    const Part<ir::ConstantRef> zero_points = constant(product_, kKernelZeroPoint, "the weights' zero point");
    if (!layer.is_canonical || !layer.weight_constant || !zero_points || layer.weight_dtype.bits != 8)
      return Part<LayerWeights>::unreadable("its weights are not 8-bit constants in the order OHWI");
    LayerWeights result;
    result.bytes = *layer.weight_constant;
    result.zero_points = (*zero_points)->as<int32_t>();
    const ir::TensorType& type = result.bytes->type();
    result.num_o = static_cast<size_t>(type.shape[0]);
    result.num_k = static_cast<size_t>(type.num_elements()) / result.num_o;
    for (size_t o = 0; o < result.num_o; ++o) {
      for (size_t k = 0; k < result.num_k; ++k) {
        const int64_t weight = result(o, k);
        result.min = std::min(result.min, weight);
        result.max = std::max(result.max, weight);
      }
    }
    return result;
  }

  void requantization(QuantizedLayer* layer) const {
    const ir::Node& requantize = *n_.requantize;
    layer->contract = op::attr_string(requantize, "contract");
    layer->accumulator_zero_point =
        zero_point(requantize, kAccumulatorZeroPoint, "the accumulator's zero point");
    layer->output_zero_point = zero_point(requantize, kOutputZeroPoint, "the output's zero point");
    layer->requantizes_last_axis = is_on_last_axis(requantize);
    layer->scales = scales(requantize, static_cast<size_t>(layer->geometry.out_c));
  }

  Part<LayerScales> scales(const ir::Node& requantize, size_t channels) const {
    struct Source {
      const ir::Node& node;
      size_t operand;
      const char* what;
      bool is_one;
      std::span<const float> values = {};
    };
    Source sources[] = {{product_, kInputScale, "the input's scale", true},
                        {product_, kKernelScale, "the weights' scale", false},
                        {requantize, kAccumulatorScale, "the accumulator's scale", false},
                        {requantize, kOutputScale, "the output's scale", true}};
    for (Source& source : sources) {
      const Part<ir::ConstantRef> found = constant(source.node, source.operand, source.what);
      if (!found) return Part<LayerScales>::unreadable(found.why());
      if ((*found)->type().dtype != ir::kFloat32)
        return Part<LayerScales>::unreadable(cat(source.what, " is not float32"));
      source.values = (*found)->as<float>();
      if (source.is_one && source.values.size() != 1) {
        return Part<LayerScales>::unreadable(
            cat(source.what, " has ", source.values.size(), " values, expected one"));
      }
    }
    for (const Source& source : sources) {
      const size_t count = source.values.size();
      if (count != 1 && count != channels)
        return Part<LayerScales>::unreadable(cat(count, " scales for ", channels, " channels"));
    }
    return LayerScales{sources[0].values[0], sources[1].values, sources[2].values, sources[3].values[0],
                       op::attr_string(requantize, "multiplier") == "product_f32"};
  }

  const LayerNodes& n_;
  const ir::Function& function_;
  const ir::Node& product_;
};

}  // namespace

Clamp full_clamp(ir::DType dtype) {
  return {static_cast<int32_t>(dtype.min()), static_cast<int32_t>(dtype.max())};
}

Clamp clip_clamp(const ir::Node& clip, ir::DType dtype) {
  return {bound_in(op::attr_float(clip, "a_min"), dtype), bound_in(op::attr_float(clip, "a_max"), dtype)};
}

bool is_8_bit(ir::DType dtype) { return dtype == ir::kInt8 || dtype == ir::kUint8; }

int32_t pad_value(const ir::Constant& constant) {
  const ir::DType dtype = constant.type().dtype;
  if (dtype == ir::kFloat32) return static_cast<int32_t>(constant.as<float>()[0]);
  if (dtype == ir::kInt32) return constant.as<int32_t>()[0];
  return dtype == ir::kUint8 ? constant.as<uint8_t>()[0] : constant.as<int8_t>()[0];
}

Geometry QuantizedLayer::unpadded_geometry() const {
  Geometry g = geometry;
  g.in_h = geometry.padded_h() - padding->top - padding->bottom;
  g.in_w = geometry.padded_w() - padding->left - padding->right;
  g.window.pad_top = padding->top, g.window.pad_bottom = padding->bottom;
  g.window.pad_left = padding->left, g.window.pad_right = padding->right;
  return g;
}

std::optional<std::vector<AccumulatorRange>> QuantizedLayer::accumulator_ranges() const {
  if (!weights || !input_zero_point || input_dtype.bits != 8 || !bias) return std::nullopt;
  std::span<const int32_t> biases;
  if (*bias != nullptr) {
    if ((*bias)->type().dtype != ir::kInt32) return std::nullopt;
    biases = (*bias)->as<int32_t>();
    if (biases.size() != weights->num_o) return std::nullopt;
  }
  // What pads is a value of the input's dtype too.
  const int64_t x_min = input_dtype.min() - *input_zero_point;
  const int64_t x_max = input_dtype.max() - *input_zero_point;
  std::vector<AccumulatorRange> ranges(weights->num_o);
  for (size_t o = 0; o < weights->num_o; ++o) {
    int64_t positive = 0, negative = 0;  // sums of the weights of each sign
    for (size_t k = 0; k < weights->num_k; ++k) {
      const int64_t weight = (*weights)(o, k);
      (weight > 0 ? positive : negative) += weight;
    }
    const int64_t b = biases.empty() ? 0 : biases[o];
    ranges[o] = {b + positive * x_min + negative * x_max, b + positive * x_max + negative * x_min};
  }
  return ranges;
}

std::vector<QuantizedMultiplier> QuantizedLayer::multipliers() const {
  std::vector<QuantizedMultiplier> result(static_cast<size_t>(geometry.out_c));
  for (size_t o = 0; o < result.size(); ++o) result[o] = quantize_multiplier(scales->multiplier(o));
  return result;
}

QuantizedLayer read_layer(const LayerNodes& nodes) { return Reader(nodes).read(); }

}  // namespace qplan::layer
