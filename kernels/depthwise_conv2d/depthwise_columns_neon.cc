// depthwise_conv2d of 3x3 with NEON, 16 channels at a time, or two pixels of 8: products of signed bytes, two
// of which meet in 16 bits before they are added to 32, as in the matrix product (kernels/simd/neon.h). The
// taps of kernels over depthwise_taps.h are widened first, 8 channels at a time: 14 instructions an output of
// kws, 6 with this file (QEMU, GCC 12). Weights less their zero point may take 9 bits: they are the sum of
// two bytes then, and a window takes twice as many products.
#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_columns.h"
#include "kernels/depthwise_conv2d/depthwise_weights_neon.h"
#include "kernels/simd/neon.h"
#include "kernels/simd/plain_bytes_neon.h"

namespace qplan::depthwise_columns_neon {
namespace {

constexpr uint32_t kTaps = 9;

// Scratch, for all channels: a pixel of padding, the biases, and whether the weights of 16 channels are
// split.
struct Parts {
  uint8_t* padding;
  int32_t* bias;  // less what the signed products leave out
  uint8_t* is_split;
};
inline Parts parts_in(const DepthwiseConv2dArgs& a, void* scratch) {
  uint8_t* bytes = static_cast<uint8_t*>(scratch);
  auto* bias = reinterpret_cast<int32_t*>(bytes + (rounded_channels(a) + 63) / 64 * 64);
  return {bytes, bias, reinterpret_cast<uint8_t*>(bias + rounded_channels(a))};
}

// A row of inputs under a row of outputs. A row outside the image is one pixel of padding, again and again.
struct InputRow {
  const uint8_t* first;
  size_t pixel;  // bytes from one to the next
};
struct Row {
  InputRow inputs[3];
  const Parts& parts;
  uint8_t* output;
};

// The bytes of `count` (8 or 16) channels.
template <uint32_t kCount>
inline uint8x16_t load_channels(const uint8_t* from) {
  if constexpr (kCount == 16) return vld1q_u8(from);
  const uint8x8_t half = vld1_u8(from);
  return vcombine_u8(half, half);
}
inline int8x16_t to_signed(uint8x16_t bytes, uint8x16_t sign_bias) {
  return vreinterpretq_s8_u8(veorq_u8(bytes, sign_bias));
}

template <uint32_t kLanesAtOnce>
struct Lanes {
  static constexpr uint32_t kCount = kLanesAtOnce;
};

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
    const int8x16_t u = to_signed(tap(t), sign_bias), v = to_signed(tap(t + 1), second_sign_bias);
    const int8x16_t w = weights[t], x = weights[t + 1];
    int16x8_t high = vdupq_n_s16(0);
    if constexpr (kCount == 16) high = vmlsl_high_s8(vmull_high_s8(u, w), v, x);
    sums.add(vmlsl_s8(vmull_s8(vget_low_s8(u), vget_low_s8(w)), vget_low_s8(v), vget_low_s8(x)), high);
  }
  const int8x16_t u = to_signed(tap(kTaps - 1), sign_bias), w = weights[kTaps - 1];
  sums.add(vmull_s8(vget_low_s8(u), vget_low_s8(w)), vmull_high_s8(u, w));
}

// The parts of the weights of 16 channels, or of 8 channels twice.
struct WindowWeights {
  int8x16_t near[kTaps], remainder[kTaps];

  template <bool kTwice>
  __attribute__((always_inline)) void load(const DepthwiseConv2dArgs& a, uint32_t channel) {
#pragma GCC unroll 9
    for (uint32_t t = 0; t < kTaps; ++t) {
      const int8_t* from = a.weights + t * rounded_channels(a) + channel;
      const WeightParts<int8x16_t> parts =
          weight_parts(a, kTwice ? vcombine_s8(vld1_s8(from), vld1_s8(from)) : vld1q_s8(from));
      near[t] = parts.near;
      remainder[t] = parts.remainder;
    }
  }
  bool has_remainder() const {
    int8x16_t any = vdupq_n_s8(0);
    for (const int8x16_t& v : remainder) any = vorrq_s8(any, v);
    return vmaxvq_u8(vreinterpretq_u8_s8(any)) != 0;
  }
};

template <uint32_t kCount, bool kSplit, typename Tap>
__attribute__((always_inline)) inline void add_products(const WindowWeights& weights, uint8x16_t sign_bias,
                                                        const Tap& tap, Sums<kCount>& sums) {
  add_window<kCount>(weights.near, sign_bias, tap, sums);
  if constexpr (kSplit) add_window<kCount>(weights.remainder, sign_bias, tap, sums);
}

