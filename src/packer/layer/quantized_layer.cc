#include "src/packer/layer/quantized_layer.h"

#include <algorithm>
#include <bit>
#include <variant>

#include "kernels/numeric/float_functions.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/op_def.h"

namespace qplan::layer {
namespace {

// Converts an integer-valued clip bound, which may be infinite.
int32_t bound_in(double bound, ir::DType dtype) {
  if (bound <= static_cast<double>(dtype.min())) return static_cast<int32_t>(dtype.min());
  if (bound >= static_cast<double>(dtype.max())) return static_cast<int32_t>(dtype.max());
  return static_cast<int32_t>(bound);
}

}  // namespace

Part<ir::ConstantRef> read_constant(const ir::Function& function, ir::ValueId value, const char* what) {
  const ir::ConstantRef& constant = function.value(value).constant;
  if (constant == nullptr) return Part<ir::ConstantRef>::unreadable(cat(what, " is not a constant"));
  return constant;
}

Part<std::span<const float>> read_floats(const ir::Function& function, ir::ValueId value, const char* what) {
  using Floats = Part<std::span<const float>>;
  const Part<ir::ConstantRef> constant = read_constant(function, value, what);
  if (!constant) return Floats::unreadable(constant.why());
  if ((*constant)->type().dtype != ir::kFloat32) return Floats::unreadable(cat(what, " is not float32"));
  return (*constant)->as<float>();
}

std::vector<int64_t> integers(const ir::Constant& constant) {
  if (constant.type().dtype == ir::kInt32) {
    const auto values = constant.as<int32_t>();
    return {values.begin(), values.end()};
  }
  const auto values = constant.as<int64_t>();
  return {values.begin(), values.end()};
}

Part<float> read_scale(const ir::Function& function, ir::ValueId value, const char* what) {
  const Part<std::span<const float>> values = read_floats(function, value, what);
  if (!values) return Part<float>::unreadable(values.why());
  if (values->size() != 1)
    return Part<float>::unreadable(cat(what, " has ", values->size(), " values, expected one"));
  return values->front();
}

Part<int32_t> read_zero_point(const ir::Function& function, ir::ValueId value, const char* what) {
  const Part<ir::ConstantRef> constant = read_constant(function, value, what);
  if (!constant) return Part<int32_t>::unreadable(constant.why());
  if ((*constant)->type().dtype != ir::kInt32) return Part<int32_t>::unreadable(cat(what, " is not int32"));
  const std::span<const int32_t> values = (*constant)->as<int32_t>();
  if (values.empty() || std::ranges::any_of(values, [&](int32_t v) { return v != values[0]; }))
    return Part<int32_t>::unreadable(cat(what, " is not one number"));
  return values[0];
}

Clamp full_clamp(ir::DType dtype) {
  return {static_cast<int32_t>(dtype.min()), static_cast<int32_t>(dtype.max())};
}

Clamp clip_clamp(const ir::Node& clip, ir::DType dtype) {
  return {bound_in(op::attr_float(clip, "a_min"), dtype), bound_in(op::attr_float(clip, "a_max"), dtype)};
}

bool is_8_bit(ir::DType dtype) { return dtype == ir::kInt8 || dtype == ir::kUint8; }
bool is_quantized(ir::DType dtype) { return is_8_bit(dtype) || dtype == ir::kInt16; }

QuantizedMultiplier checked_multiplier(double real, std::string_view between) {
  constexpr int32_t kMaxShift = 30;
  const QuantizedMultiplier result = quantize_multiplier(real);
  if (result.shift > kMaxShift) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    cat("its scales make a factor of 2^30 or more between ", between));
  }
  return result;
}

AddMultipliers add_multipliers(float lhs_scale, float rhs_scale, float output_scale) {
  const double lhs = static_cast<double>(lhs_scale), rhs = static_cast<double>(rhs_scale);
  const double twice_max = 2.0 * std::max(lhs, rhs);
  const double output = static_cast<double>(1 << kAddLeftShift) * static_cast<double>(output_scale);
  return {quantize_multiplier(lhs / twice_max), quantize_multiplier(rhs / twice_max),
          quantize_multiplier(twice_max / output)};
}

// float32 throughout, as TFLite's Prepare.
QuantizedMultiplier product_multiplier(float lhs_scale, float rhs_scale, float output_scale) {
  const float real = lhs_scale * rhs_scale / output_scale;
  return checked_multiplier(static_cast<double>(real));
}

