// depthwise_conv2d of 3x3 with NEON, 16 channels at a time: products of signed bytes, two of which meet in 16
// bits before they are added to 32, as in the matrix product (kernels/simd/neon.h). The taps of kernels over
// depthwise_taps.h are widened first, 8 channels at a time: 14 instructions an output of kws, 6 with this
// file (QEMU, GCC 12).
#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_columns.h"
#include "kernels/simd/neon.h"

namespace qplan::depthwise_columns_neon {
namespace {

constexpr uint32_t kTaps = 9;

inline size_t padding_bytes(const DepthwiseConv2dArgs& a) {
  return (size_t{a.input_w} * a.input_c + 63) / 64 * 64;
}
inline size_t rounded_channels(const DepthwiseConv2dArgs& a) { return (size_t{a.input_c} + 15) / 16 * 16; }

// What a row of outputs is made of: the rows of inputs under it, the bytes used for rows outside the image,
// and the biases, each for all channels.
struct Row {
  const uint8_t* inputs[3];
  const uint8_t* padding;
  const int32_t* bias;  // less what the signed products leave out
  uint8_t* output;
};

// The bytes of `count` (8 or 16) channels.
template <uint32_t kCount>
inline uint8x16_t load_channels(const uint8_t* from) {
  if constexpr (kCount == 16) return vld1q_u8(from);
  const uint8x8_t half = vld1_u8(from);
  return vcombine_u8(half, half);
}
inline int8x16_t flipped(uint8x16_t bytes, uint8x16_t sign_bias) {
  return vreinterpretq_s8_u8(veorq_u8(bytes, sign_bias));
}

template <uint32_t kCount>
struct Sums {
  static constexpr uint32_t kVectors = kCount / 4;
  VecI32 of[kVectors];

