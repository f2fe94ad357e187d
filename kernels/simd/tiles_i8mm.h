// The tiles of kernels/simd/gemm.h with Arm's products of two by eight bytes (FEAT_I8MM). An instruction
// multiplies eight bytes of two rows by those of two channels: 32 products, where a dot product has 16.
// Weights in groups of eight bytes are loaded as they are multiplied; those in groups of four are two vectors
// of four channels, interleaved first. Four rows by 16 channels take 16 registers, as do eight rows by 8.
// uint8 is multiplied as it is (USMMLA) and int8, too (SMMLA). Where the origin of int8 is -128, 128 times
// the sum of a channel's weights is missing, with which sums begin. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_TILES_I8MM_H_
#define QPLAN_KERNELS_SIMD_TILES_I8MM_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/tile_parts_neon.h"

namespace qplan {
namespace {

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

// What the bytes of rows are, and the size of the groups of weights.
template <bool kSigned, bool kEights>
struct PairKind {
  static constexpr bool kHasEights = kEights;

  static VecI32 multiply(VecI32 sums, int8x16_t rows, int8x16_t weights) {
    return kSigned ? vmmlaq_s32(sums, rows, weights) : vusmmlaq_s32(sums, vreinterpretq_u8_s8(rows), weights);
  }

  // Eight bytes of channels 8 * i to 8 * i + 7, two in each vector. kCount 4: there are four, of which
  // weights in groups of eight have zeros after them.
  template <uint32_t kCount>
  __attribute__((always_inline)) static void load(const int8_t* from, uint32_t i, int8x16_t (&w)[4]) {
    if constexpr (kEights) {
#pragma GCC unroll 2
      for (uint32_t q = 0; q < 4; q += 2) load_two(from + 64 * i + 16 * q, w[q], w[q + 1]);
    } else {
      VecI32 first[2], second[2];
      load_two(from + 32 * i, first[0], first[1]);
      if constexpr (kCount == 8) {
        load_two(from + 64 + 32 * i, second[0], second[1]);
      } else {
        second[0] = second[1] = set_ints(0);
      }
#pragma GCC unroll 2
      for (uint32_t h = 0; h < 2; ++h) {
        w[2 * h] = vreinterpretq_s8_s32(vzip1q_s32(first[h], second[h]));
        w[2 * h + 1] = vreinterpretq_s8_s32(vzip2q_s32(first[h], second[h]));
      }
    }
  }

  static constexpr size_t kFourBytes = kEights ? 128 : 64;  // of weights of the last four bytes of a tap
  static size_t block_bytes(const Gemm& g) {                // of weights of 16 channels
    const size_t num_k4 = tap_k4(g);
    return g.num_taps * (kEights ? (num_k4 + 1) / 2 * 128 : num_k4 * 64);
  }
};

// of[p][q]: row 2p of channels 2q and 2q + 1, then row 2p + 1 of them.
template <uint32_t kPairs, uint32_t kVectors, typename Kind>
struct PairSums {
  VecI32 of[kPairs][kVectors];

  // kCount bytes of two rows side by side.
  template <uint32_t kCount>
  __attribute__((always_inline)) void add_pairs(const int8_t* weights, const int8x16_t (&rows)[kPairs]) {
#pragma GCC unroll 2
    for (uint32_t i = 0; i < kVectors / 4; ++i) {
      int8x16_t w[4];
      Kind::template load<kCount>(weights, i, w);
#pragma GCC unroll 4
      for (uint32_t p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
        for (uint32_t q = 0; q < 4; ++q) of[p][4 * i + q] = Kind::multiply(of[p][4 * i + q], rows[p], w[q]);
      }
    }
  }