std::optional<SoftmaxScaling> softmax_scaling(double factor) {
  constexpr int32_t kIntegerBits = 5;
  constexpr double kMaxMultiplier = 2147483647.0;  // 2^31 - 1
  const double real = factor * static_cast<double>(1 << (31 - kIntegerBits));
  if (!(real > 1.0)) return std::nullopt;
  const QuantizedMultiplier quantized = quantize_multiplier(real < kMaxMultiplier ? real : kMaxMultiplier);
  // The largest difference whose shifted value is at most 31 in Q5.26.
  const int64_t radius = (int64_t{(1 << kIntegerBits) - 1} << (31 - kIntegerBits)) >> quantized.shift;
  return SoftmaxScaling{quantized.multiplier, quantized.shift, static_cast<int32_t>(-radius)};
}

std::vector<float> softmax_exponentials(float input_scale) {  // docs/numerics/softmax.md
  constexpr int kDifferences = 256;                           // of two bytes
  std::vector<float> table;
  for (int d = 0; d < kDifferences; ++d)
    table.push_back(static_cast<float>(exp_double(-static_cast<double>(input_scale) * d)));
  return table;
}

QuantizedMultiplier mean_multiplier(float input_scale, float output_scale, uint64_t count) {
  const QuantizedMultiplier factor =
      checked_multiplier(static_cast<double>(input_scale) / static_cast<double>(output_scale));
  const int32_t room = std::min({static_cast<int32_t>(std::bit_width(count)) - 1, 32, 31 + factor.shift});
  const uint64_t significand = static_cast<uint64_t>(factor.multiplier) << room;
  return {static_cast<int32_t>(significand / count), factor.shift - room};
}

namespace {

constexpr size_t kDataOperand = 0, kWeightOperand = 1;

bool is_convolution(const ir::Node& node) { return op::plain_name(*node.op) == "conv2d"; }
bool is_transposed(const ir::Node& node) { return node.op->name == "qnn.conv2d_transpose"; }

// Extents of the input and the output along the axes of the layout.
Geometry image_geometry(const ir::TensorType& data, const ir::TensorType& result,
                        const op::DataLayout& layout) {
  Geometry g;
  g.batch = data.shape[layout.n];
  g.in_h = data.shape[layout.h], g.in_w = data.shape[layout.w], g.in_c = data.shape[layout.c];
  g.out_h = result.shape[layout.h], g.out_w = result.shape[layout.w], g.out_c = result.shape[layout.c];
  return g;
}

}  // namespace

Geometry product_geometry(const ir::Function& function, const ir::Node& product) {
  const ir::TensorType& weight = function.type(product.operands[kWeightOperand]);
  const ir::TensorType& result = function.type(product.results[0]);
  if (is_convolution(product)) {
    Geometry g = image_geometry(function.type(product.operands[kDataOperand]), result,
                                op::data_layout(op::attr_string(product, "data_layout")));
    g.groups = op::attr_int(product, "groups");
    g.window = op::conv2d_window(product, weight);
    return g;
  }
  if (is_transposed(product)) {
    Geometry g =
        image_geometry(function.type(product.operands[kDataOperand]), result, op::data_layout("NHWC"));
    const ir::Ints &strides = op::attr_ints(product, "strides"), &crop = op::attr_ints(product, "crop");
    g.window.kernel_h = weight.shape[1], g.window.kernel_w = weight.shape[2];
    g.window.stride_h = strides[0], g.window.stride_w = strides[1];
    g.window.pad_top = crop[0], g.window.pad_left = crop[1];
    return g;
  }
  Geometry g;
  g.in_c = weight.shape[1];
  g.out_c = weight.shape[0];
  g.out_w = result.num_elements() / g.out_c;
  g.in_w = g.out_w;
  return g;
}

Geometry pool_geometry(const ir::Function& function, const ir::Node& pool) {
  Geometry g = image_geometry(function.type(pool.operands[kDataOperand]), function.type(pool.results[0]),
                              op::data_layout(op::attr_string(pool, "layout")));
  g.window = op::pool2d_window(pool);
  return g;
}

