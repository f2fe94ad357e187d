// Where the taps of an output row are: for every output pixel the addresses of the kernel_h * kernel_w input
// pixels under it, in pairs, a row of padding standing for those outside. Shared by the ISA files; internal
// linkage only.
#ifndef QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_TAPS_H_
#define QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_TAPS_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/layout.h"

namespace qplan {
namespace {

// What the vector variants compute: everything but ACC32, one output per input channel, with an input zero
// point that they take (is_product_origin).
inline Refusal taps_accepts(const DepthwiseConv2dArgs& a, bool takes_zero_point) {
  if (a.contract == Contract::kAcc32) return Refusal::kContract;
  if (a.output_c != a.input_c) return Refusal::kGroups;
  if (a.weights_layout != kLayout_hwo16) return Refusal::kLayout;
  if (!takes_zero_point) return Refusal::kInputZeroPoint;
  const bool fits =
      a.input_c < (1u << 30) && a.output_w < (1u << 20) && uint64_t{a.kernel_h} * a.kernel_w < (1u << 10);
  return fits ? Refusal::kNone : Refusal::kTooLarge;
}

inline uint32_t num_tap_pairs(const DepthwiseConv2dArgs& a) { return (a.kernel_h * a.kernel_w + 1) / 2; }

// Scratch: the row of padding, the addresses, the weights widened to 16 bits.
inline size_t padding_bytes(const DepthwiseConv2dArgs& a) { return (size_t{a.input_c} + 63) / 64 * 64; }
inline size_t address_bytes(const DepthwiseConv2dArgs& a) {
  return (size_t{a.output_w} * num_tap_pairs(a) * 2 * sizeof(const uint8_t*) + 63) / 64 * 64;
}
inline size_t taps_scratch_bytes(const DepthwiseConv2dArgs& a) {
  return padding_bytes(a) + address_bytes(a) +
         size_t{num_tap_pairs(a)} * 64 * ((size_t{a.input_c} + 15) / 16);
}

struct Taps {
  uint8_t* padding;
  const uint8_t** addresses;  // [output_w][num_tap_pairs][2]
  int32_t* weights;           // [block][num_tap_pairs][channels of a block], two int16 in each
};

inline Taps taps_in(const DepthwiseConv2dArgs& a, void* scratch) {
  uint8_t* bytes = static_cast<uint8_t*>(scratch);
  return {bytes, reinterpret_cast<const uint8_t**>(bytes + padding_bytes(a)),
          reinterpret_cast<int32_t*>(bytes + padding_bytes(a) + address_bytes(a))};
}

// The outputs x, of `count`, whose input column first + x * stride is within the input.
struct TapRange {
  uint32_t begin, end;
};
inline TapRange inside_columns(int32_t first, uint32_t stride, uint32_t input_w, uint32_t count) {
  const int64_t left = input_w - int64_t{first};  // of columns from `first` on
  const uint32_t begin = first < 0 ? (static_cast<uint32_t>(-first) + stride - 1) / stride : 0;
  const uint32_t end = left > 0 ? (static_cast<uint32_t>(left) + stride - 1) / stride : 0;
  return {begin < count ? begin : count, end < count ? end : count};
}

// The addresses for output row `row` (n * output_h + y), tap by tap. An odd last tap is paired with the
// padding, by weight zero.
inline void find_taps(const DepthwiseConv2dArgs& a, uint32_t row, const Taps& taps) {
  const uint32_t n = row / a.output_h, y = row % a.output_h;
  const uint8_t* image = static_cast<const uint8_t*>(a.input) + size_t{n} * a.input_h * a.input_w * a.input_c;
  const int32_t y0 = static_cast<int32_t>(y * a.stride_h) - static_cast<int32_t>(a.pad_top);
  const uint32_t taps_of_pixel = num_tap_pairs(a) * 2, num_taps = a.kernel_h * a.kernel_w;
  const size_t step = size_t{a.stride_w} * a.input_c;
  for (uint32_t tap = 0; tap < taps_of_pixel; ++tap) {
    const int32_t iy = y0 + static_cast<int32_t>(tap / a.kernel_w * a.dilation_h);
    const int32_t x0 =
        static_cast<int32_t>(tap % a.kernel_w * a.dilation_w) - static_cast<int32_t>(a.pad_left);
    TapRange inside = {0, 0};
    if (tap < num_taps && iy >= 0 && static_cast<uint32_t>(iy) < a.input_h) {
      inside = inside_columns(x0, a.stride_w, a.input_w, a.output_w);
    }
    const uint8_t** to = taps.addresses + tap;
    uint32_t x = 0;
    for (; x < inside.begin; ++x, to += taps_of_pixel) *to = taps.padding;
    if (x < inside.end) {
      const int64_t column = x0 + int64_t{x} * a.stride_w;
      const uint8_t* from =
          image + (size_t{static_cast<uint32_t>(iy)} * a.input_w + static_cast<size_t>(column)) * a.input_c;
      for (; x < inside.end; ++x, to += taps_of_pixel, from += step) *to = from;
    }
    for (; x < a.output_w; ++x, to += taps_of_pixel) *to = taps.padding;
  }
}

// All weights less their zero point, as pairs of int16, in blocks of `count` channels (8 or 16).
inline void widen_weights(const DepthwiseConv2dArgs& a, uint32_t count, int32_t* to) {
  const uint32_t num_taps = a.kernel_h * a.kernel_w;
  const size_t stride = (size_t{a.output_c} + 15) / 16 * 16;
  for (size_t channel = 0; channel < a.input_c; channel += count) {
    for (uint32_t tap = 0; tap < num_taps; tap += 2) {
      const int8_t* first = a.weights + tap * stride + channel;
      for (uint32_t i = 0; i < count; ++i) {
        const int32_t low = first[i] - a.weights_zero_point;
        const int32_t high = tap + 1 < num_taps ? first[stride + i] - a.weights_zero_point : 0;
        *to++ =
            static_cast<int32_t>((static_cast<uint32_t>(low) & 0xFFFF) | static_cast<uint32_t>(high) << 16);
      }
    }
  }
}

// Where those of the block that begins with `channel` are.
inline const int32_t* weights_of(const DepthwiseConv2dArgs& a, const Taps& taps, uint32_t channel) {
  return taps.weights + size_t{channel} * num_tap_pairs(a);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_TAPS_H_