  __attribute__((always_inline)) void add_rows(const Gemm& g, const PairRows<kPairs>& rows,
                                               const int8_t* weights) {
    const uint32_t num_k4 = tap_k4(g);
    const size_t* tap = g.tap_offsets;
    const size_t* const end = tap + g.num_taps;
    if (num_k4 == 1 && !Kind::kHasEights) {  // two taps are as good as one of eight bytes
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
          some[p] = vreinterpretq_s8_u8(
              vcombine_u8(vld1_u8(at + rows.offsets[2 * p]), vld1_u8(at + rows.offsets[2 * p + 1])));
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
        weights += Kind::kFourBytes;
      }
    }
  }
};

// What the sums of all rows begin with, in the order of PairSums. In memory, because the sums and what they
// are made of take all registers.
template <uint32_t kVectors>
struct PairStart {
  int32_t of[kVectors * kLanes];

  template <typename Kind>
  PairStart(const Gemm& g, Kind) {
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kVectors / 2; ++i) {
      const VecI32 four = load_ints(g.bias + 4 * i);
      store_ints(of + 8 * i, low_halves(four, four));
      store_ints(of + 8 * i + 4, high_halves(four, four));
    }
    if (g.sign_bias != 0 && !g.is_centred) add_weights<Kind>(g.weights, g.num_taps, tap_k4(g));
  }

  template <uint32_t kPairs, typename Kind>
  __attribute__((always_inline)) void begin(const Gemm& g, uint32_t row, uint32_t count,
                                            PairSums<kPairs, kVectors, Kind>& sums) const {
    const int32_t* from = of;
    __asm__("" : "+r"(from) : "m"(of));
#pragma GCC unroll 4
    for (uint32_t p = 0; p < kPairs; ++p) {
      // For each pair anew: copies would take more instructions.
      __asm__("" : "+r"(from));
#pragma GCC unroll 4
      for (uint32_t q = 0; q < kVectors; q += 2)
        load_two(from + q * kLanes, sums.of[p][q], sums.of[p][q + 1]);
    }
    if (g.row_term == nullptr) return;
    const int32_t* terms = g.row_term + row;
#pragma GCC unroll 4
    for (uint32_t p = 0; p < kPairs; ++p) {
      VecI32 term;
      if (count == 2 * kPairs) {  // of two rows, each twice
        const VecI32 two = vcombine_s32(vld1_s32(terms + 2 * p), vdup_n_s32(0));
        term = vzip1q_s32(two, two);
      } else {
        const uint32_t a = 2 * p < count ? 2 * p : count - 1, b = 2 * p + 1 < count ? 2 * p + 1 : count - 1;
        term = vcombine_s32(vdup_n_s32(terms[a]), vdup_n_s32(terms[b]));
      }
#pragma GCC unroll 8
      for (uint32_t q = 0; q < kVectors; ++q) sums.of[p][q] = add(sums.of[p][q], term);
    }
  }

 private:
  // 128 times the sums of weights. Not of a Gemm, which would be loaded again after each output if its
  // address were known here.
  template <typename Kind>
  __attribute__((noinline)) void add_weights(const int8_t* weights, uint32_t num_taps, uint32_t num_k4) {
    VecI32 sums[kVectors];
#pragma GCC unroll 8
    for (VecI32& v : sums) v = set_ints(0);
    const int8x16_t ones = vdupq_n_s8(1);
    for (uint32_t t = 0; t < num_taps; ++t) {
      for (uint32_t k = num_k4; k != 0; k -= k == 1 ? 1 : 2) {
#pragma GCC unroll 2
        for (uint32_t i = 0; i < kVectors / 4; ++i) {
          int8x16_t w[4];
          k == 1 ? Kind::template load<4>(weights, i, w) : Kind::template load<8>(weights, i, w);
#pragma GCC unroll 4
          for (uint32_t q = 0; q < 4; ++q) sums[4 * i + q] = vmmlaq_s32(sums[4 * i + q], ones, w[q]);
        }
        weights += k == 1 ? Kind::kFourBytes : 128;
      }
    }
#pragma GCC unroll 8
    for (uint32_t q = 0; q < kVectors; ++q) {
      store_ints(of + q * kLanes, add(load_ints(of + q * kLanes), shift_left<7>(sums[q])));
    }
  }
};

