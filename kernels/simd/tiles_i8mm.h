// The tiles of kernels/simd/gemm.h with Arm's products of two by eight bytes (FEAT_I8MM). An instruction
// multiplies eight bytes of two rows by those of two channels: 32 products, where a dot product has 16. A
// vector of weights has four bytes of four channels, and two of them, interleaved by four bytes, are eight
// bytes of two pairs of channels. Eight rows by eight channels take 16 registers. uint8 is multiplied as it
// is (USMMLA); int8 is u - 128 (SMMLA), so that 128 times the sum of a channel's weights is missing, with
// which sums begin. One row has no second one to share an instruction with: SUDOT multiplies it. Internal
// linkage only.
#ifndef QPLAN_KERNELS_SIMD_TILES_I8MM_H_
#define QPLAN_KERNELS_SIMD_TILES_I8MM_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/tile_parts_dotprod.h"

namespace qplan {
namespace {

constexpr uint32_t kPairChannels = 8;  // of a tile
constexpr uint32_t kPairVectors = 4;   // of two channels of two rows each

// Rows of a tile: `count` (1 .. 2 * kPairs), and the last one for those that are lacking. Where rows are
// equally far apart, so are those of the next tile.
template <uint32_t kPairs>
struct PairRows {
  const uint8_t* first;
  ptrdiff_t offsets[2 * kPairs];

  PairRows(const Gemm& g, uint32_t row, uint32_t count) {
#pragma GCC unroll 8
    for (uint32_t p = 0; p < 2 * kPairs; ++p) {
      offsets[p] = static_cast<ptrdiff_t>((p < count ? p : count - 1) * g.row_stride);
    }
    move_to(g, row, count);
  }

  __attribute__((always_inline)) void move_to(const Gemm& g, uint32_t row, uint32_t count) {
    if (g.rows == nullptr) {
      first = g.first_row + row * g.row_stride;
      return;
    }
    first = g.rows[row];
#pragma GCC unroll 8
    for (uint32_t p = 0; p < 2 * kPairs; ++p) offsets[p] = g.rows[row + (p < count ? p : count - 1)] - first;
  }
};

inline VecI32 low_halves(VecI32 a, VecI32 b) {
  return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}
inline VecI32 high_halves(VecI32 a, VecI32 b) {
  return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}
inline int8x16_t load_halves(const uint8_t* first, const uint8_t* second) {
  return vreinterpretq_s8_u8(vcombine_u8(vld1_u8(first), vld1_u8(second)));
}

// Four bytes of each channel, and the four that follow them or none: eight of channels 0 and 1, of 2 and 3,
// ...
template <uint32_t kCount>
struct PairWeights {
  int8x16_t of[kPairVectors];

  explicit PairWeights(const int8_t* from) {
#pragma GCC unroll 2
    for (uint32_t i = 0; i < 2; ++i) {
      const VecI32 first = load_ints(from + 16 * i);
      const VecI32 second = kCount == 8 ? load_ints(from + 64 + 16 * i) : set_ints(0);
      of[2 * i] = vreinterpretq_s8_s32(vzip1q_s32(first, second));
      of[2 * i + 1] = vreinterpretq_s8_s32(vzip2q_s32(first, second));
    }
  }
};

// of[p][q]: row 2p of channels 2q and 2q + 1, then row 2p + 1 of them. kSigned: rows are int8.
template <uint32_t kPairs, bool kSigned>
struct PairSums {
  VecI32 of[kPairs][kPairVectors];

  // kCount bytes of two rows side by side.
  template <uint32_t kCount>
  __attribute__((always_inline)) void add_pairs(const int8_t* weights, const int8x16_t (&rows)[kPairs]) {
    const PairWeights<kCount> w(weights);
#pragma GCC unroll 4
    for (uint32_t p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
      for (uint32_t q = 0; q < kPairVectors; ++q) {
        of[p][q] = kSigned ? vmmlaq_s32(of[p][q], rows[p], w.of[q])
                           : vusmmlaq_s32(of[p][q], vreinterpretq_u8_s8(rows[p]), w.of[q]);
      }
    }
  }

