// kernels/numeric/gemm.h with SSE4.1. Products are formed in 16 bits and summed in 32 (pmaddwd), where
// nothing can saturate. Internal linkage only.
#ifndef QPLAN_KERNELS_NUMERIC_GEMM_SSE41_INL_
#define QPLAN_KERNELS_NUMERIC_GEMM_SSE41_INL_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/numeric/requantize_sse41.inl"

namespace qplan {
namespace {

constexpr bool kProductAddsResidual = false;

// Four bytes, twice, as 16 bits each.
inline __m128i load_row128(const uint8_t* row, __m128i flip) {
  int32_t four;
  __builtin_memcpy(&four, row, 4);
  return _mm_cvtepu8_epi16(_mm_xor_si128(_mm_set1_epi32(four), flip));
}

// 16 registers hold the sums of 8 channels and two rows, not of 16 channels: blocks are cut in halves.
// sums[p][q] holds two partial sums for each of the channels 2q and 2q + 1 of the half.
template <uint32_t kRows, typename Epilogue>
inline void gemm_tile128(const Gemm& g, uint32_t first_row, uint32_t channel, const Epilogue (&epilogues)[2],
                         const Bytes128& bytes) {
  __m128i sums[kRows][4];
#pragma GCC unroll 4
  for (uint32_t p = 0; p < kRows; ++p) {
#pragma GCC unroll 4
    for (uint32_t q = 0; q < 4; ++q) sums[p][q] = _mm_setzero_si128();
  }
  const size_t num_k4 = tap_k4(g);
  const int8_t* weights = g.weights + size_t{channel / 16} * g.num_taps * num_k4 * 64 + channel % 16 * 4;
  const __m128i flip = _mm_set1_epi8(static_cast<char>(g.flip));
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    const uint8_t* rows[kRows];
#pragma GCC unroll 4
    for (uint32_t p = 0; p < kRows; ++p) rows[p] = row_tap(g, first_row + p, t);
    for (size_t k = 0; k < num_k4; ++k, weights += 64) {
      __m128i u[kRows];
#pragma GCC unroll 4
      for (uint32_t p = 0; p < kRows; ++p) u[p] = load_row128(rows[p] + k * 4, flip);
#pragma GCC unroll 4
      for (uint32_t q = 0; q < 4; ++q) {
        const __m128i w =
            _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(weights + 8 * q)));
#pragma GCC unroll 4
        for (uint32_t p = 0; p < kRows; ++p) {
          sums[p][q] = _mm_add_epi32(sums[p][q], _mm_madd_epi16(u[p], w));
        }
      }
    }
  }
  __m128i outputs[kRows][2];
#pragma GCC unroll 4
  for (uint32_t p = 0; p < kRows; ++p) {
    const __m128i term = _mm_set1_epi32(g.row_term != nullptr ? g.row_term[first_row + p] : 0);
#pragma GCC unroll 2
    for (uint32_t h = 0; h < 2; ++h) {
      const __m128i sum = _mm_hadd_epi32(sums[p][2 * h], sums[p][2 * h + 1]);
      const __m128i bias = load128(g.bias + channel + 4 * h);
      outputs[p][h] = epilogues[h].outputs(_mm_add_epi32(_mm_add_epi32(sum, bias), term));
    }
  }
  const __m128i packed =
      bytes.pack(outputs[0][0], outputs[0][1], outputs[kRows - 1][0], outputs[kRows - 1][1]);
  const uint32_t left = g.num_channels - channel, count = left < 8 ? left : 8;
  uint8_t* out = g.first_out + first_row * g.out_stride + channel;
  store_low_bytes(out, packed, count);
  if (kRows == 2) store_low_bytes(out + g.out_stride, _mm_srli_si128(packed, 8), count);
}

// All rows by channels channel .. channel + 7.
template <typename Epilogue>
inline void gemm_rows128(const Gemm& g, uint32_t channel) {
  const Epilogue epilogues[2] = {Epilogue(g, channel), Epilogue(g, channel + 4)};
  const Bytes128 bytes(g);
  uint32_t p = 0;
  for (; p + 2 <= g.num_rows; p += 2) gemm_tile128<2>(g, p, channel, epilogues, bytes);
  for (; p < g.num_rows; ++p) gemm_tile128<1>(g, p, channel, epilogues, bytes);
}

// Channels of blocks [first_block, end_block).
inline void gemm(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  for (uint32_t channel = first_block * 16; channel < end_block * 16; channel += 8) {
    if (channel >= g.num_channels) break;
    if (g.contract == Contract::kF32e) {
      gemm_rows128<F32eEpilogue128>(g, channel);
    } else {
      gemm_rows128<IntegerEpilogue128>(g, channel);
    }
  }
}

// The sum of row p's bytes u(p, k).
inline uint32_t row_sum128(const Gemm& g, uint32_t p) {
  const size_t tap_bytes = g.tap_bytes;
  const __m128i flip = _mm_set1_epi8(static_cast<char>(g.flip));
  __m128i sum = _mm_setzero_si128();
  uint32_t rest = 0;
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    const uint8_t* tap = row_tap(g, p, t);
    size_t i = 0;
    for (; i + 16 <= tap_bytes; i += 16) {
      const __m128i bytes = _mm_xor_si128(load128(tap + i), flip);
      sum = _mm_add_epi64(sum, _mm_sad_epu8(bytes, _mm_setzero_si128()));
    }
    for (; i < tap_bytes; ++i) rest += static_cast<uint8_t>(tap[i] ^ g.flip);
  }
  return rest + static_cast<uint32_t>(_mm_cvtsi128_si64(sum)) +
         static_cast<uint32_t>(_mm_extract_epi64(sum, 1));
}

// sums[p] = factor * the sum of row p's bytes, modulo 2^32.
inline void row_sums(const Gemm& g, int32_t factor, int32_t* sums) {
  for (uint32_t p = 0; p < g.num_rows; ++p) {
    sums[p] = static_cast<int32_t>(static_cast<uint32_t>(factor) * row_sum128(g, p));
  }
}

// to[i] = from[i] ^ flip.
inline void copy_run(uint8_t* to, const uint8_t* from, size_t count, uint8_t flip) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm_xor_si128(load128(from + i), flips));
  }
  for (; i < count; ++i) to[i] = from[i] ^ flip;
}

inline void fill(uint8_t* to, uint8_t value, size_t count) {
  const __m128i values = _mm_set1_epi8(static_cast<char>(value));
  size_t i = 0;
  for (; i + 16 <= count; i += 16) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), values);
  for (; i < count; ++i) to[i] = value;
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_GEMM_SSE41_INL_