// The sums of row 2p and of row 2p + 1, with channels in their order.
template <uint32_t kVectors>
__attribute__((always_inline)) inline void part_rows(const VecI32 (&pair)[kVectors],
                                                     VecI32 (&even)[kVectors / 2],
                                                     VecI32 (&odd)[kVectors / 2]) {
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kVectors / 2; ++i) {
    even[i] = low_halves(pair[2 * i], pair[2 * i + 1]);
    odd[i] = high_halves(pair[2 * i], pair[2 * i + 1]);
  }
}

// Writes the sums of kPairs pairs of rows by 2 * kVectors channels. Of fewer than 2 * kPairs rows, which are
// one or two, there is one pair.
template <typename Writer, uint32_t kVectors, typename Epilogue = typename Writer::EpilogueType,
          bool kTakesPairs = kHasOffset<Epilogue>>
struct PairWriter {
  Writer writer;
  explicit PairWriter(const Gemm& g) : writer(g) {}

  template <uint32_t kPairs>
  __attribute__((always_inline)) void write(const Gemm& g, uint32_t row, uint32_t count,
                                            const VecI32 (&sums)[kPairs][kVectors]) const {
    VecI32 of_rows[2 * kPairs][kVectors / 2];
#pragma GCC unroll 4
    for (uint32_t p = 0; p < kPairs; ++p) part_rows(sums[p], of_rows[2 * p], of_rows[2 * p + 1]);
    if (count == 2 * kPairs) return writer.write(outputs_at(g, row, 0), g, 0, of_rows);
    VecI32 of_row[1][kVectors / 2];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kVectors / 2; ++i) of_row[0][i] = of_rows[0][i];
    writer.write(outputs_at(g, row, 0), g, 0, of_row);
  }
};

// With scales and offsets in the order of sums. Their bytes are parted, not the sums.
template <typename Writer, uint32_t kVectors, typename Epilogue>
struct PairWriter<Writer, kVectors, Epilogue, true> {
  EpilogueBytes<Epilogue> bytes;
  float scales[kVectors * kLanes], offsets[kVectors * kLanes];

  explicit PairWriter(const Gemm& g) : bytes(g) {
    repeat_pairs(g.float_scale, scales);
    repeat_pairs(g.float_offset, offsets);
  }

  template <uint32_t kPairs>
  __attribute__((always_inline)) void write(const Gemm& g, uint32_t row, uint32_t count,
                                            const VecI32 (&sums)[kPairs][kVectors]) const {
    // Bytes of two rows by 8 channels: two of the first row, two of the second, and so on.
    constexpr uint32_t kParts = kVectors / 4;
    VecI32 packed[kPairs][kParts];
    const float *scale = scales, *offset = offsets;
    __asm__("" : "+r"(scale) : "m"(scales));
    VecF32 scale_of[kVectors];
#pragma GCC unroll 4
    for (uint32_t q = 0; q < kVectors; q += 2) load_two(scale + q * kLanes, scale_of[q], scale_of[q + 1]);
#pragma GCC unroll 4
    for (uint32_t p = 0; p < kPairs; ++p) {
      __asm__("" : "+r"(offset) : "m"(offsets));  // see kHasOffset
      VecI32 outputs[kVectors];
#pragma GCC unroll 4
      for (uint32_t q = 0; q < kVectors; q += 2) {
        VecF32 offset_of[2];
        load_two(offset + q * kLanes, offset_of[0], offset_of[1]);
        outputs[q] = Epilogue(scale_of[q], offset_of[0]).outputs(sums[p][q]);
        outputs[q + 1] = Epilogue(scale_of[q + 1], offset_of[1]).outputs(sums[p][q + 1]);
      }
#pragma GCC unroll 2
      for (uint32_t i = 0; i < kParts; ++i) {
        packed[p][i] = bytes.pack(outputs[4 * i], outputs[4 * i + 1], outputs[4 * i + 2], outputs[4 * i + 3]);
      }
    }
    uint8_t* out = g.first_out + row * g.out_stride;
    if constexpr (kParts == 2) {
      VecI32 rows[2 * kPairs];
#pragma GCC unroll 4
      for (uint32_t p = 0; p < kPairs; ++p) {
        rows[2 * p] = even_words(packed[p][0], packed[p][1]);
        rows[2 * p + 1] = odd_words(packed[p][0], packed[p][1]);
      }
      bytes.finish(rows);
      if (count == 2 * kPairs) return store_rows(out, g.out_stride, rows, g.num_channels);
      const VecI32 first[1] = {rows[0]};
      store_rows(out, g.out_stride, first, g.num_channels);
    } else {
      VecI32 even[(kPairs + 1) / 2], odd[(kPairs + 1) / 2];  // two rows in each
#pragma GCC unroll 2
      for (uint32_t p = 0; p < kPairs; p += 2) {
        const uint32_t next = p + 1 < kPairs ? p + 1 : p;
        even[p / 2] = even_words(packed[p][0], packed[next][0]);
        odd[p / 2] = odd_words(packed[p][0], packed[next][0]);
      }
      bytes.finish(even);
      bytes.finish(odd);
      store_half_rows<kPairs>(out, 2 * g.out_stride, even, g.num_channels);
      if (count == 1) return;
      store_half_rows<kPairs>(out + g.out_stride, 2 * g.out_stride, odd, g.num_channels);
    }
  }

