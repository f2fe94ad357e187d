// A quantised layer of weights as numbers: geometry, weights, bias, scales, zero points, clamp, the range of
// its accumulators. It is read here, once from the nodes that a composite matched, for all targets; targets
// differ in what they take of it.
#ifndef QPLAN_SRC_PACKER_LAYER_QUANTIZED_LAYER_H_
#define QPLAN_SRC_PACKER_LAYER_QUANTIZED_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/numeric/requantize.h"
#include "src/packer/ir/module.h"
#include "src/packer/layer/operands.h"
#include "src/packer/op/shape.h"

namespace qplan::layer {

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
  Part<ir::ConstantRef> bias;             // null: none
  bool has_bias_on_last_axis = true;      // and so along the channels, where the layout is canonical

  // ---- with requantize only
  std::string contract;
  Part<int32_t> accumulator_zero_point, output_zero_point;
  Part<LayerScales> scales;
  bool requantizes_last_axis = true;

  // The geometry with nn.pad taken into the window. padding can be read.
  Geometry unpadded_geometry() const;
  // int32 or int64.
  ir::DType accumulator_dtype() const;
  // One number per channel, 0 where there is no bias.
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

// The values of an nn.pad and its like, a constant of the data's dtype or written as float32 or int32.
int32_t pad_value(const ir::Constant& constant);

}  // namespace qplan::layer

#endif  // QPLAN_SRC_PACKER_LAYER_QUANTIZED_LAYER_H_
