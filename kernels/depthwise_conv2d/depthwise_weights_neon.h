// Weights of depthwise convolutions less their zero point with NEON. That may take 9 bits: it is the sum of
// two bytes then, as near as a byte comes to it, and the remainder. Internal linkage only.
#ifndef QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_WEIGHTS_NEON_H_
#define QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_WEIGHTS_NEON_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"

namespace qplan {
namespace {

// Channels of a tap in the layout hwo16, and so bytes from one tap's weights to those of the next.
inline size_t rounded_channels(const DepthwiseConv2dArgs& a) { return (size_t{a.input_c} + 15) / 16 * 16; }

// Zero points for which two bytes hold all weights less the zero point.
inline bool two_bytes_hold_weights(const DepthwiseConv2dArgs& a) {
  return a.weights_zero_point >= -127 && a.weights_zero_point <= 127;
}

template <typename Vector>
struct WeightParts {
  Vector near, remainder;
};

inline WeightParts<int8x8_t> weight_parts(const DepthwiseConv2dArgs& a, int8x8_t weights) {
  const int8x8_t zero_point = vdup_n_s8(static_cast<int8_t>(a.weights_zero_point));
  const int8x8_t near = vqsub_s8(weights, zero_point);
  return {near, vsub_s8(vsub_s8(weights, zero_point), near)};
}

inline WeightParts<int8x16_t> weight_parts(const DepthwiseConv2dArgs& a, int8x16_t weights) {
  const int8x16_t zero_point = vdupq_n_s8(static_cast<int8_t>(a.weights_zero_point));
  const int8x16_t near = vqsubq_s8(weights, zero_point);
  return {near, vsubq_s8(vsubq_s8(weights, zero_point), near)};
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_WEIGHTS_NEON_H_
