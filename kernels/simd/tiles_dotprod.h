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

// load_four_on by number, since GCC 12 moves sums out of the way of neighbours.
__attribute__((always_inline)) inline void load_weights_on(const int8_t*& from, int8x16_t (&to)[4]) {
#if defined(__clang__)
  load_four_on(from, to);
#else
  register int8x16_t a __asm__("v28");
  register int8x16_t b __asm__("v29");
  register int8x16_t c __asm__("v30");
  register int8x16_t d __asm__("v31");
  __asm__("ld1 {v28.16b - v31.16b}, [%4], #64"
          : "=w"(a), "=w"(b), "=w"(c), "=w"(d), "+r"(from)
          : "m"(*reinterpret_cast<const int8x16x4_t*>(from)));
  to[0] = a;
  to[1] = b;
  to[2] = c;
  to[3] = d;
#endif
}

// Groups of four bytes of a tap. Three and twelve are the rows of a window of 3 pixels of 3 or 16 channels: a
// tap of twelve takes a tile of 4 rows 219 instructions, 9 less than where the tile finds out how many there
// are. Eights are a multiple of eight.
enum class TapGroups { kAny, kThree, kTwelve, kEights };

// Sums of kRows rows by 4 * kVectors channels. kToSigned: bytes are uint8, of which 128 is subtracted.
// kSumsWeights: of one row, whose weights are summed on the way.
template <uint32_t kRows, uint32_t kVectors, bool kToSigned, bool kSumsWeights = false>
struct TileSums {
  VecI32 of[kRows][kVectors];
  VecI32 of_weights[kVectors];

  static int8x16_t signed_bytes(uint8x16_t bytes, uint8x16_t sign_bias) {
    return vreinterpretq_s8_u8(kToSigned ? veorq_u8(bytes, sign_bias) : bytes);
  }

  // Group kGroup of 16 bytes of rows; moves weights on.
  template <int kGroup>
  __attribute__((always_inline)) void add_group(const int8_t*& weights, const int8x16_t (&rows)[kRows]) {
    int8x16_t w[kVectors];
    if constexpr (kVectors == 4) {
      load_weights_on(weights, w);
    } else {
      load_two(weights, w[0], w[1]);
      weights += 64;
    }
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

  // The first kGroups groups of 16 bytes of rows.
  template <uint32_t kGroups>
  __attribute__((always_inline)) void add_groups(const int8_t*& weights, const int8x16_t (&rows)[kRows]) {
    add_group<0>(weights, rows);
    if constexpr (kGroups >= 2) add_group<1>(weights, rows);
    if constexpr (kGroups == 4) {
      add_group<2>(weights, rows);
      add_group<3>(weights, rows);
    }
  }

  // kCount bytes of each row from `offset` on, and their weights; moves these on.
  template <uint32_t kCount>
  __attribute__((always_inline)) void add_bytes(const uint8_t* const (&at)[kRows], size_t offset,
                                                const int8_t*& weights, uint8x16_t sign_bias) {
    int8x16_t rows[kRows];
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
      rows[p] = signed_bytes(load_some<kCount>(at[p] + offset), sign_bias);
    }
    add_groups<kCount / 4>(weights, rows);
  }
  // 32 bytes; moves rows and weights on.
  __attribute__((always_inline)) void add_two_vectors(const uint8_t* (&at)[kRows], const int8_t*& weights,
                                                      uint8x16_t sign_bias) {
    int8x16_t first[kRows], second[kRows];
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
      uint8x16_t low, high;
      load_two_on(at[p], low, high);
      first[p] = signed_bytes(low, sign_bias);
      second[p] = signed_bytes(high, sign_bias);
    }
    add_groups<4>(weights, first);
    add_groups<4>(weights, second);
  }

  template <TapGroups kGroups = TapGroups::kAny>
  __attribute__((always_inline)) void add_rows(const Gemm& g, const uint8_t* const (&rows)[kRows],
                                               const int8_t* weights, uint8x16_t sign_bias) {
    const uint32_t num_k4 = tap_k4(g);
    const size_t* tap = g.tap_offsets;
    for (const size_t* end = tap + g.num_taps; tap != end; ++tap) {
      const uint8_t* at[kRows];
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) at[p] = rows[p] + *tap;
      if constexpr (kGroups == TapGroups::kThree) {
        add_bytes<8>(at, 0, weights, sign_bias);
        add_bytes<4>(at, 8, weights, sign_bias);
        continue;
      }
      if constexpr (kGroups == TapGroups::kTwelve) {
        add_two_vectors(at, weights, sign_bias);
        add_bytes<16>(at, 0, weights, sign_bias);
        continue;
      }
      if constexpr (kGroups == TapGroups::kEights) {
        const int8_t* next = weights + size_t{num_k4} * 64;
        do add_two_vectors(at, weights, sign_bias);
        while (weights != next);
        continue;
      }
      for (const int8_t* pairs = weights + size_t{num_k4 / 8} * 512; weights != pairs;) {
        add_two_vectors(at, weights, sign_bias);
      }
      if ((num_k4 & 4) != 0) add_bytes<16>(at, 0, weights, sign_bias);
      if ((num_k4 & 2) != 0) add_bytes<8>(at, num_k4 * 4 & 16, weights, sign_bias);
      if ((num_k4 & 1) != 0) add_bytes<4>(at, num_k4 * 4 & 24, weights, sign_bias);
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
  __attribute__((always_inline)) void begin(const int32_t*& term,
                                            TileSums<kRows, kVectors, kToSigned>& sums) const {
    const int32_t* from = of;
    __asm__("" : "+r"(from) : "m"(of));
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
      // For each row anew: copies would take more instructions.
      __asm__ volatile("" : "+r"(from));
#pragma GCC unroll 2
      for (uint32_t q = 0; q < kVectors; q += 2)
        load_two(from + q * kLanes, sums.of[p][q], sums.of[p][q + 1]);
    }
    if (term == nullptr) return;
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
      const VecI32 of_row = load_one_on(term);
#pragma GCC unroll 4
      for (uint32_t q = 0; q < kVectors; ++q) sums.of[p][q] = add(sums.of[p][q], of_row);
    }
  }
};