Geometry mean_geometry(const ir::Function& function, const ir::Node& mean) {
  const ir::Shape& shape = function.type(mean.operands[kDataOperand]).shape;
  Geometry g;
  if (shape.size() != 4) return g;
  g.batch = shape[0];
  g.in_h = g.window.kernel_h = shape[1];
  g.in_w = g.window.kernel_w = shape[2];
  g.in_c = g.out_c = shape[3];
  return g;
}

bool has_canonical_layout(const ir::Node& node) {
  if (op::plain_name(*node.op) == "dense" || is_transposed(node)) return true;
  if (!is_convolution(node)) return op::attr_string(node, "layout") == "NHWC";
  return op::attr_string(node, "data_layout") == "NHWC" && op::attr_string(node, "kernel_layout") == "OHWI";
}

namespace {

enum ProductOperand { kData, kWeight, kInputZeroPoint, kKernelZeroPoint, kInputScale, kKernelScale };
enum RequantizeOperand {
  kAccumulator,
  kAccumulatorScale,
  kAccumulatorZeroPoint,
  kOutputScale,
  kOutputZeroPoint
};

bool is_on_last_axis(const ir::Function& function, const ir::Node& node) {
  const size_t rank = function.type(node.results[0]).shape.size();
  return op::normalized_axis(op::attr_int(node, "axis"), rank) == static_cast<int64_t>(rank) - 1;
}
enum BiasAddOperand { kBiasData, kBias };
enum PadOperand { kPadData, kPadValue };

// Sums of the weights of each sign, less their zero point.
struct WeightSums {
  int64_t positive = 0;
  int64_t negative = 0;
};

template <typename T>
WeightSums sums_of(const T* weights, size_t num_k, int32_t zero_point) {
  // The sums of so many differences of bytes fit 32 bits, of which vectors hold more than of 64.
  constexpr size_t kBlock = 1 << 16;
  WeightSums sums;
  for (size_t begin = 0; begin < num_k; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, num_k);
    int32_t positive = 0, negative = 0;
    for (size_t k = begin; k < end; ++k) {
      const int32_t w = int32_t{weights[k]} - zero_point;
      positive += std::max(w, 0);
      negative += std::min(w, 0);
    }
    sums.positive += positive;
    sums.negative += negative;
  }
  return sums;
}

WeightSums sums_of(const LayerWeights& weights, size_t o) {
  const uint8_t* bytes = weights.bytes->bytes().data() + o * weights.num_k;
  const int32_t zero_point = weights.zero_point(o);
  if (weights.bytes->type().dtype == ir::kUint8) return sums_of(bytes, weights.num_k, zero_point);
  return sums_of(reinterpret_cast<const int8_t*>(bytes), weights.num_k, zero_point);
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
    if (is_quantized(layer.output_dtype)) {
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
      layer.has_bias_on_last_axis = is_on_last_axis(function_, *n_.bias_add);
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
    return read_constant(function_, node.operands[operand], what);
  }
  Part<int32_t> zero_point(const ir::Node& node, size_t operand, const char* what) const {
    return read_zero_point(function_, node.operands[operand], what);
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
    return result;
  }

  void requantization(QuantizedLayer* layer) const {
    const ir::Node& requantize = *n_.requantize;
    layer->contract = op::attr_string(requantize, "contract");
    layer->accumulator_zero_point =
        zero_point(requantize, kAccumulatorZeroPoint, "the accumulator's zero point");
    layer->output_zero_point = zero_point(requantize, kOutputZeroPoint, "the output's zero point");
    layer->requantizes_channels = requantizes_channels(function_, requantize);
    layer->scales = read_layer_scales(function_, product_, function_, requantize,
                                      static_cast<size_t>(layer->geometry.out_c));
  }

  const LayerNodes& n_;
  const ir::Function& function_;
  const ir::Node& product_;
};

}  // namespace

const LayerWeights::Range& LayerWeights::range() const {
  if (!range_) {
    Range range;
    for (size_t o = 0; o < num_o; ++o) {
      for (size_t k = 0; k < num_k; ++k) {
        const int64_t weight = (*this)(o, k);
        range.min = std::min(range.min, weight);
        range.max = std::max(range.max, weight);
      }
    }
    range_ = range;
  }
  return *range_;
}

