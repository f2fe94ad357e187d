// Quantised operators as numbers: constants, scales, zero points, clamps and the multipliers made of them,
// and whole layers of weights. All targets read them here, so that a model is refused with the same text
// everywhere.
#ifndef QPLAN_SRC_PACKER_LAYER_QUANTIZED_LAYER_H_
#define QPLAN_SRC_PACKER_LAYER_QUANTIZED_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/numeric/requantize.h"
#include "src/packer/ir/module.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"

namespace qplan::layer {

// What was read of a model, or why it cannot be read: "the weights' scale is not a constant".
template <typename T>
class Part {
 public:
  Part() = default;
  Part(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): as std::optional
  static Part unreadable(std::string why) {
    Part part;
    part.why_ = std::move(why);
    return part;
  }

  explicit operator bool() const { return value_.has_value(); }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return &*value_; }
  // Only where there is no value.
  const std::string& why() const { return why_; }

 private:
  std::optional<T> value_;
  std::string why_ = "it is not there";
};

// what: the subject of the refusal, "the weights' scale".
Part<ir::ConstantRef> read_constant(const ir::Function& function, ir::ValueId value, const char* what);
Part<std::span<const float>> read_floats(const ir::Function& function, ir::ValueId value, const char* what);
Part<float> read_scale(const ir::Function& function, ir::ValueId value, const char* what);
// The elements of an int32 or int64 constant.
std::vector<int64_t> integers(const ir::Constant& constant);
// One number for all channels.
Part<int32_t> read_zero_point(const ir::Function& function, ir::ValueId value, const char* what);

// What a quantised result is clamped to, in units of the output.
struct Clamp {
  int32_t min = 0;
  int32_t max = 0;
};
Clamp full_clamp(ir::DType dtype);
// The dtype's range, cut by the clip.
Clamp clip_clamp(const ir::Node& clip, ir::DType dtype);

bool is_8_bit(ir::DType dtype);
// int8, uint8, int16: what activations of quantised networks are.
bool is_quantized(ir::DType dtype);

// The scales of quantised operators, and the multipliers that their contracts make of them
// (docs/numerics.md, "Scales"): one place for all targets.

// The scales of a layer of weights and of its qnn.requantize.
struct LayerScales {
  float input = 1.0f;
  std::span<const float> weights;  // one or one per channel
  std::span<const float> product;  // what the requantisation names: one or one per channel
  float output = 1.0f;
  bool product_in_float = false;  // multiplier="product_f32"

  // One multiplier serves all channels.
  bool is_one() const { return weights.size() == 1 && product.size() == 1; }
  float weight(size_t o) const { return weights[weights.size() == 1 ? 0 : o]; }
  float given(size_t o) const { return product[product.size() == 1 ? 0 : o]; }
  bool given_is_meant(size_t o) const {
    return !op::means_product(static_cast<double>(given(o)), static_cast<double>(input * weight(o)));
  }

  // Real multiplier of channel o under tfl2 and tfl1.
  double multiplier(size_t o) const {
    if (given_is_meant(o)) return static_cast<double>(given(o)) / static_cast<double>(output);
    if (product_in_float) return static_cast<double>(input * weight(o)) / static_cast<double>(output);
    return static_cast<double>(input) * static_cast<double>(weight(o)) / static_cast<double>(output);
  }
  // The same under f32e: product and quotient are float32.
  float f32e(size_t o) const {
    const float product_scale = given_is_meant(o) ? given(o) : input * weight(o);
    return product_scale / output;
  }
};

// The multiplier that kernels accept. PackError (QPLAN_MODEL_UNSUPPORTED) for one that is too large; between:
// what it leads from and to, in that error's text.
QuantizedMultiplier checked_multiplier(double real, std::string_view between = "accumulator and output");