 private:
  static VecI32 even_words(VecI32 a, VecI32 b) { return as_ints(vuzp1q_s16(as_words(a), as_words(b))); }
  static VecI32 odd_words(VecI32 a, VecI32 b) { return as_ints(vuzp2q_s16(as_words(a), as_words(b))); }
  static void repeat_pairs(const float* from, float (&to)[kVectors * kLanes]) {
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kVectors / 2; ++i) {
      const VecI32 four = load_ints(from + 4 * i);
      store_ints(to + 8 * i, low_halves(four, four));
      store_ints(to + 8 * i + 4, high_halves(four, four));
    }
  }
};

// `count` rows by the first 2 * kVectors channels. Fewer than 2 * kPairs rows are one or two.
template <uint32_t kPairs, typename Kind, uint32_t kVectors, typename Writer>
__attribute__((always_inline)) inline void pair_tile(const Gemm& g, const PairRows<kPairs>& rows,
                                                     uint32_t row, uint32_t count,
                                                     const PairStart<kVectors>& start,
                                                     const PairWriter<Writer, kVectors>& writer) {
  PairSums<kPairs, kVectors, Kind> sums;
  start.begin(g, row, count, sums);
  sums.add_rows(g, rows, g.weights);
  writer.write(g, row, count, sums.of);
}

// move_to_channels with weights of that kind.
template <typename Kind>
inline void move_pairs_to_channels(Gemm& g, uint32_t channel) {
  const int8_t* weights = g.weights + channel / 16 * Kind::block_bytes(g);
  move_to_channels(g, channel);
  g.weights = weights;
}

// All rows by 2 * kVectors channels. Not inlined: a function for each writer, whose loops need all registers.
template <uint32_t kVectors, typename Kind, typename Writer>
__attribute__((noinline)) void gemm_pairs(const Gemm& product, uint32_t channel) {
  Gemm g = product;
  move_pairs_to_channels<Kind>(g, channel);
  constexpr uint32_t kPairs = 16 / kVectors;
  const PairStart<kVectors> start(g, Kind());
  const PairWriter<Writer, kVectors> writer(g);
  uint32_t row = 0;
  if (g.num_rows >= 2 * kPairs) {
    PairRows<kPairs> rows(g, 0, 2 * kPairs);
    for (; row + 2 * kPairs <= g.num_rows; row += 2 * kPairs) {
      rows.move_to(g, row, 2 * kPairs);
      pair_tile<kPairs, Kind>(g, rows, row, 2 * kPairs, start, writer);
    }
  }
  for (uint32_t left = g.num_rows - row; left != 0; left = g.num_rows - row) {
    const uint32_t count = left < 2 ? left : 2;
    pair_tile<1, Kind>(g, PairRows<1>(g, row, count), row, count, start, writer);
    row += count;
  }
}

