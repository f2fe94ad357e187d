// kernels/numeric/gemm.h by dot products of groups of four bytes, over the vocabulary of kernels/simd/simd.h.
// Internal linkage only. The vocabulary's part in it:
//
//   kDotVectors                         vectors that hold a row's sums of a tile of 2 * kLanes channels
//   kDotRows                            rows of a tile, as many as registers allow: even
//   kDotKeepsLanes                      their lanes are those channels' sums; else dot_sums makes them
//   DotRow, dot_row(from, sign_bias)    four bytes of a row ^ sign_bias, for all channels
//   DotWeights, dot_weights(from)       the weights of a vector of sums
//   dot_add(sums, row, weights)         adds the products
//   dot_sums(sums, half)                the sums of the first or the second kLanes channels
//   add_byte_sums, total_byte_sums      sums of bytes, in lanes that total_byte_sums adds up
//   store_halves(to, stride, bytes, count, rows)    kBytes / 2 outputs of one row, or of two
//
// An instruction set may have parts of its own, by macros that name their headers; it then needs nothing of
// the vocabulary that only the part in its place reads:
//
//   QPLAN_SIMD_TILES                    tiles: sums_blocks and gemm_blocks
//   QPLAN_SIMD_ROWS                     row_sums, copy_run, RowInterleave, and list_rows for conv2d
//   QPLAN_SIMD_GEMM                     the whole product
//
// QPLAN_SIMD_EIGHTS: its tiles multiply weights in groups of eight bytes, too.
//
// AVX-512 has a product of its own, with tiles for short, narrow and half products and 32 registers: 256 to
// 256 channels of 14 x 14 pixels take it 26.7 us, where this structure takes 52.6 with the same instruction
// on 256 bits (Zen 5).
#ifndef QPLAN_KERNELS_SIMD_GEMM_H_
#define QPLAN_KERNELS_SIMD_GEMM_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/gemm/gemm.h"
#include "kernels/numeric/gemm.h"
#include "kernels/simd/simd.h"

#if defined(QPLAN_SIMD_GEMM)
#include QPLAN_SIMD_GEMM
#else

namespace qplan {
namespace {

constexpr bool kProductAddsResidual = false;
constexpr bool kProductMakesSums = true;    // under ACC32
#if defined(QPLAN_SIMD_EIGHTS)
constexpr bool kProductTakesEights = true;  // weights in groups of eight bytes, too
#else
constexpr bool kProductTakesEights = false;
#endif
#if defined(QPLAN_SIMD_TILES)
constexpr bool kProductAddsRests = false;
#else
constexpr bool kProductAddsRests = true;
#endif

}  // namespace
}  // namespace qplan

#if defined(QPLAN_SIMD_TILES)
#include QPLAN_SIMD_TILES
#else