// An addition under tfl2 (docs/numerics/add.md): both inputs, shifted left by kAddLeftShift, are brought to
// twice the larger scale, their sum to the output's.
inline constexpr int32_t kAddLeftShift = 20;
inline constexpr int32_t kAddLeftShiftInt16 = 15;
struct AddMultipliers {
  QuantizedMultiplier lhs, rhs, output;
};
AddMultipliers add_multipliers(float lhs_scale, float rhs_scale, float output_scale);

// A product under tfl2 (docs/numerics/mul.md). PackError (QPLAN_MODEL_UNSUPPORTED) as checked_multiplier.
QuantizedMultiplier product_multiplier(float lhs_scale, float rhs_scale, float output_scale);

// What brings differences to a softmax's maximum to Q5.26 under tfl2 (kernels/softmax/softmax.h); those below
// diff_min count as nothing.
struct SoftmaxScaling {
  int32_t multiplier = 0, left_shift = 0, diff_min = 0;
};
// factor: what a unit of the input is in the exponent. nullopt: TFLite refuses one of at most 2^-26.
std::optional<SoftmaxScaling> softmax_scaling(double factor);

// e to the power of -input_scale * d, for differences d from 0 to 255: a softmax's table under f32e.
std::vector<float> softmax_exponentials(float input_scale);

// A mean of count elements under tfl2: the count is divided into the multiplier's significand
// (docs/numerics/mean.md). PackError (QPLAN_MODEL_UNSUPPORTED) for scales that are too far apart.
QuantizedMultiplier mean_multiplier(float input_scale, float output_scale, uint64_t count);

// A layer of weights: geometry, weights, bias, scales, zero points, clamp, the range of its accumulators. It
// is read here, once from the nodes that a composite matched, for all targets; targets differ in what they
// take of it.

// The extents of a layer: those of a convolution, a fully connected layer, or a pool over windows.

// A fully connected layer is a 1x1 convolution over a row of positions.
struct Geometry {
  int64_t batch = 1;
  int64_t in_h = 1, in_w = 1, in_c = 1;
  int64_t out_h = 1, out_w = 1, out_c = 1;
  int64_t groups = 1;
  op::Window2d window;

  int64_t padded_h() const { return in_h + window.pad_top + window.pad_bottom; }
  int64_t padded_w() const { return in_w + window.pad_left + window.pad_right; }
  int64_t taps() const { return window.kernel_h * window.kernel_w; }
  // Positions of the input that one position of the output looks at.
  int64_t window_h() const { return (window.kernel_h - 1) * window.dilation_h + 1; }
  int64_t window_w() const { return (window.kernel_w - 1) * window.dilation_w + 1; }
  bool is_depthwise() const { return groups > 1 && groups == in_c; }
};

// The layouts may be any that the IR knows.
Geometry product_geometry(const ir::Function& function, const ir::Node& product);  // qnn.conv2d, qnn.dense
Geometry pool_geometry(const ir::Function& function, const ir::Node& pool);
// A mean over height and width: one window over the whole image.
Geometry mean_geometry(const ir::Function& function, const ir::Node& mean);

// Activations are NHWC and the weights of a convolution OHWI. node: a product or a pool.
bool has_canonical_layout(const ir::Node& node);

// nn.pad? -> qnn.conv2d or qnn.dense -> nn.bias_add? -> qnn.requantize? -> clip?; null where the layer has no
// such node.
struct LayerNodes {
  const ir::Function* function = nullptr;
  const ir::Node* pad = nullptr;
  const ir::Node* product = nullptr;  // always there
  const ir::Node* bias_add = nullptr;
  const ir::Node* requantize = nullptr;  // null: the accumulators are the result
  const ir::Node* clip = nullptr;
};

// Weights in the order [o][k], with the zero points to take off them.
class LayerWeights {
 public:
  ir::ConstantRef bytes;                 // int8 or uint8
  std::span<const int32_t> zero_points;  // one or one per channel
  size_t num_o = 0, num_k = 0;

