// depthwise_conv2d of 3x3 with RISC-V's vectors, 16 channels at a time, of any length of registers: the
// weights of nine taps stay in registers, and products of 16 bits are added to 32 (vwmacc). int8 is read with
// its sign as u - 128, so that 128 times the sum of a channel's weights is missing, with which sums begin.
#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_columns.h"

#if !defined(QPLAN_ONLY_QUERIES)  // which are compiled without vectors
#include <riscv_vector.h>

#include "kernels/simd/outputs_rvv.h"
#include "kernels/simd/rvv.h"

namespace qplan::depthwise_columns_rvv {
namespace {

constexpr size_t kChannels = 16;
// Rows of outputs for which weights are loaded once.
constexpr uint32_t kBandRows = 8;

// A row of inputs under a row of outputs: one outside the image is a pixel of padding, again and again.
struct InputRow {
  const uint8_t* at;
  size_t pixel;  // bytes to the next one
};

struct Band {
  const uint8_t* padding;
  uint32_t begin, end;  // rows of outputs, image after image
};

template <bool kSigned>
inline vint16m2_t load_pixel(const uint8_t* at, size_t count) {
  if constexpr (kSigned)
    return vsext_vf2_i16m2(vle8_v_i8m1(reinterpret_cast<const int8_t*>(at), count), count);
  return vreinterpret_v_u16m2_i16m2(vzext_vf2_u16m2(vle8_v_u8m1(at, count), count));
}

inline vint16m2_t load_weights(const DepthwiseConv2dArgs& a, uint32_t channel, uint32_t tap, size_t count) {
  const size_t pitch = (size_t{a.input_c} + 15) / 16 * 16;
  const vint16m2_t weights = vsext_vf2_i16m2(vle8_v_i8m1(a.weights + tap * pitch + channel, count), count);
  return vsub_vx_i16m2(weights, static_cast<int16_t>(a.weights_zero_point), count);
}

inline InputRow input_row(const DepthwiseConv2dArgs& a, const Band& band, uint32_t row, uint32_t tap) {
  const uint32_t image = row / a.output_h, y = row % a.output_h;
  const int64_t at = int64_t{y} * a.stride_h + int64_t{tap} * a.dilation_h - a.pad_top;
  if (at < 0 || at >= a.input_h) return {band.padding, 0};
  const size_t pixels = (size_t{image} * a.input_h + static_cast<size_t>(at)) * a.input_w;
  return {static_cast<const uint8_t*>(a.input) + pixels * a.input_c, a.input_c};
}

// The outputs x whose windows are within the input's columns.
struct Inside {
  uint32_t begin, end;
};
inline Inside inside_columns(const DepthwiseConv2dArgs& a) {
  const uint32_t reach = 2 * a.dilation_w, columns = a.input_w + a.pad_left;
  const uint32_t begin = (a.pad_left + a.stride_w - 1) / a.stride_w;
  const uint32_t end = columns > reach ? (columns - reach + a.stride_w - 1) / a.stride_w : 0;
  const uint32_t last = end < a.output_w ? end : a.output_w;
  return {begin < last ? begin : last, last};
}

// Up to kChannels channels of all rows of a band.
template <typename Epilogue, bool kSigned>
__attribute__((noinline)) void run_channels(const DepthwiseConv2dArgs& a, const Band& band,
                                            uint32_t channel) {
  const size_t left = a.input_c - channel, count = left < kChannels ? left : kChannels;
  const vint16m2_t w0 = load_weights(a, channel, 0, count), w1 = load_weights(a, channel, 1, count),
                   w2 = load_weights(a, channel, 2, count), w3 = load_weights(a, channel, 3, count),
                   w4 = load_weights(a, channel, 4, count), w5 = load_weights(a, channel, 5, count),
                   w6 = load_weights(a, channel, 6, count), w7 = load_weights(a, channel, 7, count),
                   w8 = load_weights(a, channel, 8, count);
  int32_t of_signed[kChannels];
  if constexpr (kSigned) {
    vint32m4_t sums = vwadd_vv_i32m4(w0, w1, count);
    sums = vadd_vv_i32m4(sums, vwadd_vv_i32m4(w2, w3, count), count);
    sums = vadd_vv_i32m4(sums, vwadd_vv_i32m4(w4, w5, count), count);
    sums = vadd_vv_i32m4(sums, vwadd_vv_i32m4(w6, w7, count), count);
    sums = vwadd_wv_i32m4(sums, w8, count);
    const vint32m4_t bias = vle32_v_i32m4(a.bias + channel, count);
    vse32_v_i32m4(of_signed, vadd_vv_i32m4(bias, vsll_vx_i32m4(sums, 7, count), count), count);
  }
  const int32_t* begin = kSigned ? of_signed : a.bias + channel;
  const WideBytes bytes(a);
  round_ties_up();
  const Inside inside = inside_columns(a);
  for (uint32_t row = band.begin; row < band.end; ++row) {
    InputRow inputs[3];
    for (uint32_t i = 0; i < 3; ++i) {
      inputs[i] = input_row(a, band, row, i);
      inputs[i].at += channel;
    }
    uint8_t* out = static_cast<uint8_t*>(a.output) + size_t{row} * a.output_w * a.output_c + channel;
    // tap(t): where the bytes of tap t are.
    const auto window = [&](const auto& tap) __attribute__((always_inline)) {
      vint32m4_t sums = vle32_v_i32m4(begin, count);
      vint16m2_t x = load_pixel<kSigned>(tap(0), count), y = load_pixel<kSigned>(tap(1), count),
                 z = load_pixel<kSigned>(tap(2), count);
      sums = vwmacc_vv_i32m4(sums, x, w0, count);
      sums = vwmacc_vv_i32m4(sums, y, w1, count);
      sums = vwmacc_vv_i32m4(sums, z, w2, count);
      x = load_pixel<kSigned>(tap(3), count);
      y = load_pixel<kSigned>(tap(4), count);
      z = load_pixel<kSigned>(tap(5), count);
      sums = vwmacc_vv_i32m4(sums, x, w3, count);
      sums = vwmacc_vv_i32m4(sums, y, w4, count);
      sums = vwmacc_vv_i32m4(sums, z, w5, count);
      x = load_pixel<kSigned>(tap(6), count);
      y = load_pixel<kSigned>(tap(7), count);
      z = load_pixel<kSigned>(tap(8), count);
      sums = vwmacc_vv_i32m4(sums, x, w6, count);
      sums = vwmacc_vv_i32m4(sums, y, w7, count);
      sums = vwmacc_vv_i32m4(sums, z, w8, count);
      bytes.store(out, WideEpilogue<Epilogue>::outputs(a, channel, sums, count), count);
      out += a.output_c;
    };
    const auto border = [&](uint32_t x) __attribute__((always_inline)) {
      const uint8_t* taps[9];
      for (uint32_t j = 0; j < 3; ++j) {
        const int64_t column = int64_t{x} * a.stride_w + int64_t{j} * a.dilation_w - a.pad_left;
        const bool is_inside = column >= 0 && column < a.input_w;
        for (uint32_t i = 0; i < 3; ++i) {
          taps[3 * i + j] = is_inside ? inputs[i].at + static_cast<size_t>(column) * inputs[i].pixel
                                      : band.padding + channel;
        }
      }
      window([&](uint32_t t) { return taps[t]; });
    };
    uint32_t x = 0;
    for (; x < inside.begin; ++x) border(x);
    if (x < inside.end) {
      const size_t first = size_t{x} * a.stride_w - a.pad_left, next = a.dilation_w;
      const uint8_t* at0 = inputs[0].at + first * inputs[0].pixel;
      const uint8_t* at1 = inputs[1].at + first * inputs[1].pixel;
      const uint8_t* at2 = inputs[2].at + first * inputs[2].pixel;
      const size_t tap0 = next * inputs[0].pixel, tap1 = next * inputs[1].pixel,
                   tap2 = next * inputs[2].pixel;
      const size_t step0 = a.stride_w * inputs[0].pixel, step1 = a.stride_w * inputs[1].pixel,
                   step2 = a.stride_w * inputs[2].pixel;
      for (; x < inside.end; ++x) {
        window([&](uint32_t t) __attribute__((always_inline)) {
          const uint8_t* at = t < 3 ? at0 : t < 6 ? at1 : at2;
          return at + t % 3 * (t < 3 ? tap0 : t < 6 ? tap1 : tap2);
        });
        at0 += step0;
        at1 += step1;
        at2 += step2;
      }
    }
    for (; x < a.output_w; ++x) border(x);
  }
}

// Never inlined: EpilogueRounding changes the floating point environment around it.
__attribute__((noinline)) void run_rows(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end,
                                        void* scratch) {
  auto* padding = static_cast<uint8_t*>(scratch);
  __builtin_memset(padding, static_cast<uint8_t>(a.pad_value), a.input_c);
  for (uint32_t row = begin; row < end; row += kBandRows) {
    const Band band = {padding, row, end - row < kBandRows ? end : row + kBandRows};
    for (uint32_t channel = 0; channel < a.input_c; channel += kChannels) {
      with_epilogue(a, channel, [&](auto kind) {
        using Epilogue = typename decltype(kind)::Epilogue;
        a.input_dtype == Dtype::kS8 ? run_channels<Epilogue, true>(a, band, channel)
                                    : run_channels<Epilogue, false>(a, band, channel);
      });
    }
  }
}

}  // namespace
}  // namespace qplan::depthwise_columns_rvv
#endif