namespace qplan {
namespace {

constexpr uint32_t kTileChannels = 2 * kLanes;
// Weights of a vector of sums, in bytes of the layout.
constexpr size_t kDotBytes = kTileChannels * 4 / kDotVectors;

inline VecI32 row_term(const Gemm& g, uint32_t row) {
  return set_ints(g.row_term != nullptr ? g.row_term[row] : 0);
}

template <uint32_t kRows>
__attribute__((always_inline)) inline void start_dots(const Gemm& g, uint32_t first_row, uint32_t channel,
                                                      VecI32 (&sums)[kRows][kDotVectors]) {
#pragma GCC unroll 8
  for (uint32_t p = 0; p < kRows; ++p) {
    const VecI32 begin = kDotKeepsLanes ? row_term(g, first_row + p) : set_ints(0);
#pragma GCC unroll 4
    for (uint32_t q = 0; q < kDotVectors; ++q) {
      sums[p][q] = kDotKeepsLanes ? add(load_ints(g.bias + channel + q * kLanes), begin) : begin;
    }
  }
}

// The sums of kRows rows: the smaller of the two, rows or weights, is held while the other passes by. Inlined
// by force: the sums stay in registers.
template <uint32_t kRows>
__attribute__((always_inline)) inline void add_dots(const Gemm& g, uint32_t first_row, const int8_t* weights,
                                                    VecI32 (&sums)[kRows][kDotVectors]) {
  const size_t num_k4 = tap_k4(g);
  const DotSignBias sign_bias = dot_sign_bias(g.sign_bias);
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    const uint8_t* rows[kRows];
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) rows[p] = row_tap(g, first_row + p, t);
    for (size_t k = 0; k < num_k4; ++k, weights += 64) {
      if constexpr (kDotKeepsLanes) {
        DotWeights w[kDotVectors];
#pragma GCC unroll 4
        for (uint32_t q = 0; q < kDotVectors; ++q) w[q] = dot_weights(weights + q * kDotBytes);
#pragma GCC unroll 8
        for (uint32_t p = 0; p < kRows; ++p) {
          const DotRow u = dot_row(rows[p] + k * 4, sign_bias);
#pragma GCC unroll 4
          for (uint32_t q = 0; q < kDotVectors; ++q) dot_add(sums[p][q], u, w[q]);
        }
      } else {
        DotRow u[kRows];
#pragma GCC unroll 8
        for (uint32_t p = 0; p < kRows; ++p) u[p] = dot_row(rows[p] + k * 4, sign_bias);
#pragma GCC unroll 4
        for (uint32_t q = 0; q < kDotVectors; ++q) {
          const DotWeights w = dot_weights(weights + q * kDotBytes);
#pragma GCC unroll 8
          for (uint32_t p = 0; p < kRows; ++p) dot_add(sums[p][q], u[p], w);
        }
      }
    }
  }
}

// The products of rests of weights, where kTileChannels from `channel` on have any.
template <uint32_t kRows>
__attribute__((always_inline)) inline void add_rests(const Gemm& g, uint32_t first_row, uint32_t channel,
                                                     VecI32 (&sums)[kRows][kDotVectors]) {
  const DotSignBias sign_bias = dot_sign_bias(g.sign_bias);
  for (const GemmRest* rest = g.rests; rest != g.rests + g.num_rests; ++rest) {
    if (rest->block != channel / 16) continue;
    const int8_t* weights = rest->weights_from(0) + channel % 16 * 4;
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
      const DotRow u = dot_row(row_start(g, first_row + p) + rest->at, sign_bias);
#pragma GCC unroll 4
      for (uint32_t q = 0; q < kDotVectors; ++q) dot_add(sums[p][q], u, dot_weights(weights + q * kDotBytes));
    }
  }
}

inline VecI32 tile_sum(const Gemm& g, VecI32 sum, uint32_t row, uint32_t channel) {
  if constexpr (kDotKeepsLanes) return sum;
  return add(add(sum, load_ints(g.bias + channel)), row_term(g, row));
}

// The epilogue of a tile. Those of floats are two vectors, which are loaded when the products are done: held
// meanwhile, they would take registers from the sums (2.5 times the time with AVX-VNNI). Those of integers
// take long to prepare.
template <typename Epilogue>
__attribute__((always_inline)) inline decltype(auto) tile_epilogue(const Gemm& g, uint32_t channel,
                                                                   const Epilogue& held) {
  if constexpr (Epilogue::kIsFloat) {
    return Epilogue(g, channel);
  } else {
    return (held);
  }
}

// kRows rows by kTileChannels channels. Inlined by force: where two epilogues have the same instructions, GCC
// 12 makes one function of their tiles before it inlines, and each tile then loads the constants of both
// epilogues again (5 % of a 1x1 convolution of 64 channels with SSE4.1).
template <uint32_t kRows, typename Epilogue>
__attribute__((always_inline)) inline void gemm_tile(const Gemm& g, uint32_t first_row, uint32_t channel,
                                                     const int8_t* weights, const Epilogue& held_low,
                                                     const Epilogue& held_high, const OutputBytes& bytes) {
  VecI32 sums[kRows][kDotVectors];
  start_dots<kRows>(g, first_row, channel, sums);
  add_dots<kRows>(g, first_row, weights, sums);
  if (g.num_rests != 0) add_rests<kRows>(g, first_row, channel, sums);
  const Epilogue& low = tile_epilogue(g, channel, held_low);
  const Epilogue& high = tile_epilogue(g, channel + kLanes, held_high);
  VecI32 outputs[kRows][2];
#pragma GCC unroll 8
  for (uint32_t p = 0; p < kRows; ++p) {
    outputs[p][0] = low.outputs(tile_sum(g, dot_sums(sums[p], 0), first_row + p, channel));
    outputs[p][1] = high.outputs(tile_sum(g, dot_sums(sums[p], 1), first_row + p, channel + kLanes));
  }
  const uint32_t left = g.num_channels - channel, count = left < kTileChannels ? left : kTileChannels;
  uint8_t* out = g.first_out + first_row * g.out_stride + channel;
#pragma GCC unroll 8
  for (uint32_t p = 0; p < kRows; p += 2, out += 2 * g.out_stride) {
    const uint32_t next = p + 1 < kRows ? p + 1 : p;
    const VecI32 packed = bytes.pack(outputs[p][0], outputs[p][1], outputs[next][0], outputs[next][1]);
    store_halves(out, g.out_stride, packed, count, next == p ? 1 : 2);
  }
}