  __attribute__((always_inline)) void add(int16x8_t low, int16x8_t high) {
    of[0] = vaddw_s16(of[0], vget_low_s16(low));
    of[1] = vaddw_high_s16(of[1], low);
    if constexpr (kCount == 16) {
      of[2] = vaddw_s16(of[2], vget_low_s16(high));
      of[3] = vaddw_high_s16(of[3], high);
    }
  }
};

// For the sum u0 * w0 + u1 * w1 of unsigned u the factors are u0 - 128 and 127 - u1, of which the second
// product is subtracted. tap(t): the bytes of tap t.
template <uint32_t kCount, typename Tap>
__attribute__((always_inline)) inline void add_window(const int8x16_t (&weights)[kTaps], uint8x16_t sign_bias,
                                                      const Tap& tap, Sums<kCount>& sums) {
  const uint8x16_t second_sign_bias = vmvnq_u8(sign_bias);
#pragma GCC unroll 4
  for (uint32_t t = 0; t + 1 < kTaps; t += 2) {
    const int8x16_t u = flipped(tap(t), sign_bias), v = flipped(tap(t + 1), second_sign_bias);
    const int8x16_t w = weights[t], x = weights[t + 1];
    int16x8_t high = vdupq_n_s16(0);
    if constexpr (kCount == 16) high = vmlsl_high_s8(vmull_high_s8(u, w), v, x);
    sums.add(vmlsl_s8(vmull_s8(vget_low_s8(u), vget_low_s8(w)), vget_low_s8(v), vget_low_s8(x)), high);
  }
  const int8x16_t u = flipped(tap(kTaps - 1), sign_bias), w = weights[kTaps - 1];
  sums.add(vmull_s8(vget_low_s8(u), vget_low_s8(w)), vmull_high_s8(u, w));
}

inline void load_weights(const DepthwiseConv2dArgs& a, uint32_t channel, int8x16_t (&weights)[kTaps]) {
#pragma GCC unroll 9
  for (uint32_t t = 0; t < kTaps; ++t) weights[t] = vld1q_s8(a.weights + t * rounded_channels(a) + channel);
}

// Windows of bytes 0 have the sum 0: what products make of them is taken away from the bias.
inline void adjust_bias(const DepthwiseConv2dArgs& a, int32_t* to) {
  for (uint32_t channel = 0; channel < a.input_c; channel += 16) {
    int8x16_t weights[kTaps];
    load_weights(a, channel, weights);
    Sums<16> sums = {};
    add_window<16>(
        weights, vdupq_n_u8(0x80), [](uint32_t) { return vdupq_n_u8(0); }, sums);
    for (uint32_t i = 0; i < 4; ++i) {
      store_ints(to + channel + 4 * i, vsubq_s32(load_ints(a.bias + channel + 4 * i), sums.of[i]));
    }
  }
}

// The outputs x whose windows lie within the input's columns.
struct Inside {
  uint32_t begin, end;
};
inline Inside inside_columns(const DepthwiseConv2dArgs& a) {
  const uint32_t reach = 2 * a.dilation_w;
  const uint32_t begin = (a.pad_left + a.stride_w - 1) / a.stride_w;
  // x * stride - pad + reach < input_w
  const uint32_t columns = a.input_w + a.pad_left;
  const uint32_t end = columns > reach ? (columns - reach + a.stride_w - 1) / a.stride_w : 0;
  const uint32_t last = end < a.output_w ? end : a.output_w;
  return {begin < last ? begin : last, last};
}

template <uint32_t kCount, typename Epilogue>
__attribute__((noinline)) void run_channels(const DepthwiseConv2dArgs& a, const Row& row, uint32_t channel) {
  constexpr uint32_t kVectors = Sums<kCount>::kVectors;
  int8x16_t weights[kTaps];
  load_weights(a, channel, weights);
  const uint8x16_t sign_bias = vdupq_n_u8(a.input_dtype == Dtype::kS8 ? 0 : 0x80);
  const OutputBytes bytes(a);
  const Epilogue first(a, channel), second(a, channel + 4);
  const Epilogue third(a, channel + kCount - 8), fourth(a, channel + kCount - 4);
  const int32_t* bias = row.bias + channel;
  uint8_t* out = row.output + channel;
  const auto window = [&](const auto& tap) {
    Sums<kCount> sums;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kVectors; ++i) sums.of[i] = load_ints(bias + 4 * i);
    add_window<kCount>(weights, sign_bias, tap, sums);
    const VecI32 low = first.outputs(sums.of[0]), high = second.outputs(sums.of[1]);
    if constexpr (kCount == 16) {
      store_ints(out, bytes.pack(low, high, third.outputs(sums.of[2]), fourth.outputs(sums.of[3])));
    } else {
      vst1_u8(out, vget_low_u8(as_bytes(bytes.pack(low, high, low, high))));
    }
    out += a.output_c;
  };
  const auto border = [&](uint32_t x) {
    const uint8_t* taps[kTaps];
#pragma GCC unroll 3
    for (uint32_t j = 0; j < 3; ++j) {
      const int64_t column = int64_t{x} * a.stride_w + j * a.dilation_w - a.pad_left;
      const bool is_inside = column >= 0 && column < a.input_w;
      const size_t at = (is_inside ? static_cast<size_t>(column) * a.input_c : 0) + channel;
#pragma GCC unroll 3
      for (uint32_t i = 0; i < 3; ++i) taps[3 * i + j] = (is_inside ? row.inputs[i] : row.padding) + at;
    }
    window([&](uint32_t t) { return load_channels<kCount>(taps[t]); });
  };
  const Inside inside = inside_columns(a);
  uint32_t x = 0;
  for (; x < inside.begin; ++x) border(x);
  const size_t tap_step = size_t{a.dilation_w} * a.input_c, step = size_t{a.stride_w} * a.input_c;
  // Where the first window that is inside the image begins; 0 is never read, as no window is inside then.
  const size_t begin = x < inside.end ? (size_t{x} * a.stride_w - a.pad_left) * a.input_c + channel : 0;
  const uint8_t* at[3] = {row.inputs[0] + begin, row.inputs[1] + begin, row.inputs[2] + begin};
  for (; x < inside.end; ++x) {
    window([&](uint32_t t) { return load_channels<kCount>(at[t / 3] + t % 3 * tap_step); });
    for (const uint8_t*& row_at : at) row_at += step;
  }
  for (; x < a.output_w; ++x) border(x);
}

inline Row row_of(const DepthwiseConv2dArgs& a, uint32_t work_item, const uint8_t* padding,
                  const int32_t* bias) {
  const uint32_t n = work_item / a.output_h, y = work_item % a.output_h;
  const size_t input_row = size_t{a.input_w} * a.input_c;
  const uint8_t* image = static_cast<const uint8_t*>(a.input) + size_t{n} * a.input_h * input_row;
  Row row;
  for (uint32_t ky = 0; ky < 3; ++ky) {
    const int64_t iy = int64_t{y} * a.stride_h + ky * a.dilation_h - a.pad_top;
    row.inputs[ky] = iy >= 0 && iy < a.input_h ? image + static_cast<size_t>(iy) * input_row : padding;
  }
  row.padding = padding;
  row.bias = bias;
  row.output = static_cast<uint8_t*>(a.output) + size_t{work_item} * a.output_w * a.output_c;
  return row;
}

// Never inlined: EpilogueRounding changes the floating point environment around it.
__attribute__((noinline)) void run_rows(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end,
                                        void* scratch) {
  uint8_t* padding = static_cast<uint8_t*>(scratch);
  auto* bias = reinterpret_cast<int32_t*>(padding + padding_bytes(a));
  __builtin_memset(padding, static_cast<uint8_t>(a.pad_value), size_t{a.input_w} * a.input_c);
  adjust_bias(a, bias);
  for (uint32_t work_item = begin; work_item < end; ++work_item) {
    const Row row = row_of(a, work_item, padding, bias);
    for (uint32_t channel = 0; channel < a.input_c; channel += 16) {
      with_epilogue(a, channel, [&](auto kind) {
        using Epilogue = typename decltype(kind)::Epilogue;
        a.input_c - channel >= 16 ? run_channels<16, Epilogue>(a, row, channel)
                                  : run_channels<8, Epilogue>(a, row, channel);
      });
    }
  }
}

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const DepthwiseConv2dArgs& a) {
  if (a.contract == Contract::kAcc32) return Refusal::kContract;
  if (a.output_c != a.input_c || a.input_c % 8 != 0) return Refusal::kGroups;
  if (a.weights_layout != kLayout_hwo16) return Refusal::kLayout;
  if (a.input_zero_point != dtype_min(a.input_dtype)) return Refusal::kInputZeroPoint;
  if (a.weights_zero_point != 0) return Refusal::kDtype;  // less it, weights would take 9 bits
  if (a.kernel_h != 3 || a.kernel_w != 3) return Refusal::kWindow;
  const bool fits = a.input_c < (1u << 20) && a.input_w < (1u << 20) && a.output_w < (1u << 20) &&
                    a.stride_w < (1u << 10) && a.dilation_w < (1u << 20) && a.pad_left < (1u << 20);
  return fits ? Refusal::kNone : Refusal::kTooLarge;
}

size_t scratch_bytes(const DepthwiseConv2dArgs& a) {
  return padding_bytes(a) + rounded_channels(a) * sizeof(int32_t);
}

uint32_t work_items(const DepthwiseConv2dArgs& a) { return a.batch * a.output_h; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  const EpilogueRounding rounding(a.float_epilogue != FloatEpilogue::kNone);
  run_rows(a, begin, end, scratch);
}
#endif

}  // namespace qplan::depthwise_columns_neon