  __attribute__((always_inline)) void add_rows(const Gemm& g, const PairRows<kPairs>& rows,
                                               const int8_t* weights) {
    const uint32_t num_k4 = tap_k4(g);
    const size_t* tap = g.tap_offsets;
    const size_t* const end = tap + g.num_taps;
    if (num_k4 == 1) {  // two taps are as good as one of eight bytes
      for (; tap + 2 <= end; tap += 2, weights += 128) {
        int8x16_t both[kPairs];
#pragma GCC unroll 4
        for (uint32_t p = 0; p < kPairs; ++p) {
          const uint8_t *first = rows.first + rows.offsets[2 * p],
                        *second = rows.first + rows.offsets[2 * p + 1];
          uint32x4_t bytes = vdupq_n_u32(load_four(first + tap[0]));
          bytes = vsetq_lane_u32(load_four(first + tap[1]), bytes, 1);
          bytes = vsetq_lane_u32(load_four(second + tap[0]), bytes, 2);
          both[p] = vreinterpretq_s8_u32(vsetq_lane_u32(load_four(second + tap[1]), bytes, 3));
        }
        add_pairs<8>(weights, both);
      }
    }
    for (; tap != end; ++tap) {
      const uint8_t* at = rows.first + *tap;
      for (const int8_t* whole = weights + size_t{num_k4 / 4} * 256; weights != whole;
           weights += 256, at += 16) {
        int8x16_t low[kPairs], high[kPairs];
#pragma GCC unroll 4
        for (uint32_t p = 0; p < kPairs; ++p) {
          const VecI32 first = load_ints(at + rows.offsets[2 * p]);
          const VecI32 second = load_ints(at + rows.offsets[2 * p + 1]);
          low[p] = vreinterpretq_s8_s32(low_halves(first, second));
          high[p] = vreinterpretq_s8_s32(high_halves(first, second));
        }
        add_pairs<8>(weights, low);
        add_pairs<8>(weights + 128, high);
      }
      int8x16_t some[kPairs];
      if ((num_k4 & 2) != 0) {
#pragma GCC unroll 4
        for (uint32_t p = 0; p < kPairs; ++p) {
          some[p] = load_halves(at + rows.offsets[2 * p], at + rows.offsets[2 * p + 1]);
        }
        add_pairs<8>(weights, some);
        weights += 128;
        at += 8;
      }
      if ((num_k4 & 1) != 0) {
#pragma GCC unroll 4
        for (uint32_t p = 0; p < kPairs; ++p) {
          const uint64x2_t first = vdupq_n_u64(load_four(at + rows.offsets[2 * p]));
          some[p] = vreinterpretq_s8_u64(vsetq_lane_u64(load_four(at + rows.offsets[2 * p + 1]), first, 1));
        }
        add_pairs<4>(weights, some);
        weights += 64;
      }
    }
  }
};

// What goes with channels, in the order of PairSums: two of them twice. Epilogues load it like that of a
// layer.
struct PairConstants {
  static constexpr uint32_t kCount = 2 * kPairChannels;
  int32_t begin[kCount];  // of sums
  int32_t multiplier[kCount], shift[kCount];
  float scale[kCount], float_scale[kCount], float_offset[kCount];

  template <typename Number>
  static void twice(Number* to, const Number* from) {
    if (from == nullptr) return;
    for (uint32_t i = 0; i < kPairChannels; i += 4) {
      const VecI32 four = load_ints(from + i);
      store_ints(to + 2 * i, low_halves(four, four));
      store_ints(to + 2 * i + 4, high_halves(four, four));
    }
  }
  template <typename Number>
  static const Number* at(const Number* from, uint32_t channel) {
    return from == nullptr ? nullptr : from + channel;
  }