// All rows by kTileChannels channels. Not inlined: a function for each epilogue, whose loops need all
// registers.
template <typename Epilogue>
__attribute__((noinline)) void gemm_rows(const Gemm& g, uint32_t channel) {
  const Epilogue low(g, channel), high(g, channel + kLanes);
  const OutputBytes bytes(g);
  const int8_t* weights = g.weights + size_t{channel / 16} * g.num_taps * tap_k4(g) * 64 + channel % 16 * 4;
  uint32_t p = 0;
  for (; p + kDotRows <= g.num_rows; p += kDotRows) {
    gemm_tile<kDotRows>(g, p, channel, weights, low, high, bytes);
  }
  if constexpr (kDotRows > 2) {
    for (; p + 2 <= g.num_rows; p += 2) gemm_tile<2>(g, p, channel, weights, low, high, bytes);
  }
  for (; p < g.num_rows; ++p) gemm_tile<1>(g, p, channel, weights, low, high, bytes);
}

// Channels of blocks [first_block, end_block). A function of its own, never inlined: EpilogueRounding may
// change the floating point environment around it.
__attribute__((noinline)) void gemm_blocks(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  for (uint32_t channel = first_block * 16; channel < end_block * 16; channel += kTileChannels) {
    if (channel >= g.num_channels) break;
    with_epilogue(g, channel, [&](auto kind) { gemm_rows<typename decltype(kind)::Epilogue>(g, channel); });
  }
}

// ACC32: the sums are the outputs. Vectors of integers are stored as they are.
template <uint32_t kRows>
__attribute__((always_inline)) inline void sums_tile(const Gemm& g, uint32_t first_row, uint32_t channel,
                                                     const int8_t* weights) {
  VecI32 sums[kRows][kDotVectors];
  start_dots<kRows>(g, first_row, channel, sums);
  add_dots<kRows>(g, first_row, weights, sums);
  if (g.num_rests != 0) add_rests<kRows>(g, first_row, channel, sums);
  for (uint32_t p = 0; p < kRows; ++p) {
    auto* out = reinterpret_cast<float*>(g.first_out + (first_row + p) * g.out_stride) + channel;
    for (uint32_t half = 0; half < 2 && channel + half * kLanes < g.num_channels; ++half) {
      const uint32_t first = channel + half * kLanes, left = g.num_channels - first;
      const VecI32 sum = tile_sum(g, dot_sums(sums[p], half), first_row + p, first);
      store_reals(out + half * kLanes, as_reals(sum), left < kLanes ? left : kLanes);
    }
  }
}