// Windows of bytes that are the input zero point have the sum 0: what products make of them is taken away
// from the bias.
inline void prepare(const DepthwiseConv2dArgs& a, const Parts& parts) {
  __builtin_memset(parts.padding, static_cast<uint8_t>(a.pad_value), a.input_c);
  const uint8x16_t origin = vdupq_n_u8(a.input_zero_point == dtype_min(a.input_dtype) ? 0 : 0x80);
  for (uint32_t channel = 0; channel < a.input_c; channel += 16) {
    WindowWeights weights;
    weights.load<false>(a, channel);
    Sums<16> sums = {};
    add_products<16, true>(
        weights, vdupq_n_u8(0x80), [&](uint32_t) { return origin; }, sums);
    for (uint32_t i = 0; i < 4; ++i) {
      store_ints(parts.bias + channel + 4 * i, vsubq_s32(load_ints(a.bias + channel + 4 * i), sums.of[i]));
    }
    parts.is_split[channel / 16] = weights.has_remainder() ? 1 : 0;
  }
}

// The outputs x whose windows are within the input's columns.
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

// Channels [channel, channel + kCount) of a row. kTwoPixels: of 8 channels of an image that has no more,
// where windows are neighbours, two at a time where they are inside.
template <uint32_t kCount, bool kTwoPixels, bool kSplit, typename Epilogue>
__attribute__((noinline)) void run_channels(const DepthwiseConv2dArgs& a, const Row& row, uint32_t channel) {
  WindowWeights weights;
  weights.load<kTwoPixels>(a, channel);
  const uint8x16_t sign_bias = vdupq_n_u8(a.input_dtype == Dtype::kS8 ? 0 : 0x80);
  const EpilogueBytes<Epilogue> bytes(a);
  const Epilogue first(a, channel), second(a, channel + 4);
  const Epilogue third(a, channel + (kTwoPixels ? 0 : kCount - 8)),
      fourth(a, channel + (kTwoPixels ? 4 : kCount - 4));
  const float* offsets = kHasOffset<Epilogue> ? a.float_offset + channel : nullptr;
  const int32_t* bias = row.parts.bias + channel;
  uint8_t* out = row.output + channel;
  // The outputs of 8 channels, of 16 of them or of 8 of two pixels.
  const auto window = [&](auto lanes, const auto& tap) __attribute__((always_inline)) {
    constexpr uint32_t kLanesAtOnce = decltype(lanes)::kCount;
    Sums<kLanesAtOnce> sums;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kLanesAtOnce / 4; ++i) {
      sums.of[i] = load_ints(bias + 4 * (kTwoPixels ? i % 2 : i));
    }
    add_products<kLanesAtOnce, kSplit>(weights, sign_bias, tap, sums);
    if constexpr (kHasOffset<Epilogue>) __asm__("" : "+r"(offsets));
    const auto outputs = [&](const Epilogue& epilogue, uint32_t i) __attribute__((always_inline)) {
      if constexpr (kHasOffset<Epilogue>) {
        return Epilogue(epilogue.scale, load_reals(offsets + 4 * (kTwoPixels ? i % 2 : i)))
            .outputs(sums.of[i]);
      } else {
        return epilogue.outputs(sums.of[i]);
      }
    };
    const VecI32 low = outputs(first, 0), high = outputs(second, 1);
    if constexpr (kLanesAtOnce == 16) {
      VecI32 packed[1] = {bytes.pack(low, high, outputs(third, 2), outputs(fourth, 3))};
      bytes.finish(packed);
      store_ints(out, packed[0]);
    } else {
      VecI32 packed[1] = {bytes.pack(low, high, low, high)};
      bytes.finish(packed);
      vst1_u8(out, vget_low_u8(as_bytes(packed[0])));
    }
    out += kTwoPixels && kLanesAtOnce == 16 ? 2 * size_t{a.output_c} : a.output_c;
  };
  using OneLanes = Lanes<kCount>;
  const auto border = [&](uint32_t x) {
    const uint8_t* taps[kTaps];
#pragma GCC unroll 3
    for (uint32_t j = 0; j < 3; ++j) {
      const int64_t column = int64_t{x} * a.stride_w + j * a.dilation_w - a.pad_left;
      const bool is_inside = column >= 0 && column < a.input_w;
#pragma GCC unroll 3
      for (uint32_t i = 0; i < 3; ++i) {
        const InputRow& input = row.inputs[i];
        taps[3 * i + j] =
            (is_inside ? input.first + static_cast<size_t>(column) * input.pixel : row.parts.padding) +
            channel;
      }
    }
    window(OneLanes(), [&](uint32_t t) { return load_channels<OneLanes::kCount>(taps[t]); });
  };
  const Inside inside = inside_columns(a);
  uint32_t x = 0;
  for (; x < inside.begin; ++x) border(x);
  // Where the first window that is inside the image begins; 0 is never read, as no window is inside then.
  const size_t begin = x < inside.end ? size_t{x} * a.stride_w - a.pad_left : 0;
  const uint8_t* at[3];
  size_t tap_step[3], step[3];
