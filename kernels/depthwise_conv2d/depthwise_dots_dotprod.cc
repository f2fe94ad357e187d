// depthwise_conv2d of 3x3 by dot products of columns, 8 channels at a time: interleaving the bytes of three
// or four rows makes lanes that hold a column of a channel, and three dot products of columns are a window. A
// column serves three windows and, at stride 1, two rows of outputs, with its weights one byte further up for
// the second row. An output of kws takes 12 instructions of depthwise_columns_neon.cc, which multiplies
// without dot products, and 5 of this file (QEMU, GCC 12). Weights less their zero point may take 9 bits:
// they are the sum of two bytes then, and a window takes twice as many products.
#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_columns.h"
#include "kernels/depthwise_conv2d/depthwise_weights_neon.h"
#include "kernels/simd/dotprod.h"
#include "kernels/simd/plain_bytes_neon.h"

namespace qplan::depthwise_dots_dotprod {
namespace {

constexpr uint32_t kChannels = 8;

// A row of padding in scratch stands for rows outside the image, unless it takes more than the variant of
// SSE4.1 (depthwise_taps.h), which packers on another processor ask in place of this one. Then the weights of
// such rows are 0, which takes longer to prepare.
inline size_t padding_bytes(const DepthwiseConv2dArgs& a) {
  const uint64_t bytes = uint64_t{a.input_w} * a.input_c;
  const uint64_t of_taps = uint64_t{a.input_c} * 21 + uint64_t{a.output_w} * 10 * sizeof(const uint8_t*);
  return bytes <= of_taps ? (static_cast<size_t>(bytes) + 63) / 64 * 64 : 0;
}

// At stride 1 a work item is two rows, and of an odd number of them the last is one.
inline uint32_t item_rows(const DepthwiseConv2dArgs& a) { return a.stride_h == 1 ? 2 : 1; }
inline uint32_t items_of_image(const DepthwiseConv2dArgs& a) {
  return (a.output_h + item_rows(a) - 1) / item_rows(a);
}

#if !defined(QPLAN_ONLY_QUERIES)
// Lanes of four bytes: the rows of a column, of channels 0 to 3 and of 4 to 7.
struct Column {
  int8x16_t low, high;
};

inline Column column_of(uint8x8_t row0, uint8x8_t row1, uint8x8_t row2, uint8x8_t row3) {
  const uint8x8_t none = vcreate_u8(0);
  const uint8x16_t first = vzip1q_u8(vcombine_u8(row0, none), vcombine_u8(row1, none));
  const uint8x16_t second = vzip1q_u8(vcombine_u8(row2, none), vcombine_u8(row3, none));
  const int16x8_t a = vreinterpretq_s16_u8(first), b = vreinterpretq_s16_u8(second);
  return {vreinterpretq_s8_s16(vzip1q_s16(a, b)), vreinterpretq_s8_s16(vzip2q_s16(a, b))};
}

// The weights of a column for the second of two rows of outputs.
inline int8x16_t one_row_down(int8x16_t weights) {
  return vreinterpretq_s8_s32(vshlq_n_s32(vreinterpretq_s32_s8(weights), 8));
}

// Whether bytes change their sign as they are loaded, and whether weights are the sum of two bytes.
template <bool kToSigned, bool kSplit>
struct Bytes {
  static constexpr bool kChangesSign = kToSigned, kIsSplit = kSplit;
};

// Which of 16 channels have a weight with a remainder, as bytes of the first 8 and of the others.
inline uint64x2_t remainders_of(const DepthwiseConv2dArgs& a, uint32_t channel) {
  const int8_t* from = a.weights + channel;
  int8x16_t least = vld1q_s8(from), most = least;
#pragma GCC unroll 8
  for (uint32_t t = 1; t < 9; ++t) {
    const int8x16_t weights = vld1q_s8(from + t * rounded_channels(a));
    least = vminq_s8(least, weights);
    most = vmaxq_s8(most, weights);
  }
  const int8x16_t zero_point = vdupq_n_s8(static_cast<int8_t>(a.weights_zero_point));
  const auto differs = [&](int8x16_t v) {
    return veorq_s8(vqsubq_s8(v, zero_point), vsubq_s8(v, zero_point));
  };
  return vreinterpretq_u64_s8(vorrq_s8(differs(least), differs(most)));
}

// What all groups of rows of outputs share: kRows of them have kRows + 2 rows of inputs at stride 1, else
// three.
struct Rows {
  const uint8_t* padding;  // null where nothing is padded
  uint32_t image;
  uint32_t first, end;  // of outputs
  uint32_t outside;     // bit i: row i of the inputs of each group is outside the image
};

// The numbers of inputs outside the image, of outputs from row y on. Rows above it have large numbers.
inline uint32_t rows_outside(const DepthwiseConv2dArgs& a, uint32_t y, uint32_t count) {
  uint32_t outside = 0;
  for (uint32_t i = 0; i < count; ++i) {
    outside |= (y * a.stride_h + i - a.pad_top < a.input_h ? 0u : 1u) << i;
  }
  return outside;
}

// Whether a column is known to be within the image.
template <bool kIsWithin>
struct Within {
  static constexpr bool kValue = kIsWithin;
};

// The windows of a row, from its first one on, of which the last kStride columns are within the image.
template <uint32_t kStride>
inline uint32_t windows_within(const DepthwiseConv2dArgs& a) {
  constexpr uint32_t kBefore = 3 - kStride;  // columns of the first window that are loaded before
  if (a.pad_left > kBefore || a.input_w + a.pad_left < kBefore) return 0;
  const uint32_t windows = (a.input_w + a.pad_left - kBefore) / kStride;
  return windows < a.output_w ? windows : a.output_w;
}

inline int8x16_t and_not(int8x16_t v, int8x16_t mask) { return vbicq_s8(v, mask); }

// kRows rows of outputs at a time: 2 at stride 1, else 1. The sums begin with 128 times the weights where the
// zero point is 0 of the unsigned bytes u, multiplied as u - 128, and with what the padding makes: the
// weights of rows outside the image are 0 here, so that such rows need no memory.
template <uint32_t kRows, uint32_t kStride, typename Kind, typename Epilogue>
__attribute__((noinline)) void run_channels(const DepthwiseConv2dArgs& a, const Rows& rows,
                                            uint32_t channel) {
  const size_t pitch = rounded_channels(a), row_bytes = size_t{a.input_w} * a.input_c;
  const int8x16_t ones = vdupq_n_s8(1);
  // All bits of the lanes' bytes that stand for rows outside.
  uint32_t outside_bytes = 0;
  for (uint32_t i = 0; i < 4; ++i) outside_bytes |= ((rows.outside >> i) & 1) * (0xffu << 8 * i);
  const int8x16_t outside = vreinterpretq_s8_u32(vdupq_n_u32(outside_bytes));
  const bool is_centred = a.input_zero_point != dtype_min(a.input_dtype);
  const int32_t padding_factor = a.pad_value - a.input_zero_point;
  Column weights[kRows][3];
  [[maybe_unused]] Column remainders[kRows][3];
  VecI32 begin[kRows][2];
#pragma GCC unroll 2
  for (uint32_t r = 0; r < kRows; ++r) {
    begin[r][0] = load_ints(a.bias + channel);
    begin[r][1] = load_ints(a.bias + channel + 4);
  }
  // What the window's column j lacks and what the padding makes of it; the column's weights for row r.
  const auto place = [&](Column column, uint32_t r) __attribute__((always_inline)) {
    if (r == 1) column = {one_row_down(column.low), one_row_down(column.high)};
    const Column inside = {and_not(column.low, outside), and_not(column.high, outside)};
    const VecI32 none = set_ints(0);
    if (!is_centred && (r == 0 || rows.outside != 0)) {
      begin[r][0] = vmlaq_n_s32(begin[r][0], vdotq_s32(none, inside.low, ones), 128);
      begin[r][1] = vmlaq_n_s32(begin[r][1], vdotq_s32(none, inside.high, ones), 128);
    }
    if (rows.outside != 0) {
      const VecI32 low = vdotq_s32(none, vandq_s8(column.low, outside), ones);
      const VecI32 high = vdotq_s32(none, vandq_s8(column.high, outside), ones);
      begin[r][0] = vmlaq_n_s32(begin[r][0], low, padding_factor);
      begin[r][1] = vmlaq_n_s32(begin[r][1], high, padding_factor);
    }
    return inside;
  };
#pragma GCC unroll 3
  for (uint32_t j = 0; j < 3; ++j) {
    const int8_t* of_column = a.weights + j * pitch + channel;
    const WeightParts<int8x8_t> rows_of[3] = {weight_parts(a, vld1_s8(of_column)),
                                              weight_parts(a, vld1_s8(of_column + 3 * pitch)),
                                              weight_parts(a, vld1_s8(of_column + 6 * pitch))};
    const auto column = [](int8x8_t row0, int8x8_t row1, int8x8_t row2) {
      return column_of(vreinterpret_u8_s8(row0), vreinterpret_u8_s8(row1), vreinterpret_u8_s8(row2),
                       vcreate_u8(0));
    };
#pragma GCC unroll 2
    for (uint32_t r = 0; r < kRows; ++r) {
      weights[r][j] = place(column(rows_of[0].near, rows_of[1].near, rows_of[2].near), r);
      if constexpr (Kind::kIsSplit) {
        remainders[r][j] = place(column(rows_of[0].remainder, rows_of[1].remainder, rows_of[2].remainder), r);
      }
    }
  }
  if (kRows == 2 && rows.outside == 0) {  // all rows of outputs have all weights
    begin[kRows - 1][0] = begin[0][0];
    begin[kRows - 1][1] = begin[0][1];
  }
  // In memory, where it takes as long to begin a sum as in registers, of which none is left.
  int32_t bias[kRows * kChannels];
#pragma GCC unroll 2
  for (uint32_t r = 0; r < kRows; ++r) {
    store_ints(bias + r * kChannels, begin[r][0]);
    store_ints(bias + r * kChannels + 4, begin[r][1]);
  }
  const int32_t* begin_of_sums = bias;
  const uint8_t sign = a.input_dtype == Dtype::kS8 ? 0 : 0x80;
  const int8x16_t sign_bias = vreinterpretq_s8_u8(vdupq_n_u8(sign));
  const int8x16_t padding = vreinterpretq_s8_u8(vdupq_n_u8(static_cast<uint8_t>(a.pad_value) ^ sign));
  const EpilogueBytes<Epilogue> bytes(a);
  const Epilogue first(a, channel), second(a, channel + 4);
  const float* offsets = kHasOffset<Epilogue> ? a.float_offset + channel : nullptr;

  const uint8_t* image = static_cast<const uint8_t*>(a.input) + size_t{rows.image} * a.input_h * row_bytes;
  const size_t pixel = a.input_c, out_row = a.output_w * pixel;
  uint8_t* out_at =
      static_cast<uint8_t*>(a.output) + (size_t{rows.image} * a.output_h + rows.first) * out_row + channel;
  for (uint32_t y = rows.first; y < rows.end; y += kRows, out_at += kRows * out_row) {
    const uint8_t* inputs[kRows + 2];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kRows + 2; ++i) {
      const uint32_t row = y * a.stride_h + i - a.pad_top;
      inputs[i] = row < a.input_h ? image + row * row_bytes : rows.padding != nullptr ? rows.padding : image;
    }
    // Where the next column is, as an offset that all rows share. It wraps below 0, and so is past the row,
    // for columns left of the image.
    size_t at = size_t{channel} - a.pad_left * pixel;
    const auto next_column = [&](auto is_inside) __attribute__((always_inline)) {
      Column loaded;
      if (decltype(is_inside)::kValue || at < row_bytes) {
        loaded = column_of(vld1_u8(inputs[0] + at), vld1_u8(inputs[1] + at), vld1_u8(inputs[2] + at),
                           kRows == 2 ? vld1_u8(inputs[kRows + 1] + at) : vcreate_u8(0));
        if constexpr (Kind::kChangesSign) {
          loaded = {veorq_s8(loaded.low, sign_bias), veorq_s8(loaded.high, sign_bias)};
        }
      } else {
        loaded.low = loaded.high = padding;
      }
      at += pixel;
      return loaded;
    };
    uint8_t* out = out_at;
    uint8_t* second_out = out_at + out_row;
    // The outputs of a window, whose last kStride columns are loaded.
    const auto window = [&](auto is_inside, const Column& left, Column& middle, Column& right)
        __attribute__((always_inline)) {
      if constexpr (kStride == 2) middle = next_column(is_inside);
      right = next_column(is_inside);
      VecI32 outputs[2][2];
#pragma GCC unroll 2
      for (uint32_t r = 0; r < kRows; ++r) {
        // Loaded for each sum.
        __asm__("" : "+r"(begin_of_sums));
        VecI32 low, high;
        load_two(begin_of_sums + r * kChannels, low, high);
        low = vdotq_s32(low, left.low, weights[r][0].low);
        high = vdotq_s32(high, left.high, weights[r][0].high);
        low = vdotq_s32(low, middle.low, weights[r][1].low);
        high = vdotq_s32(high, middle.high, weights[r][1].high);
        low = vdotq_s32(low, right.low, weights[r][2].low);
        high = vdotq_s32(high, right.high, weights[r][2].high);
        if constexpr (Kind::kIsSplit) {
          low = vdotq_s32(low, left.low, remainders[r][0].low);
          high = vdotq_s32(high, left.high, remainders[r][0].high);
          low = vdotq_s32(low, middle.low, remainders[r][1].low);
          high = vdotq_s32(high, middle.high, remainders[r][1].high);
          low = vdotq_s32(low, right.low, remainders[r][2].low);
          high = vdotq_s32(high, right.high, remainders[r][2].high);
        }
        if constexpr (kHasOffset<Epilogue>) {
          __asm__("" : "+r"(offsets));
          VecF32 offset[2];
          load_two(offsets, offset[0], offset[1]);
          outputs[r][0] = Epilogue(first.scale, offset[0]).outputs(low);
          outputs[r][1] = Epilogue(second.scale, offset[1]).outputs(high);
        } else {
          outputs[r][0] = first.outputs(low);
          outputs[r][1] = second.outputs(high);
        }
      }
      // Not sooner: GCC 12 would move sums into its registers, by 4 of 52 instructions.
      if constexpr (kRows == 2) __asm__("" : : "w"(left.low), "w"(left.high));
      VecI32 both[1] = {
          bytes.pack(outputs[0][0], outputs[0][1], outputs[kRows - 1][0], outputs[kRows - 1][1])};
      bytes.finish(both);
      const uint8x16_t packed = as_bytes(both[0]);
      vst1_u8(out, vget_low_u8(packed));
      out += pixel;
      if constexpr (kRows == 2) {
        vst1q_lane_u64(reinterpret_cast<uint64_t*>(second_out), vreinterpretq_u64_u8(packed), 1);
        second_out += pixel;
      }
    };
    // Columns stay where they are, and take turns. All but the last few windows have columns that need no
    // look at where the image ends.
    Column a0 = next_column(Within<false>()), a1{}, a2{};
    if constexpr (kStride == 1) a1 = next_column(Within<false>());
    constexpr uint32_t kTurn = kStride == 1 ? 3 : 2;
    uint32_t left = a.output_w;
    for (uint32_t turns = windows_within<kStride>(a) / kTurn; turns != 0; --turns, left -= kTurn) {
      if constexpr (kStride == 1) {
        window(Within<true>(), a0, a1, a2);
        window(Within<true>(), a1, a2, a0);
        window(Within<true>(), a2, a0, a1);
      } else {
        window(Within<true>(), a0, a1, a2);
        window(Within<true>(), a2, a1, a0);
      }
    }
    while (left != 0) {
      window(Within<false>(), a0, a1, a2);
      if (--left == 0) break;
      if constexpr (kStride == 1) {
        window(Within<false>(), a1, a2, a0);
        if (--left == 0) break;
        window(Within<false>(), a2, a0, a1);
      } else {
        window(Within<false>(), a2, a1, a0);
      }
      --left;
    }
  }
}

// Groups of kRows rows of outputs, those together that have the same rows outside the image.
template <uint32_t kRows, uint32_t kStride, typename Kind, typename Epilogue>
inline void run_groups(const DepthwiseConv2dArgs& a, const Rows& all, uint32_t channel) {
  if (all.padding != nullptr) {
    if (all.first < all.end) run_channels<kRows, kStride, Kind, Epilogue>(a, all, channel);
    return;
  }
  for (Rows rows = all; rows.first < all.end; rows.first = rows.end) {
    rows.outside = rows_outside(a, rows.first, kRows + 2);
    rows.end = rows.first + kRows;
    while (rows.end < all.end && rows_outside(a, rows.end, kRows + 2) == rows.outside) rows.end += kRows;
    run_channels<kRows, kStride, Kind, Epilogue>(a, rows, channel);
  }
}

// All channels of some rows, of which the inputs stay in the first cache meanwhile.
inline void run_band(const DepthwiseConv2dArgs& a, const Rows& rows) {
  Rows pairs = rows, last = rows;
  pairs.end = last.first = rows.first + (rows.end - rows.first) / 2 * 2;
  uint64x2_t remainders = vdupq_n_u64(0);
  for (uint32_t channel = 0; channel < a.input_c; channel += kChannels) {
    if (a.weights_zero_point != 0 && channel % 16 == 0) remainders = remainders_of(a, channel);
    const uint64_t remainder =
        channel % 16 == 0 ? vgetq_lane_u64(remainders, 0) : vgetq_lane_u64(remainders, 1);
    with_epilogue_of_bytes(a, channel, [&](auto kind) {
      using Epilogue = typename decltype(kind)::Epilogue;
      const auto run = [&](auto kind_of_bytes) {
        using Kind = decltype(kind_of_bytes);
        if (a.stride_h == 2) return run_groups<1, 2, Kind, Epilogue>(a, rows, channel);
        run_groups<2, 1, Kind, Epilogue>(a, pairs, channel);
        run_groups<1, 1, Kind, Epilogue>(a, last, channel);
      };
      // int8 needs no other sign; where integers make the outputs, that is no gain.
      if (remainder != 0) {
        run(Bytes<true, true>());
      } else if (a.input_dtype == Dtype::kS8 && Epilogue::kIsFloat) {
        run(Bytes<!Epilogue::kIsFloat, false>());
      } else {
        run(Bytes<true, false>());
      }
    });
  }
}

// Never inlined: EpilogueRounding changes the floating point environment around it.
__attribute__((noinline)) void run_items(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end,
                                         void* scratch) {
  constexpr size_t kBandBytes = 16 << 10;
  const size_t row_bytes = size_t{a.input_w} * a.input_c;
  auto* padding = padding_bytes(a) != 0 ? static_cast<uint8_t*>(scratch) : nullptr;
  if (padding != nullptr) __builtin_memset(padding, static_cast<uint8_t>(a.pad_value), row_bytes);
  const uint32_t per_image = items_of_image(a), rows_of_item = item_rows(a);
  const auto fitting = static_cast<uint32_t>(kBandBytes / (row_bytes * a.stride_h * rows_of_item));
  const uint32_t most = fitting != 0 ? fitting : 1;
  for (uint32_t item = begin; item < end;) {
    const uint32_t image = item / per_image, first = item % per_image;
    uint32_t count = per_image - first < end - item ? per_image - first : end - item;
    if (count > most) count = most;
    const uint32_t end_row = (first + count) * rows_of_item;
    run_band(a, {padding, image, first * rows_of_item, end_row < a.output_h ? end_row : a.output_h, 0});
    item += count;
  }
}
#endif

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const DepthwiseConv2dArgs& a) {
  if (a.contract == Contract::kAcc32) return Refusal::kContract;
  if (a.output_c != a.input_c || a.input_c % kChannels != 0) return Refusal::kGroups;
  if (a.weights_layout != kLayout_hwo16) return Refusal::kLayout;
  if (!is_product_origin(a.input_dtype, a.input_zero_point)) return Refusal::kInputZeroPoint;
  if (!two_bytes_hold_weights(a)) return Refusal::kWeightsZeroPoint;
  const bool has_code = a.kernel_h == 3 && a.kernel_w == 3 && a.stride_h == a.stride_w && a.stride_h <= 2 &&
                        a.dilation_h == 1 && a.dilation_w == 1;
  if (!has_code) return Refusal::kWindow;
  // Every window has a row of the image: a row outside it has weights of 0, and reads what is there.
  const bool has_rows = padding_bytes(a) != 0 || (a.pad_top < 3 && (uint64_t{a.output_h} - 1) * a.stride_h <
                                                                       uint64_t{a.input_h} + a.pad_top);
  if (!has_rows) return Refusal::kWindow;
  const bool fits = a.input_c < (1u << 20) && a.input_w < (1u << 20) && a.input_h < (1u << 20) &&
                    a.output_h < (1u << 20) && a.pad_left < (1u << 20) && a.pad_top < (1u << 20);
  return fits ? Refusal::kNone : Refusal::kTooLarge;
}

size_t scratch_bytes(const DepthwiseConv2dArgs& a) { return padding_bytes(a); }

uint32_t work_items(const DepthwiseConv2dArgs& a) { return a.batch * items_of_image(a); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  const EpilogueRounding rounding(a.float_epilogue != FloatEpilogue::kNone);
  run_items(a, begin, end, scratch);
}
#endif

}  // namespace qplan::depthwise_dots_dotprod
