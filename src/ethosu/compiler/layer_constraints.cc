// Under which conditions the device computes a layer of weights, to the bit: rows of docs/supported_ops.md.
#include <algorithm>

#include "kernels/numeric/requantize.h"
#include "src/ethosu/compiler/target.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"

namespace qplan::ethosu::compiler {
namespace {

using layer::is_8_bit;
using layer::QuantizedLayer;

constexpr int64_t kMaxMagnitude = 255;  // of a weight less its zero point
constexpr int64_t kMaxWindow = 64, kMaxTaps = 4096;
constexpr int32_t kAccumulatorBitsInt16 = 40;
constexpr int64_t kMaxPadBefore = 127, kMaxPadAfter = 128;
constexpr int64_t kMaxChannelsInt16 = 64;  // of a depthwise layer, whose work grows with their square

Constraint dtypes(const std::string& prefix, bool takes_int16) {
  return {prefix + "dtype",
          takes_int16 ? "weights are int8 or uint8; input and output are int8 or uint8, or both int16"
                      : "input, output and weights are int8 or uint8",
          kQuantizeTo8Bits, [takes_int16](const Candidate& c) -> std::string {
            const QuantizedLayer& layer = c.layer();
            const bool are_8_bit = is_8_bit(layer.input_dtype) && is_8_bit(layer.output_dtype);
            const bool are_int16 = layer.input_dtype == ir::kInt16 && layer.output_dtype == ir::kInt16;
            if (is_8_bit(layer.weight_dtype) && (are_8_bit || (takes_int16 && are_int16))) return "";
            return cat("input ", layer.input_dtype, ", weights ", layer.weight_dtype, ", output ",
                       layer.output_dtype);
          }};
}

// Accumulators of 32 bits are rounded twice. No stream of Arm's compiler shows whether the device does so
// after sums of 40 bits, which it makes of 16-bit inputs.
Constraint int16(const std::string& prefix) {
  return {prefix + "int16", "int16: accumulators of int64; zero points of 0; the border's value is 0",
          "convert the model with a bias of int64, the default of TFLite's converter for int16 activations",
          [](const Candidate& c) -> std::string {
            const QuantizedLayer& layer = c.layer();
            if (layer.input_dtype != ir::kInt16) return "";
            if (layer.accumulator_dtype() != ir::kInt64)
              return cat("accumulators of ", layer.accumulator_dtype());
            if (layer.input_zero_point && *layer.input_zero_point != 0)
              return cat("the input's zero point is ", *layer.input_zero_point);
            if (layer.output_zero_point && *layer.output_zero_point != 0)
              return cat("the output's zero point is ", *layer.output_zero_point);
            if (layer.padding && !layer.padding->is_empty() && layer.padding->value.value_or(0) != 0)
              return cat("the border's value is ", *layer.padding->value);
            return "";
          }};
}

Constraint layout(const std::string& prefix) {
  return {prefix + "layout", "activations are NHWC, weights OHWI, bias and scales along the channels",
          kRunThePasses, [](const Candidate& c) -> std::string {
            const QuantizedLayer& layer = c.layer();
            if (!layer.is_canonical) return "layouts other than NHWC and OHWI";
            if (!layer.has_bias_on_last_axis) return "the bias is not along the channels";
            return layer.requantizes_channels ? ""
                                              : "the scales of the requantisation are not along the channels";
          }};
}

// Constants that the device needs as numbers.
Constraint constants(const std::string& prefix) {
  return {prefix + "constants", "weights, bias, scales and zero points are constants; padding is one value",
          kNothingToChange, [](const Candidate& c) -> std::string {
            const QuantizedLayer& layer = c.layer();
            if (!layer.is_canonical) return "";
            if (!layer.weights) return layer.weights.why();
            const auto bias = layer.wide_channel_bias();
            if (!bias) return bias.why();
            if (!layer.scales) return layer.scales.why();
            if (!layer.input_zero_point) return layer.input_zero_point.why();
            if (!layer.output_zero_point) return layer.output_zero_point.why();
            return layer.padding ? "" : layer.padding.why();
          }};
}

Constraint contract() {
  return {"ethosu.requantize.contract", "contract tfl2",
          "pack with --contract=tfl2 if these results are acceptable", [](const Candidate& c) -> std::string {
            const std::string& contract = c.layer().contract;
            return contract == "tfl2" ? "" : cat("contract '", contract, "', expected 'tfl2'");
          }};
}

bool is_readable(const QuantizedLayer& layer) {
  return layer.is_canonical && layer.weights && layer.scales && layer.input_zero_point && layer.padding &&
         layer.wide_channel_bias();
}

Constraint weight_range(const std::string& prefix) {
  return {prefix + "weights",
          cat("weights less their zero point are from -", kMaxMagnitude, " to ", kMaxMagnitude),
          kNothingToChange, [](const Candidate& c) -> std::string {
            if (!c.layer().weights) return "";
            const layer::LayerWeights::Range& range = c.layer().weights->range();
            if (range.min >= -kMaxMagnitude && range.max <= kMaxMagnitude) return "";
            return cat("weights less their zero point reach from ", range.min, " to ", range.max);
          }};
}

// What an accumulator's magnitude must be below, under the multiplier of its channel. One of 64 bits is
// scaled once; its low 32 bits are the result.
int64_t accumulator_limit(const QuantizedLayer& layer, const QuantizedMultiplier& m) {
  if (layer.accumulator_dtype() != ir::kInt64) return (int64_t{1} << 31) >> std::clamp(m.shift, 0, 31);
  return int64_t{1} << std::clamp(31 - m.shift, 0, kAccumulatorBitsInt16 - 1);
}

// The sums of products of one sign, whatever the order in which the device adds them.
Constraint bound() {
  return {
      "ethosu.requantize.bound",
      "every accumulator, in any order of its sums and shifted left by its multiplier's exponent, is below "
      "2^31 for any input; of int16, where its multiplier shifts it right, below 2^39; proved from weights "
      "and bias",
      "smaller weights or a bias within the range; nothing to change for most models",
      [](const Candidate& c) -> std::string {
        const QuantizedLayer& layer = c.layer();
        if (!is_readable(layer) || layer.contract != "tfl2") return "";
        const std::vector<AccumulatorBound> bounds = accumulator_bounds(layer);
        const std::vector<QuantizedMultiplier> multipliers = layer.multipliers();
        for (size_t o = 0; o < bounds.size(); ++o) {
          const QuantizedMultiplier& m = multipliers[multipliers.size() == 1 ? 0 : o];
          if (layer.accumulator_dtype() == ir::kInt64 && m.shift > kMaxWideShift)
            return cat("the multiplier of channel ", o, " is 2^", m.shift - 1, " or more, limit 2^",
                       kMaxWideShift);
          const int64_t limit = accumulator_limit(layer, m);
          const int64_t magnitude = std::max(bounds[o].most, -bounds[o].least);
          if (magnitude < limit) continue;
          return cat("the accumulator of channel ", o, " may reach ", magnitude, ", limit ", limit);
        }
        return "";
      }};
}

Constraint accumulator_zero_point() {
  return {"ethosu.requantize.zero_point", "the accumulator's zero point is 0", kNothingToChange,
          [](const Candidate& c) -> std::string {
            const layer::Part<int32_t>& zero_point = c.layer().accumulator_zero_point;
            if (!zero_point) return zero_point.why();
            return *zero_point == 0 ? "" : cat("the accumulator's zero point is ", *zero_point);
          }};
}

Constraint batch(const std::string& prefix) {
  return {prefix + "batch", "one image", "pack the model with a batch of 1",
          [](const Candidate& c) -> std::string {
            const int64_t n = c.layer().geometry.batch;
            return n == 1 ? "" : cat("a batch of ", n, ", limit 1");
          }};
}

Constraint padding(const std::string& prefix) {
  return {
      prefix + "padding",
      cat("padding by height and width: at most ", kMaxPadBefore, " before and ", kMaxPadAfter,
          " after; a window reads the input"),
      kNothingToChange, [](const Candidate& c) -> std::string {
        if (!c.layer().padding) return "";
        const layer::Padding& pad = *c.layer().padding;
        const layer::Geometry g = c.layer().unpadded_geometry();
        const auto reaches_input = [](int64_t out, int64_t stride, int64_t window_extent, int64_t before) {
          return (out - 1) * stride + window_extent > before;
        };
        if (!reaches_input(g.out_h, g.window.stride_h, g.window_h(), g.window.pad_top) ||
            !reaches_input(g.out_w, g.window.stride_w, g.window_w(), g.window.pad_left))
          return "windows that read nothing but padding";
        if (std::max(pad.top, pad.left) <= kMaxPadBefore && std::max(pad.bottom, pad.right) <= kMaxPadAfter)
          return "";
        return cat("padding ", pad.top, ", ", pad.left, ", ", pad.bottom, ", ", pad.right);
      }};
}

Constraint window(const std::string& prefix) {
  return {prefix + "kernel",
          cat("a dilated kernel of at most ", kMaxWindow, " rows and ", kMaxTaps, " taps; dilation 1 or 2"),
          kNothingToChange, [](const Candidate& c) -> std::string {
            const layer::Geometry& g = c.layer().geometry;
            const op::Window2d& w = g.window;
            const bool dilates = (w.kernel_h > 1 && w.dilation_h > 2) || (w.kernel_w > 1 && w.dilation_w > 2);
            if (g.window_h() <= kMaxWindow && product(g.window_h(), g.window_w()) <= kMaxTaps && !dilates)
              return "";
            return cat("a dilated kernel of ", g.window_h(), " x ", g.window_w(), ", dilations ",
                       w.dilation_h, " and ", w.dilation_w);
          }};
}

Constraint strides(const std::string& prefix) {
  return {prefix + "stride", "strides of at most 3", kNothingToChange, [](const Candidate& c) -> std::string {
            const layer::Geometry& g = c.layer().geometry;
            if ((g.out_h == 1 || g.window.stride_h <= 3) && (g.out_w == 1 || g.window.stride_w <= 3))
              return "";
            return cat("strides ", g.window.stride_h, " and ", g.window.stride_w, ", limit 3");
          }};
}

Constraint extent(const std::string& prefix) {
  return {prefix + "extent", "extents of at most 65536", kNothingToChange,
          [](const Candidate& c) -> std::string {
            const layer::Geometry& g = c.layer().geometry;
            const int64_t largest = std::max({g.in_h, g.in_w, g.in_c, g.out_h, g.out_w, g.out_c});
            return largest <= kMaxExtent ? "" : cat("an extent of ", largest);
          }};
}

Rows common(const std::string& prefix, bool takes_int16) {
  Rows rows = {dtypes(prefix, takes_int16),
               constants(prefix),
               layout(prefix),
               weight_range(prefix),
               batch(prefix),
               extent(prefix),
               contract(),
               accumulator_zero_point(),
               bound()};
  if (takes_int16) rows.push_back(int16(prefix));
  return rows;
}

Rows windowed(const std::string& prefix) {
  Rows rows = common(prefix, true);
  append(&rows, {padding(prefix), window(prefix), strides(prefix)});
  return rows;
}

}  // namespace

Rows conv2d_constraints() {
  const std::string prefix = "ethosu.conv2d.";
  Rows rows = windowed(prefix);
  rows.push_back({prefix + "groups", "one group, or as many as channels (depthwise)",
                  "a convolution without groups", [](const Candidate& c) -> std::string {
                    const int64_t groups = c.layer().geometry.groups;
                    return groups == 1 ? "" : cat(groups, " groups, limit 1");
                  }});
  return rows;
}

Rows depthwise_constraints() {
  const std::string prefix = "ethosu.depthwise.";
  Rows rows = windowed(prefix);
  rows.push_back({prefix + "multiplier", "as many output channels as input channels",
                  "a depthwise convolution with channel multiplier 1", [](const Candidate& c) -> std::string {
                    const layer::Geometry& g = c.layer().geometry;
                    return g.out_c == g.in_c ? "" : cat(g.out_c, " output channels of ", g.in_c);
                  }});
  rows.push_back({prefix + "channels",
                  cat("int16: at most ", kMaxChannelsInt16,
                      " channels; the device computes an ordinary convolution with zeros among its weights"),
                  kNothingToChange, [](const Candidate& c) -> std::string {
                    const int64_t channels = c.layer().geometry.in_c;
                    if (c.layer().input_dtype != ir::kInt16 || channels <= kMaxChannelsInt16) return "";
                    return cat(channels, " channels");
                  }});
  return rows;
}

Rows conv2d_transpose_constraints() {
  const std::string prefix = "ethosu.conv2d_transpose.";
  Rows rows = common(prefix, false);
  rows.push_back({prefix + "stride",
                  "strides of 2, or of 1, along both axes; an axis of one element has none", kNothingToChange,
                  [](const Candidate& c) -> std::string {
                    const layer::Geometry& g = c.layer().geometry;
                    if (transposed_window(g)) return "";
                    return cat("strides ", g.window.stride_h, " and ", g.window.stride_w);
                  }});
  rows.push_back(window(prefix));
  rows.push_back(
      {prefix + "padding",
       cat("less is cut off before the output than the window has; at most ", kMaxPadBefore,
           " rows and columns before the input and ", kMaxPadAfter, " after it; a window reads the input"),
       kNothingToChange, [](const Candidate& c) -> std::string {
         const layer::Geometry& g = c.layer().geometry;
         const auto w = transposed_window(g);
         if (!w) return "";
         const auto [before, most_before] = std::minmax(w->pad_top, w->pad_left);
         const bool reads_input =
             g.out_h - 1 - w->pad_top < w->rows && g.out_w - 1 - w->pad_left < w->columns;
         if (before >= 0 && most_before <= kMaxPadBefore && reads_input &&
             std::max(w->pad_bottom, w->pad_right) <= kMaxPadAfter)
           return "";
         return cat("padding ", w->pad_top, ", ", w->pad_left, ", ", w->pad_bottom, ", ", w->pad_right);
       }});
  return rows;
}

Rows dense_constraints() {
  const std::string prefix = "ethosu.dense.";
  Rows rows = common(prefix, true);
  rows.push_back({prefix + "shape", "at most three axes beside those of extent 1 in front", kNothingToChange,
                  [](const Candidate& c) -> std::string {
                    const ir::TensorType& data = c.function().type(c.layer().nodes.product->operands[0]);
                    return image_of(data) ? "" : cat(data);
                  }});
  return rows;
}

}  // namespace qplan::ethosu::compiler