  PairConstants(const Gemm& g, uint32_t channel, const int8_t* weights) {
    int32_t sums[kPairChannels];
    VecI32 low = set_ints(0), high = set_ints(0);
    if (g.sign_bias != 0) {
      const int8x16_t ones = vdupq_n_s8(1);
      for (size_t k = size_t{g.num_taps} * tap_k4(g); k != 0; --k, weights += 64) {
        low = vdotq_s32(low, vld1q_s8(weights), ones);
        high = vdotq_s32(high, vld1q_s8(weights + 16), ones);
      }
    }
    store_ints(sums, add(load_ints(g.bias + channel), shift_left<7>(low)));
    store_ints(sums + 4, add(load_ints(g.bias + channel + 4), shift_left<7>(high)));
    twice<int32_t>(begin, sums);
    twice(multiplier, at(g.multiplier, channel));
    twice(shift, at(g.shift, channel));
    twice(scale, at(g.scale, channel));
    twice(float_scale, at(g.float_scale, channel));
    twice(float_offset, at(g.float_offset, channel));
  }

  template <uint32_t kPairs, bool kSigned>
  __attribute__((always_inline)) void begin_sums(const Gemm& g, uint32_t row, uint32_t count,
                                                 PairSums<kPairs, kSigned>& sums) const {
    const int32_t* from = begin;
    __asm__("" : "+r"(from) : "m"(begin));
    VecI32 first[kPairVectors];
#pragma GCC unroll 4
    for (uint32_t q = 0; q < kPairVectors; ++q) first[q] = load_ints(from + q * kLanes);
#pragma GCC unroll 4
    for (uint32_t p = 0; p < kPairs; ++p) {
      VecI32 term = set_ints(0);
      if (g.row_term != nullptr) {
        const uint32_t a = 2 * p < count ? 2 * p : count - 1, b = 2 * p + 1 < count ? 2 * p + 1 : count - 1;
        term = vcombine_s32(vdup_n_s32(g.row_term[row + a]), vdup_n_s32(g.row_term[row + b]));
      }
#pragma GCC unroll 4
      for (uint32_t q = 0; q < kPairVectors; ++q) sums.of[p][q] = add(first[q], term);
    }
  }
};

// Makes outputs of a tile's sums.
template <typename Epilogue>
struct PairWriter {
  // Writes one row whose channels are in their order.
  using RowWriter = OutputWriter<Epilogue>;
  typename EpilogueBytes<Epilogue>::Type bytes;
  explicit PairWriter(const Gemm& g) : bytes(g) {}

  template <uint32_t kPairs>
  __attribute__((always_inline)) void write(const Gemm& g, uint32_t row, uint32_t count, uint32_t channel,
                                            const PairConstants& constants,
                                            const VecI32 (&sums)[kPairs][kPairVectors]) const {
    VecI32 outputs[kPairs][kPairVectors];
#pragma GCC unroll 4
    for (uint32_t q = 0; q < kPairVectors; ++q) {
      const Epilogue epilogue(constants, q * kLanes);
#pragma GCC unroll 4
      for (uint32_t p = 0; p < kPairs; ++p) outputs[p][q] = epilogue.outputs(sums[p][q]);
    }
    uint8_t* out = g.first_out + row * g.out_stride + channel;
#pragma GCC unroll 2
    for (uint32_t p = 0; p < kPairs; p += 2, out += 4 * g.out_stride) {
      if (2 * p >= count) break;
      // Two channels of a row and two of the next, four times.
      const int16x8_t first = as_words(pack(outputs[p])), second = as_words(pack(outputs[p + 1]));
      const VecI32 even = as_ints(vuzp1q_s16(first, second)), odd = as_ints(vuzp2q_s16(first, second));
      if (count == 2 * kPairs && channel + kPairChannels <= g.num_channels) {
        vst1_u8(out, vget_low_u8(as_bytes(even)));
        vst1_u8(out + g.out_stride, vget_low_u8(as_bytes(odd)));
        vst1_u8(out + 2 * g.out_stride, vget_high_u8(as_bytes(even)));
        vst1_u8(out + 3 * g.out_stride, vget_high_u8(as_bytes(odd)));
      } else {
        store_some(g, channel, out, even, odd, count - 2 * p);
      }
    }
  }

