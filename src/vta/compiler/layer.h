// A convolution or fully connected layer that a pattern of the VTA target matched, in the terms of its tiles.
#ifndef QPLAN_SRC_VTA_COMPILER_LAYER_H_
#define QPLAN_SRC_VTA_COMPILER_LAYER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/numeric/quantize_multiplier.h"
#include "src/packer/op/shape.h"
#include "src/packer/target/target.h"
#include "src/vta/compiler/config.h"

namespace qplan::target::vta {

inline int64_t blocks(int64_t channels) { return (channels + kBlock - 1) / kBlock; }

// A fully connected layer is a 1x1 convolution over a row of positions.
struct Geometry {
  int64_t batch = 1;
  int64_t in_h = 1, in_w = 1, in_c = 1;  // with an nn.pad before the layer: its result
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

// Of "product" (qnn.conv2d, qnn.dense), "pool" or "mean" (over the image's height and width). The layouts may
// be any that the IR knows.
Geometry geometry(const Candidate& candidate);
bool has_canonical_layout(const Candidate& candidate);  // NHWC and OHWI

// Where an accumulator can lie, bias included, whatever the input is.
struct AccumulatorRange {
  int64_t min = 0, max = 0;
  int64_t magnitude() const { return -min > max ? -min : max; }
};
// Per output channel, from the actual weights. nullopt: weights or bias are not constants of the usual types.
std::optional<std::vector<AccumulatorRange>> accumulator_ranges(const Candidate& candidate);

// The multiplier of each output channel under TFL2. nullopt: the scales do not fit the channels.
std::optional<std::vector<QuantizedMultiplier>> multipliers(const Candidate& candidate);

// Left shift of the multiplier of each output channel under TFL2, 0 where it shifts to the right. nullopt:
// the scales do not fit the channels.
std::optional<std::vector<int32_t>> left_shifts(const Candidate& candidate);

// [O][KH][KW][I] or [O][I], less their zero points. nullopt: not constants of 8 bits in that order.
std::optional<std::vector<int16_t>> centred_weights(const Candidate& candidate);

// The least and the largest weight less its zero point.
struct WeightRange {
  int64_t min = 0, max = 0;
};
std::optional<WeightRange> weight_range(const Candidate& candidate);

// What one weight can be: the sum of up to two int8 weights, each with a micro-op of its own on the same
// input and accumulator. The second one is needed only in elements in which some weight is beyond int8.
inline constexpr int64_t kMinWeight = -256, kMaxWeight = 254;
// 1, or 2 where weights less their zero point are beyond int8: w = clamp(w, -128, 127) + rest.
int64_t num_weight_planes(const Candidate& candidate);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_LAYER_H_