// kRows rows by the first channels.
template <uint32_t kRows, bool kToSigned, TapGroups kGroups, uint32_t kVectors, typename Writer>
__attribute__((always_inline)) inline void gemm_tile(const Gemm& g, const TileStart<kVectors>& start,
                                                     const Writer& writer, RowWalk& walk) {
  TileSums<kRows, kVectors, kToSigned> sums;
  start.begin(walk.term, sums);
  const uint8_t* rows[kRows];
  walk.take(rows);
  sums.template add_rows<kGroups>(g, rows, g.weights, dot_sign_bias(g));
  writer.write(walk.out, g, 0, sums.of);
  walk.next_tile<kRows>(g);
}

// All rows by 4 * kVectors channels. Not inlined: a function for each writer, whose loops need all registers.
template <uint32_t kVectors, bool kToSigned, TapGroups kGroups, typename Writer>
__attribute__((noinline)) void gemm_rows(const Gemm& product, uint32_t channel) {
  Gemm g = product;
  move_to_channels(g, channel);
  constexpr uint32_t kRows = 16 / kVectors;
  const TileStart<kVectors> start(g, 0);
  const Writer writer(g);
  RowWalk walk(g);
  for (uint32_t n = g.num_rows / kRows; n != 0; --n)
    gemm_tile<kRows, kToSigned, kGroups>(g, start, writer, walk);
  for (uint32_t n = g.num_rows % kRows; n != 0; --n)
    gemm_tile<1, kToSigned, TapGroups::kAny>(g, start, writer, walk);
}

// One row by channels [first_channel, end_channel), 16 at a time: weights are read once, and summed on the
// way where their sums are missing.
template <bool kToSigned, bool kSumsWeights, typename Writer>
__attribute__((noinline)) void gemm_row(const Gemm& product, uint32_t first_channel, uint32_t end_channel) {
  Gemm g = product;
  move_to_channels(g, first_channel);
  const Writer writer(g);
  const uint8_t* const rows[1] = {g.rows == nullptr ? g.first_row : g.rows[0]};
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
    sums.add_rows(g, rows, weights, sign_bias);
    if constexpr (kSumsWeights) {
      add_bias(g, channel, sums.of_weights);
#pragma GCC unroll 4
      for (uint32_t q = 0; q < 4; ++q) sums.of[0][q] = add(sums.of[0][q], sums.of_weights[q]);
    }
    writer.write(outputs_at(g, 0, channel), g, channel, sums.of);
  }
}

// Four vectors of channels under the epilogue of most layers: others do without functions of their own.
template <TapGroups kGroups, typename Writer>
inline void gemm_of_taps(const Gemm& g, uint32_t channel, bool to_signed) {
  if constexpr (kIsShifted<typename Writer::EpilogueType>) {
    to_signed ? gemm_rows<4, true, kGroups, Writer>(g, channel)
              : gemm_rows<4, false, kGroups, Writer>(g, channel);
  }
}

// Channels from `channel` on, at most to end_channel, which have one epilogue; returns where they end.
template <typename Writer>
inline uint32_t gemm_group(const Gemm& g, uint32_t channel, uint32_t end_channel) {
  const bool to_signed = g.sign_bias == 0;
  if (g.num_rows != 1) {
    if (g.num_channels - channel <= 8) {
      to_signed ? gemm_rows<2, true, TapGroups::kAny, Writer>(g, channel)
                : gemm_rows<2, false, TapGroups::kAny, Writer>(g, channel);
    } else if (kIsShifted<typename Writer::EpilogueType> && tap_k4(g) == 3) {
      gemm_of_taps<TapGroups::kThree, Writer>(g, channel, to_signed);
    } else if (kIsShifted<typename Writer::EpilogueType> && tap_k4(g) == 12) {
      gemm_of_taps<TapGroups::kTwelve, Writer>(g, channel, to_signed);
    } else if (kIsShifted<typename Writer::EpilogueType> && tap_k4(g) % 8 == 0 && tap_k4(g) != 0) {
      gemm_of_taps<TapGroups::kEights, Writer>(g, channel, to_signed);
    } else {
      to_signed ? gemm_rows<4, true, TapGroups::kAny, Writer>(g, channel)
                : gemm_rows<4, false, TapGroups::kAny, Writer>(g, channel);
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
    with_writer<16>(g, channel, [&](auto kind) {
      channel = gemm_group<typename decltype(kind)::Epilogue>(g, channel, end_block * 16);
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