Part<LayerScales> read_layer_scales(const ir::Function& product_function, const ir::Node& product,
                                    const ir::Function& requantize_function, const ir::Node& requantize,
                                    size_t channels) {
  const auto unreadable = [](std::string why) { return Part<LayerScales>::unreadable(std::move(why)); };
  const Part<float> input = read_scale(product_function, product.operands[kInputScale], "the input's scale");
  if (!input) return unreadable(input.why());
  const auto weights = read_floats(product_function, product.operands[kKernelScale], "the weights' scale");
  if (!weights) return unreadable(weights.why());
  const auto given =
      read_floats(requantize_function, requantize.operands[kAccumulatorScale], "the accumulator's scale");
  if (!given) return unreadable(given.why());
  const Part<float> output =
      read_scale(requantize_function, requantize.operands[kOutputScale], "the output's scale");
  if (!output) return unreadable(output.why());
  for (const size_t count : {weights->size(), given->size()}) {
    if (count != 1 && count != channels) return unreadable(cat(count, " scales for ", channels, " channels"));
  }
  const std::string& rule = op::attr_string(requantize, "multiplier");
  if (rule != "product_f32" && rule != "product_f64") {
    return unreadable(
        cat("multiplier rule '", rule, "' is not known, expected 'product_f64' or 'product_f32'"));
  }
  return LayerScales{*input, *weights, *given, *output, rule == "product_f32"};
}

bool requantizes_channels(const ir::Function& function, const ir::Node& requantize) {
  return function.type(requantize.operands[kAccumulatorScale]).num_elements() == 1 ||
         is_on_last_axis(function, requantize);
}

int32_t pad_value(const ir::Constant& constant) {
  const ir::DType dtype = constant.type().dtype;
  if (dtype == ir::kFloat32) return static_cast<int32_t>(constant.as<float>()[0]);
  if (dtype == ir::kInt32) return constant.as<int32_t>()[0];
  if (dtype == ir::kInt16) return constant.as<int16_t>()[0];
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

namespace {

template <typename T>
Part<std::vector<T>> bias_of(const QuantizedLayer& layer, ir::DType dtype) {
  using Bias = Part<std::vector<T>>;
  const auto channels = static_cast<size_t>(layer.geometry.out_c);
  if (!layer.bias) return Bias::unreadable(layer.bias.why());
  const ir::ConstantRef& bias = *layer.bias;
  if (bias == nullptr) return std::vector<T>(channels, 0);
  const ir::TensorType& type = bias->type();
  if (type.dtype != dtype || type.num_elements() != layer.geometry.out_c)
    return Bias::unreadable(cat("bias ", type, ", expected ", channels, " ", dtype));
  const std::span<const T> values = bias->as<T>();
  return std::vector<T>(values.begin(), values.end());
}

}  // namespace

ir::DType QuantizedLayer::accumulator_dtype() const {
  return nodes.function->type(nodes.product->results[0]).dtype;
}

Part<std::vector<int32_t>> QuantizedLayer::channel_bias() const {
  return bias_of<int32_t>(*this, ir::kInt32);
}

Part<std::vector<int64_t>> QuantizedLayer::wide_channel_bias() const {
  if (accumulator_dtype() == ir::kInt64) return bias_of<int64_t>(*this, ir::kInt64);
  const Part<std::vector<int32_t>> narrow = channel_bias();
  if (!narrow) return Part<std::vector<int64_t>>::unreadable(narrow.why());
  return std::vector<int64_t>(narrow->begin(), narrow->end());
}

std::optional<std::vector<AccumulatorRange>> QuantizedLayer::accumulator_ranges() const {
  const Part<std::vector<int32_t>> biases = channel_bias();
  if (!weights || !input_zero_point || input_dtype.bits != 8 || !biases || biases->size() != weights->num_o)
    return std::nullopt;
  // What pads is a value of the input's dtype too.
  const int64_t x_min = input_dtype.min() - *input_zero_point;
  const int64_t x_max = input_dtype.max() - *input_zero_point;
  std::vector<AccumulatorRange> ranges(weights->num_o);
  for (size_t o = 0; o < weights->num_o; ++o) {
    const WeightSums sums = sums_of(*weights, o);
    ranges[o] = {(*biases)[o] + sums.positive * x_min + sums.negative * x_max,
                 (*biases)[o] + sums.positive * x_max + sums.negative * x_min};
    if (!computed_bias) continue;
    ranges[o].min += computed_bias->ranges[o].min;
    ranges[o].max += computed_bias->ranges[o].max;
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