__attribute__((noinline)) void sums_blocks(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  for (uint32_t channel = first_block * 16; channel < end_block * 16; channel += kTileChannels) {
    if (channel >= g.num_channels) break;
    const int8_t* weights = g.weights + size_t{channel / 16} * g.num_taps * tap_k4(g) * 64 + channel % 16 * 4;
    uint32_t p = 0;
    for (; p + 2 <= g.num_rows; p += 2) sums_tile<2>(g, p, channel, weights);
    for (; p < g.num_rows; ++p) sums_tile<1>(g, p, channel, weights);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_SIMD_TILES

namespace qplan {
namespace {

inline void gemm(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  if (g.contract == Contract::kAcc32) return sums_blocks(g, first_block, end_block);
  const EpilogueRounding rounding(g.float_epilogue != FloatEpilogue::kNone);
  gemm_blocks(g, first_block, end_block);
}

#if defined(QPLAN_SIMD_ROWS)
}  // namespace
}  // namespace qplan
#include QPLAN_SIMD_ROWS
namespace qplan {
namespace {
#else
// The sum of row p's bytes u(p, k).
inline uint32_t row_sum(const Gemm& g, uint32_t p) {
  const size_t tap_bytes = g.tap_bytes;
  const VecI32 sign_bias = set_bytes(g.sign_bias);
  VecI32 sum = set_ints(0);
  uint32_t tail = 0;
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    const uint8_t* tap = row_tap(g, p, t);
    size_t i = 0;
    for (; i + kBytes <= tap_bytes; i += kBytes)
      sum = add_byte_sums(sum, bit_xor(load_ints(tap + i), sign_bias));
    for (; i < tap_bytes; ++i) tail += static_cast<uint8_t>(tap[i] ^ g.sign_bias);
  }
  return tail + total_byte_sums(sum);
}

// sums[p] = factor * the sum of row p's bytes (u - origin), modulo 2^32. Here the origin is 0.
inline void row_sums(const Gemm& g, int32_t factor, int32_t* sums) {
  for (uint32_t p = 0; p < g.num_rows; ++p) {
    sums[p] = static_cast<int32_t>(static_cast<uint32_t>(factor) * row_sum(g, p));
  }
}

// to[i] = from[i] ^ sign_bias.
inline void copy_run(uint8_t* to, const uint8_t* from, size_t count, uint8_t sign_bias) {
  const VecI32 sign_biases = set_bytes(sign_bias);
  size_t i = 0;
  for (; i + 4 * kBytes <= count; i += 4 * kBytes) {
    VecI32 v[4];
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; ++k) v[k] = bit_xor(load_ints(from + i + k * kBytes), sign_biases);
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; ++k) store_ints(to + i + k * kBytes, v[k]);
  }
  for (; i + kBytes <= count; i += kBytes) store_ints(to + i, bit_xor(load_ints(from + i), sign_biases));
  for (; i < count; ++i) to[i] = from[i] ^ sign_bias;
}

// Interleaves rows of pixels, side by side, into contiguous columns, by plain loads and stores:
// to[(x * num_rows + y) * pixel_bytes + i] = byte x * pixel_bytes + i of row y. A column has at most 16
// bytes. Up to 64 bytes after a row are read, and as many are written after the columns.
class RowInterleave {
 public:
  RowInterleave(uint32_t num_rows, uint32_t pixel_bytes) : num_rows_(num_rows), pixel_bytes_(pixel_bytes) {}

  void interleave(const uint8_t* first_row, size_t pitch, size_t columns, uint8_t* to) const {
    pixel_bytes_ <= 4 ? interleave_by<4>(first_row, pitch, columns, to)
                      : interleave_by<16>(first_row, pitch, columns, to);
  }

 private:
  // Pixels of kBytes, or fewer: what is too much is written over by the next one.
  template <uint32_t kBytes>
  void interleave_by(const uint8_t* first_row, size_t pitch, size_t columns, uint8_t* to) const {
    for (size_t x = 0; x < columns; ++x) {
      const uint8_t* from = first_row + x * pixel_bytes_;
      for (uint32_t y = 0; y < num_rows_; ++y, from += pitch, to += pixel_bytes_) {
        __builtin_memcpy(to, from, kBytes);
      }
    }
  }

  uint32_t num_rows_, pixel_bytes_;
};
#endif

inline void fill(uint8_t* to, uint8_t value, size_t count) {
  const VecI32 values = set_bytes(value);
  size_t i = 0;
  for (; i + kBytes <= count; i += kBytes) store_ints(to + i, values);
  for (; i < count; ++i) to[i] = value;
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_SIMD_GEMM

namespace qplan {

// The product, compiled once for all families of the instruction set. kernels/gemm/gemm.h declares those of
// this build; a file that is opened alone may be for another.
QPLAN_DECLARE_GEMM(QPLAN_SIMD_VARIANT(gemm))

}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_GEMM_H_