#pragma GCC unroll 3
  for (uint32_t i = 0; i < 3; ++i) {
    at[i] = row.inputs[i].first + begin * row.inputs[i].pixel + channel;
    tap_step[i] = row.inputs[i].pixel * a.dilation_w;
    step[i] = row.inputs[i].pixel * a.stride_w;
  }
  if constexpr (kTwoPixels) {
    for (; x + 2 <= inside.end; x += 2) {
      window(Lanes<16>(), [&](uint32_t t) {
        const uint8_t* from = at[t / 3] + t % 3 * tap_step[t / 3];
        return step[t / 3] != 0 ? vld1q_u8(from) : load_channels<8>(from);
      });
#pragma GCC unroll 3
      for (uint32_t i = 0; i < 3; ++i) at[i] += 2 * step[i];
    }
  }
  for (; x < inside.end; ++x) {
    window(OneLanes(),
           [&](uint32_t t) { return load_channels<OneLanes::kCount>(at[t / 3] + t % 3 * tap_step[t / 3]); });
#pragma GCC unroll 3
    for (uint32_t i = 0; i < 3; ++i) at[i] += step[i];
  }
  for (; x < a.output_w; ++x) border(x);
}

inline Row row_of(const DepthwiseConv2dArgs& a, uint32_t work_item, const Parts& parts) {
  const uint32_t n = work_item / a.output_h, y = work_item % a.output_h;
  const size_t input_row = size_t{a.input_w} * a.input_c;
  const uint8_t* image = static_cast<const uint8_t*>(a.input) + size_t{n} * a.input_h * input_row;
  Row row = {{}, parts, static_cast<uint8_t*>(a.output) + size_t{work_item} * a.output_w * a.output_c};
  for (uint32_t ky = 0; ky < 3; ++ky) {
    const int64_t iy = int64_t{y} * a.stride_h + ky * a.dilation_h - a.pad_top;
    row.inputs[ky] = {parts.padding, 0};
    if (iy >= 0 && iy < a.input_h) row.inputs[ky] = {image + static_cast<size_t>(iy) * input_row, a.input_c};
  }
  return row;
}

template <typename Epilogue, bool kSplit>
inline void run_block(const DepthwiseConv2dArgs& a, const Row& row, uint32_t channel) {
  if (a.input_c - channel >= 16) return run_channels<16, false, kSplit, Epilogue>(a, row, channel);
  const bool has_neighbours = a.input_c == 8 && a.stride_w == 1 && a.dilation_w == 1 && !kSplit;
  has_neighbours ? run_channels<8, true, false, Epilogue>(a, row, channel)
                 : run_channels<8, false, kSplit, Epilogue>(a, row, channel);
}

// Never inlined: EpilogueRounding changes the floating point environment around it.
__attribute__((noinline)) void run_rows(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end,
                                        void* scratch) {
  const Parts parts = parts_in(a, scratch);
  prepare(a, parts);
  for (uint32_t work_item = begin; work_item < end; ++work_item) {
    const Row row = row_of(a, work_item, parts);
    for (uint32_t channel = 0; channel < a.input_c; channel += 16) {
      with_epilogue_of_bytes(a, channel, [&](auto kind) {
        using Epilogue = typename decltype(kind)::Epilogue;
        parts.is_split[channel / 16] != 0 ? run_block<Epilogue, true>(a, row, channel)
                                          : run_block<Epilogue, false>(a, row, channel);
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
  if (!is_product_origin(a.input_dtype, a.input_zero_point)) return Refusal::kInputZeroPoint;
  if (!two_bytes_hold_weights(a)) return Refusal::kWeightsZeroPoint;
  if (a.kernel_h != 3 || a.kernel_w != 3) return Refusal::kWindow;
  const bool fits = a.input_c < (1u << 20) && a.input_w < (1u << 20) && a.output_w < (1u << 20) &&
                    a.stride_w < (1u << 10) && a.dilation_w < (1u << 20) && a.pad_left < (1u << 20);
  return fits ? Refusal::kNone : Refusal::kTooLarge;
}

size_t scratch_bytes(const DepthwiseConv2dArgs& a) {
  const size_t bytes =
      (rounded_channels(a) + 63) / 64 * 64 + rounded_channels(a) * sizeof(int32_t) + rounded_channels(a) / 16;
  return (bytes + 63) / 64 * 64;
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
