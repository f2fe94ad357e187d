// The tiles of kernels/simd/gemm.h with the dot products of Arm (SDOT, FEAT_DotProd). An unsigned byte u is
// multiplied as u - 128. Unless that is its origin, 128 times the sum of a channel's weights is missing in
// every row: sums begin with it. Four rows by 16 channels take 16 registers, and four more 16 bytes of each
// row, of which an instruction takes four by their number. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_TILES_DOTPROD_H_
#define QPLAN_KERNELS_SIMD_TILES_DOTPROD_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/tile_parts_neon.h"

namespace qplan {
namespace {

// Sums of kRows rows by 4 * kVectors channels. kToSigned: bytes are uint8, of which 128 is subtracted.
// kSumsWeights: of one row, whose weights are summed on the way.
template <uint32_t kRows, uint32_t kVectors, bool kToSigned, bool kSumsWeights = false>
struct TileSums {
  VecI32 of[kRows][kVectors];
  VecI32 of_weights[kVectors];

  static int8x16_t signed_bytes(uint8x16_t bytes, uint8x16_t sign_bias) {
    return vreinterpretq_s8_u8(kToSigned ? veorq_u8(bytes, sign_bias) : bytes);
  }

  // Group kGroup of the bytes of rows; the weights of the first group are at `weights`.
  template <int kGroup>
  __attribute__((always_inline)) void add_group(const int8_t* weights, const int8x16_t (&rows)[kRows]) {
    int8x16_t w[kVectors];
#pragma GCC unroll 2
    for (uint32_t q = 0; q < kVectors; q += 2) load_two(weights + 64 * kGroup + 16 * q, w[q], w[q + 1]);
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
#pragma GCC unroll 4
      for (uint32_t q = 0; q < kVectors; ++q) of[p][q] = vdotq_laneq_s32(of[p][q], w[q], rows[p], kGroup);
    }
    if constexpr (kSumsWeights) {
#pragma GCC unroll 4
      for (uint32_t q = 0; q < kVectors; ++q) of_weights[q] = vdotq_s32(of_weights[q], w[q], vdupq_n_s8(1));
    }
  }

  // kCount bytes of each row, and their weights; moves both on.
  template <uint32_t kCount>
  __attribute__((always_inline)) void add_bytes(const uint8_t*& at, const ptrdiff_t (&offsets)[kRows],
                                                const int8_t*& weights, uint8x16_t sign_bias) {
    int8x16_t rows[kRows];
    rows[0] = signed_bytes(load_some<kCount>(at), sign_bias);
#pragma GCC unroll 8
    for (uint32_t p = 1; p < kRows; ++p) {
      rows[p] = signed_bytes(load_some<kCount>(at + offsets[p]), sign_bias);
    }
    add_group<0>(weights, rows);
    if constexpr (kCount >= 8) add_group<1>(weights, rows);
    if constexpr (kCount == 16) {
      add_group<2>(weights, rows);
      add_group<3>(weights, rows);
    }
    at += kCount;
    weights += 16 * kCount;
  }

  __attribute__((always_inline)) void add_rows(const Gemm& g, const TileRows<kRows>& rows,
                                               const int8_t* weights, uint8x16_t sign_bias) {
    const uint32_t num_k4 = tap_k4(g);
    const size_t* tap = g.tap_offsets;
    for (const size_t* end = tap + g.num_taps; tap != end; ++tap) {
      const uint8_t* at = rows.first + *tap;
      const int8_t* whole = weights + size_t{num_k4 / 4} * 256;
      if constexpr (kRows == 1) {
#pragma GCC unroll 2
        while (weights != whole) add_bytes<16>(at, rows.offsets, weights, sign_bias);
      } else {
        while (weights != whole) add_bytes<16>(at, rows.offsets, weights, sign_bias);
      }
      if ((num_k4 & 2) != 0) add_bytes<8>(at, rows.offsets, weights, sign_bias);
      if ((num_k4 & 1) != 0) add_bytes<4>(at, rows.offsets, weights, sign_bias);
    }
  }
};

inline uint8x16_t dot_sign_bias(const Gemm& g) { return vdupq_n_u8(g.sign_bias ^ 0x80); }

// The bias of sums, and what products of signed bytes leave out. sums: of the weights.
template <uint32_t kVectors>
inline void add_bias(const Gemm& g, uint32_t channel, VecI32 (&sums)[kVectors]) {
#pragma GCC unroll 4
  for (uint32_t q = 0; q < kVectors; ++q) {
    sums[q] = add(load_ints(g.bias + channel + q * kLanes), shift_left<7>(sums[q]));
  }
}

// What the sums of all rows begin with. In memory, because the sums and what they are made of take all
// registers.
template <uint32_t kVectors>
struct TileStart {
  int32_t of[kVectors * kLanes];

  TileStart(const Gemm& g, uint32_t channel) {
    VecI32 sums[kVectors];
#pragma GCC unroll 4
    for (VecI32& v : sums) v = set_ints(0);
    const int8_t* weights = channel_weights(g, channel);
    const int8x16_t ones = vdupq_n_s8(1);
    const size_t num_groups = g.is_centred ? 0 : size_t{g.num_taps} * tap_k4(g);
    for (size_t k = num_groups; k != 0; --k, weights += 64) {
#pragma GCC unroll 2
      for (uint32_t q = 0; q < kVectors; q += 2) {
        int8x16_t first, second;
        load_two(weights + 16 * q, first, second);
        sums[q] = vdotq_s32(sums[q], first, ones);
        sums[q + 1] = vdotq_s32(sums[q + 1], second, ones);
      }
    }
    add_bias(g, channel, sums);
#pragma GCC unroll 4
    for (uint32_t q = 0; q < kVectors; ++q) store_ints(of + q * kLanes, sums[q]);
  }