  int64_t operator()(size_t o, size_t k) const {
    const uint8_t byte = bytes->bytes()[o * num_k + k];
    const int64_t value = bytes->type().dtype == ir::kInt8 ? static_cast<int8_t>(byte) : byte;
    return value - zero_point(o);
  }
  int32_t zero_point(size_t o) const { return zero_points[zero_points.size() == 1 ? 0 : o]; }

  // From the least to the largest weight less its zero point, 0 included. The weights are looked at when this
  // is first asked.
  struct Range {
    int64_t min = 0, max = 0;
  };
  const Range& range() const;

 private:
  mutable std::optional<Range> range_;
};

// What lies around the layer's data.
struct Padding {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  std::optional<int32_t> value;  // nullopt: the input's zero point

  bool is_empty() const { return (top | left | bottom | right) == 0; }
};

// Where an accumulator can lie, bias included, whatever the input is.
struct AccumulatorRange {
  int64_t min = 0, max = 0;
  int64_t magnitude() const { return -min > max ? -min : max; }
};

// A bias that the network computes: the sums of another layer (src/packer/target/cpu/repeated_pixels.cc).
struct ComputedBias {
  ir::ValueId value;                     // [channels]
  std::vector<AccumulatorRange> ranges;  // of its elements
};

// Everything is in the terms of the model: uint8 is not shifted to int8.
struct QuantizedLayer {
  LayerNodes nodes;
  Geometry geometry;  // of the product: its input is what nn.pad makes, where there is one
  bool is_canonical = false;
  ir::DType input_dtype, weight_dtype;
  ir::DType output_dtype;  // of the last node
  Clamp clamp;             // of quantised outputs

  // Around the data before nn.pad: what nn.pad and the product's window make together.
  Part<Padding> padding;
  Part<int32_t> input_zero_point;
  Part<ir::ConstantRef> weight_constant;  // in the model's layout
  Part<int32_t> weight_zero_point;        // the same for all channels
  Part<LayerWeights> weights;             // of canonical layers, with zero points per channel
  Part<ir::ConstantRef> bias;             // null: none, or a computed one
  std::optional<ComputedBias> computed_bias;
  bool has_bias_on_last_axis = true;  // and so along the channels, where the layout is canonical

  // ---- with requantize only
  std::string contract;
  Part<int32_t> accumulator_zero_point, output_zero_point;
  Part<LayerScales> scales;
  bool requantizes_channels = true;  // as the function of that name says

  // The geometry with nn.pad taken into the window. padding can be read.
  Geometry unpadded_geometry() const;
  // int32 or int64.
  ir::DType accumulator_dtype() const;
  // One number per channel, 0 where there is no bias that is a constant.
  Part<std::vector<int32_t>> channel_bias() const;
  Part<std::vector<int64_t>> wide_channel_bias() const;  // of accumulators of either dtype
  // One per channel. nullopt: the weights or the bias are no constants of the usual types.
  std::optional<std::vector<AccumulatorRange>> accumulator_ranges() const;
  // Under tfl2 and tfl1, one per channel. scales can be read.
  std::vector<QuantizedMultiplier> multipliers() const;
};

// Never fails: a part that cannot be read says why.
QuantizedLayer read_layer(const LayerNodes& nodes);

// The scales of a layer whose accumulators a qnn.requantize of another function may read.
Part<LayerScales> read_layer_scales(const ir::Function& product_function, const ir::Node& product,
                                    const ir::Function& requantize_function, const ir::Node& requantize,
                                    size_t channels);

// Whether a qnn.requantize has one scale for all accumulators, or one for each channel, the last axis. Scales
// along another axis are not those of a layer.
bool requantizes_channels(const ir::Function& function, const ir::Node& requantize);

// The values of an nn.pad and its like, a constant of the data's dtype or written as float32 or int32.
int32_t pad_value(const ir::Constant& constant);

}  // namespace qplan::layer

#endif  // QPLAN_SRC_PACKER_LAYER_QUANTIZED_LAYER_H_