 private:
  // Up to four rows, of up to 8 channels.
  __attribute__((noinline)) static void store_some(const Gemm& g, uint32_t channel, uint8_t* out, VecI32 even,
                                                   VecI32 odd, uint32_t count) {
    const uint32_t left = g.num_channels - channel, channels = left < kPairChannels ? left : kPairChannels;
    store_halves(out, 2 * g.out_stride, even, channels, count > 2 ? 2 : 1);
    if (count > 1) store_halves(out + g.out_stride, 2 * g.out_stride, odd, channels, count > 3 ? 2 : 1);
  }
  VecI32 pack(const VecI32 (&v)[kPairVectors]) const { return bytes.pack(v[0], v[1], v[2], v[3]); }
};

// ACC32: the sums are the outputs. Vectors of integers are stored as they are.
struct PairSumWriter {
  using RowWriter = SumWriter;
  explicit PairSumWriter(const Gemm&) {}

  template <uint32_t kPairs>
  __attribute__((always_inline)) void write(const Gemm& g, uint32_t row, uint32_t count, uint32_t channel,
                                            const PairConstants&,
                                            const VecI32 (&sums)[kPairs][kPairVectors]) const {
    const uint32_t left = g.num_channels - channel, channels = left < kPairChannels ? left : kPairChannels;
    for (uint32_t p = 0; p < count; ++p) {
      auto* out = reinterpret_cast<float*>(g.first_out + (row + p) * g.out_stride) + channel;
      for (uint32_t c = 0; c < channels; c += kLanes) {
        const VecI32 a = sums[p / 2][c / 2], b = sums[p / 2][c / 2 + 1];
        const VecI32 of_row = p % 2 == 0 ? low_halves(a, b) : high_halves(a, b);
        store_reals(out + c, as_reals(of_row), channels - c < kLanes ? channels - c : kLanes);
      }
    }
  }
};

template <uint32_t kPairs, bool kSigned, typename Writer>
__attribute__((always_inline)) inline void pair_tile(const Gemm& g, const PairRows<kPairs>& rows,
                                                     uint32_t row, uint32_t count, uint32_t channel,
                                                     const int8_t* weights, const PairConstants& constants,
                                                     const Writer& writer) {
  PairSums<kPairs, kSigned> sums;
  constants.begin_sums(g, row, count, sums);
  sums.add_rows(g, rows, weights);
  writer.write(g, row, count, channel, constants, sums.of);
}

// All rows by kPairChannels channels. Not inlined: a function for each writer, whose loops need all
// registers.
template <bool kSigned, typename Writer>
__attribute__((noinline)) void gemm_pairs(const Gemm& product, uint32_t channel) {
  const Gemm g = product;  // which outputs cannot change
  const int8_t* weights = channel_weights(g, channel) + channel % 16 * 4;
  const PairConstants constants(g, channel, weights);
  const Writer writer(g);
  uint32_t row = 0;
  if (g.num_rows >= 8) {
    PairRows<4> rows(g, 0, 8);
    for (; row + 8 <= g.num_rows; row += 8) {
      rows.move_to(g, row, 8);
      pair_tile<4, kSigned>(g, rows, row, 8, channel, weights, constants, writer);
    }
  }
  for (uint32_t left = g.num_rows - row; left != 0; left = g.num_rows - row) {
    const uint32_t count = left < 4 ? left : 4;
    pair_tile<2, kSigned>(g, PairRows<2>(g, row, count), row, count, channel, weights, constants, writer);
    row += count;
  }
}

// Group kGroup of 16 bytes of a row by 16 channels; the weights of the first group are at `weights`.
template <int kGroup>
__attribute__((always_inline)) inline void add_row_group(VecI32 (&sums)[4], const int8_t* weights,
                                                         uint8x16_t bytes) {
#pragma GCC unroll 4
  for (uint32_t q = 0; q < 4; ++q) {
    sums[q] = vsudotq_laneq_s32(sums[q], vld1q_s8(weights + 64 * kGroup + 16 * q), bytes, kGroup);
  }
}

// One row by channels [first_channel, end_channel), 16 at a time.
template <typename Writer>
__attribute__((noinline)) void gemm_row(const Gemm& product, uint32_t first_channel, uint32_t end_channel) {
  const Gemm g = product_of_channels(product, first_channel);
  const Writer writer(g);
  const uint8_t* row = g.rows == nullptr ? g.first_row : g.rows[0];
  const uint8x16_t sign_bias = vdupq_n_u8(g.sign_bias);
  const VecI32 term = set_ints(g.row_term != nullptr ? g.row_term[0] : 0);
  const uint32_t num_k4 = tap_k4(g);
  const int8_t* weights = g.weights;
  for (uint32_t channel = 0; channel < end_channel - first_channel; channel += 16) {
    VecI32 sums[1][4];
#pragma GCC unroll 4
    for (uint32_t q = 0; q < 4; ++q) sums[0][q] = add(load_ints(g.bias + channel + q * kLanes), term);
    const size_t* tap = g.tap_offsets;
    for (const size_t* end = tap + g.num_taps; tap != end; ++tap) {
      const uint8_t* at = row + *tap;
#pragma GCC unroll 2
      for (const int8_t* whole = weights + size_t{num_k4 / 4} * 256; weights != whole;
           weights += 256, at += 16) {
        const uint8x16_t bytes = veorq_u8(vld1q_u8(at), sign_bias);
        add_row_group<0>(sums[0], weights, bytes);
        add_row_group<1>(sums[0], weights, bytes);
        add_row_group<2>(sums[0], weights, bytes);
        add_row_group<3>(sums[0], weights, bytes);
      }
      for (uint32_t k = num_k4 % 4; k != 0; --k, weights += 64, at += 4) {
        const uint8x16_t four = vreinterpretq_u8_u32(vdupq_n_u32(load_four(at)));
        add_row_group<0>(sums[0], weights, veorq_u8(four, sign_bias));
      }
    }
    writer.template write<1, 4>(g, 0, channel, sums);
  }
}

// Channels from `channel` on, at most to end_channel, which have one epilogue; returns where they end.
template <typename Writer>
inline uint32_t gemm_group(const Gemm& g, uint32_t channel, uint32_t end_channel) {
  if (g.num_rows == 1) {
    const uint32_t end = end_of_epilogue(g, channel, end_channel);
    gemm_row<typename Writer::RowWriter>(g, channel, end);
    return end;
  }
  for (uint32_t half = channel; half < channel + 16 && half < g.num_channels; half += kPairChannels) {
    g.sign_bias != 0 ? gemm_pairs<true, Writer>(g, half) : gemm_pairs<false, Writer>(g, half);
  }
  return channel + 16;
}

// Channels of blocks [first_block, end_block). A function of its own, never inlined: EpilogueRounding may
// change the floating point environment around it.
__attribute__((noinline)) void gemm_blocks(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  for (uint32_t channel = first_block * 16; channel < end_block * 16;) {
    with_epilogue_of_bytes(g, channel, [&](auto kind) {
      channel = gemm_group<PairWriter<typename decltype(kind)::Epilogue>>(g, channel, end_block * 16);
    });
  }
}

__attribute__((noinline)) void sums_blocks(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  for (uint32_t channel = first_block * 16; channel < end_block * 16;) {
    channel = gemm_group<PairSumWriter>(g, channel, end_block * 16);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_TILES_I8MM_H_