// Group kGroup of 16 bytes of a row by 16 channels; the weights of the first group are at `weights`.
template <bool kSigned, int kGroup>
__attribute__((always_inline)) inline void add_row_group(VecI32 (&sums)[4], const int8_t* weights,
                                                         uint8x16_t bytes) {
  int8x16_t w[4];
#pragma GCC unroll 2
  for (uint32_t q = 0; q < 4; q += 2) load_two(weights + 64 * kGroup + 16 * q, w[q], w[q + 1]);
#pragma GCC unroll 4
  for (uint32_t q = 0; q < 4; ++q) {
    sums[q] = kSigned ? vdotq_laneq_s32(sums[q], w[q], vreinterpretq_s8_u8(bytes), kGroup)
                      : vsudotq_laneq_s32(sums[q], w[q], bytes, kGroup);
  }
}

// One row by 16 channels in groups of four bytes, which has no second one to share an instruction with: SDOT
// or SUDOT multiplies it. Moves the weights on.
template <bool kSigned>
__attribute__((always_inline)) inline void add_row(const Gemm& g, const uint8_t* row, uint8x16_t sign_bias,
                                                   const int8_t*& weights, VecI32 (&sums)[4]) {
  const uint32_t num_k4 = tap_k4(g);
  const size_t* tap = g.tap_offsets;
  const auto factors = [&](uint8x16_t bytes) { return kSigned ? bytes : veorq_u8(bytes, sign_bias); };
  for (const size_t* end = tap + g.num_taps; tap != end; ++tap) {
    const uint8_t* at = row + *tap;
#pragma GCC unroll 2
    for (const int8_t* whole = weights + size_t{num_k4 / 4} * 256; weights != whole;
         weights += 256, at += 16) {
      const uint8x16_t bytes = factors(vld1q_u8(at));
      add_row_group<kSigned, 0>(sums, weights, bytes);
      add_row_group<kSigned, 1>(sums, weights, bytes);
      add_row_group<kSigned, 2>(sums, weights, bytes);
      add_row_group<kSigned, 3>(sums, weights, bytes);
    }
    for (uint32_t k = num_k4 % 4; k != 0; --k, weights += 64, at += 4) {
      add_row_group<kSigned, 0>(sums, weights, factors(vreinterpretq_u8_u32(vdupq_n_u32(load_four(at)))));
    }
  }
}

// The same in groups of eight: the row stands for both.
template <bool kSigned>
__attribute__((always_inline)) inline void add_row_of_eights(const Gemm& g, const uint8_t* row,
                                                             uint8x16_t sign_bias, const int8_t*& weights,
                                                             VecI32 (&sums)[4]) {
  using Kind = PairKind<kSigned, true>;
  PairSums<1, 8, Kind> pairs;
#pragma GCC unroll 8
  for (VecI32& v : pairs.of[0]) v = set_ints(0);
  const uint32_t num_k4 = tap_k4(g);
  const size_t* tap = g.tap_offsets;
  const auto factors = [&](uint8x16_t bytes) { return kSigned ? bytes : veorq_u8(bytes, sign_bias); };
  const auto add_eight = [&](const int8_t* from, uint64x2_t eight) __attribute__((always_inline)) {
    const int8x16_t twice[1] = {vreinterpretq_s8_u64(eight)};
    pairs.template add_pairs<8>(from, twice);
  };
  for (const size_t* end = tap + g.num_taps; tap != end; ++tap) {
    const uint8_t* at = row + *tap;
    for (const int8_t* whole = weights + size_t{num_k4 / 4} * 256; weights != whole;
         weights += 256, at += 16) {
      const uint64x2_t bytes = vreinterpretq_u64_u8(factors(vld1q_u8(at)));
      add_eight(weights, vdupq_laneq_u64(bytes, 0));
      add_eight(weights + 128, vdupq_laneq_u64(bytes, 1));
    }
    if ((num_k4 & 2) != 0) {
      const uint8x8_t eight = vld1_u8(at);
      add_eight(weights, vreinterpretq_u64_u8(factors(vcombine_u8(eight, eight))));
      weights += 128;
      at += 8;
    }
    if ((num_k4 & 1) != 0) {
      const uint64_t sign = vgetq_lane_u64(vreinterpretq_u64_u8(factors(vdupq_n_u8(0))), 0) & 0xffffffffu;
      add_eight(weights, vdupq_n_u64(load_four(at) ^ sign));
      weights += 128;
    }
  }
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; ++i)
    sums[i] = add(sums[i], low_halves(pairs.of[0][2 * i], pairs.of[0][2 * i + 1]));
}