namespace qplan::depthwise_columns_rvv {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const DepthwiseConv2dArgs& a) {
  if (a.contract == Contract::kAcc32) return Refusal::kContract;
  if (a.output_c != a.input_c) return Refusal::kGroups;
  if (a.weights_layout != kLayout_hwo16) return Refusal::kLayout;
  if (a.input_zero_point != dtype_min(a.input_dtype)) return Refusal::kInputZeroPoint;
  if (a.kernel_h != 3 || a.kernel_w != 3) return Refusal::kWindow;
  const bool fits = a.input_c < (1u << 20) && a.input_w < (1u << 20) && a.output_w < (1u << 20) &&
                    a.stride_w < (1u << 10) && a.dilation_w < (1u << 20) && a.pad_left < (1u << 20);
  return fits ? Refusal::kNone : Refusal::kTooLarge;
}

size_t scratch_bytes(const DepthwiseConv2dArgs& a) { return (size_t{a.input_c} + 63) / 64 * 64; }

uint32_t work_items(const DepthwiseConv2dArgs& a) { return a.batch * a.output_h; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  const EpilogueRounding rounding(a.float_epilogue != FloatEpilogue::kNone);
  run_rows(a, begin, end, scratch);
}
#endif

}  // namespace qplan::depthwise_columns_rvv