  template <uint32_t kRows, bool kToSigned>
  __attribute__((always_inline)) void begin(const Gemm& g, uint32_t row,
                                            TileSums<kRows, kVectors, kToSigned>& sums) const {
    const int32_t* from = of;
    __asm__("" : "+r"(from) : "m"(of));
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
      // For each row anew: copies would take more instructions.
      __asm__("" : "+r"(from));
#pragma GCC unroll 2
      for (uint32_t q = 0; q < kVectors; q += 2)
        load_two(from + q * kLanes, sums.of[p][q], sums.of[p][q + 1]);
    }
    if (g.row_term == nullptr) return;
    const int32_t* terms = g.row_term + row;
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
      const VecI32 term = set_ints(terms[p]);
#pragma GCC unroll 4
      for (uint32_t q = 0; q < kVectors; ++q) sums.of[p][q] = add(sums.of[p][q], term);
    }
  }
};

template <uint32_t kRows, bool kToSigned, uint32_t kVectors, typename Writer>
__attribute__((always_inline)) inline void gemm_tile(const Gemm& g, uint32_t row, uint32_t channel,
                                                     const TileStart<kVectors>& start, const Writer& writer) {
  TileSums<kRows, kVectors, kToSigned> sums;
  start.begin(g, row, sums);
  sums.add_rows(g, TileRows<kRows>(g, row), channel_weights(g, channel), dot_sign_bias(g));
  writer.write(g, row, channel, sums.of);
}

// All rows by 4 * kVectors channels. Not inlined: a function for each writer, whose loops need all registers.
template <uint32_t kVectors, bool kToSigned, typename Writer>
__attribute__((noinline)) void gemm_rows(const Gemm& product, uint32_t channel) {
  Gemm g = product;
  move_to_channels(g, channel);
  constexpr uint32_t kRows = 16 / kVectors;
  const TileStart<kVectors> start(g, 0);
  const Writer writer(g);
  uint32_t row = 0;
  for (; row + kRows <= g.num_rows; row += kRows) gemm_tile<kRows, kToSigned>(g, row, 0, start, writer);
  for (; row < g.num_rows; ++row) gemm_tile<1, kToSigned>(g, row, 0, start, writer);
}

// One row by channels [first_channel, end_channel), 16 at a time: weights are read once, and summed on the
// way where their sums are missing.
template <bool kToSigned, bool kSumsWeights, typename Writer>
__attribute__((noinline)) void gemm_row(const Gemm& product, uint32_t first_channel, uint32_t end_channel) {
  Gemm g = product;
  move_to_channels(g, first_channel);
  const Writer writer(g);
  const TileRows<1> row(g, 0);
  const uint8x16_t sign_bias = dot_sign_bias(g);
  const VecI32 begin = set_ints(g.row_term != nullptr ? g.row_term[0] : 0);
  const size_t block_bytes = size_t{g.num_taps} * tap_k4(g) * 64;
  const int8_t* weights = g.weights;
  for (uint32_t channel = 0; channel < end_channel - first_channel; channel += 16, weights += block_bytes) {
    TileSums<1, 4, kToSigned, kSumsWeights> sums;
#pragma GCC unroll 2
    for (uint32_t q = 0; q < 4; q += 2) {
      VecI32 *of = &sums.of[0][q], first = set_ints(0), second = set_ints(0);
      if constexpr (!kSumsWeights) load_two(g.bias + channel + q * kLanes, first, second);
      of[0] = add(begin, first);
      of[1] = add(begin, second);
      sums.of_weights[q] = sums.of_weights[q + 1] = set_ints(0);
    }
    sums.add_rows(g, row, weights, sign_bias);
    if constexpr (kSumsWeights) {
      add_bias(g, channel, sums.of_weights);
#pragma GCC unroll 4
      for (uint32_t q = 0; q < 4; ++q) sums.of[0][q] = add(sums.of[0][q], sums.of_weights[q]);
    }
    writer.write(g, 0, channel, sums.of);
  }
}

// Channels from `channel` on, at most to end_channel, which have one epilogue; returns where they end.
template <typename Writer>
inline uint32_t gemm_group(const Gemm& g, uint32_t channel, uint32_t end_channel) {
  const bool to_signed = g.sign_bias == 0;
  if (g.num_rows != 1) {
    if (g.num_channels - channel > 8) {
      to_signed ? gemm_rows<4, true, Writer>(g, channel) : gemm_rows<4, false, Writer>(g, channel);
    } else {
      to_signed ? gemm_rows<2, true, Writer>(g, channel) : gemm_rows<2, false, Writer>(g, channel);
    }
    return channel + 16;
  }
  const uint32_t end = end_of_epilogue(g, channel, end_channel);
  if (!g.is_centred) {
    gemm_row<true, true, Writer>(g, channel, end);
  } else if (to_signed) {
    gemm_row<true, false, Writer>(g, channel, end);
  } else {
    gemm_row<false, false, Writer>(g, channel, end);
  }
  return end;
}

// Channels of blocks [first_block, end_block). A function of its own, never inlined: EpilogueRounding may
// change the floating point environment around it.
__attribute__((noinline)) void gemm_blocks(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  for (uint32_t channel = first_block * 16; channel < end_block * 16;) {
    with_epilogue_of_bytes(g, channel, [&](auto kind) {
      channel = gemm_group<OutputWriter<typename decltype(kind)::Epilogue>>(g, channel, end_block * 16);
    });
  }
}

__attribute__((noinline)) void sums_blocks(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  for (uint32_t channel = first_block * 16; channel < end_block * 16;) {
    channel = gemm_group<SumWriter>(g, channel, end_block * 16);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_TILES_DOTPROD_H_