// One row by channels [first_channel, end_channel), 16 at a time. kSigned: the row is int8 whose origin is 0.
template <bool kSigned, bool kEights, typename Writer>
__attribute__((noinline)) void gemm_row(const Gemm& product, uint32_t first_channel, uint32_t end_channel) {
  Gemm g = product;
  move_pairs_to_channels<PairKind<kSigned, kEights>>(g, first_channel);
  const Writer writer(g);
  const uint8_t* row = g.rows == nullptr ? g.first_row : g.rows[0];
  const uint8x16_t sign_bias = vdupq_n_u8(g.sign_bias);
  const VecI32 term = set_ints(g.row_term != nullptr ? g.row_term[0] : 0);
  const int8_t* weights = g.weights;
  for (uint32_t channel = 0; channel < end_channel - first_channel; channel += 16) {
    VecI32 sums[1][4];
#pragma GCC unroll 4
    for (uint32_t q = 0; q < 4; ++q) sums[0][q] = add(load_ints(g.bias + channel + q * kLanes), term);
    if constexpr (kEights) {
      add_row_of_eights<kSigned>(g, row, sign_bias, weights, sums[0]);
    } else {
      add_row<kSigned>(g, row, sign_bias, weights, sums[0]);
    }
    writer.write(outputs_at(g, 0, channel), g, channel, sums);
  }
}

// Channels from `channel` on, at most to end_channel, which have one epilogue; returns where they end.
template <bool kEights, typename Writer>
inline uint32_t gemm_group(const Gemm& g, uint32_t channel, uint32_t end_channel) {
  if (g.num_rows == 1) {
    const uint32_t end = end_of_epilogue(g, channel, end_channel);
    g.is_centred ? gemm_row<true, kEights, Writer>(g, channel, end)
                 : gemm_row<false, kEights, Writer>(g, channel, end);
    return end;
  }
  const auto run = [&](auto kind) {
    using Kind = decltype(kind);
    g.num_channels - channel > 8 ? gemm_pairs<8, Kind, Writer>(g, channel)
                                 : gemm_pairs<4, Kind, Writer>(g, channel);
  };
  g.sign_bias != 0 ? run(PairKind<true, kEights>()) : run(PairKind<false, kEights>());
  return channel + 16;
}

template <typename Writer>
inline uint32_t gemm_group_of(const Gemm& g, uint32_t channel, uint32_t end_channel) {
  return g.has_eights ? gemm_group<true, Writer>(g, channel, end_channel)
                      : gemm_group<false, Writer>(g, channel, end_channel);
}

// Channels of blocks [first_block, end_block). A function of its own, never inlined: EpilogueRounding may
// change the floating point environment around it.
__attribute__((noinline)) void gemm_blocks(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  for (uint32_t channel = first_block * 16; channel < end_block * 16;) {
    with_epilogue_of_bytes(g, channel, [&](auto kind) {
      channel = gemm_group_of<OutputWriter<typename decltype(kind)::Epilogue>>(g, channel, end_block * 16);
    });
  }
}

__attribute__((noinline)) void sums_blocks(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  for (uint32_t channel = first_block * 16; channel < end_block * 16;) {
    channel = gemm_group_of<SumWriter>(g, channel, end_block * 16);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_TILES_I8MM_H_
