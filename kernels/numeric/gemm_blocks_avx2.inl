// What the products of kernels/numeric/gemm.h by 256-bit vectors share, whatever instruction multiplies: the
// epilogue of each block of channels, and runs of bytes. Internal linkage only.
#ifndef QPLAN_KERNELS_NUMERIC_GEMM_BLOCKS_AVX2_INL_
#define QPLAN_KERNELS_NUMERIC_GEMM_BLOCKS_AVX2_INL_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/numeric/requantize_avx2.inl"

namespace qplan {
namespace {

constexpr bool kProductAddsResidual = false;

// All rows by one block of 16 channels: defined by the file that includes this one.
template <typename Epilogue>
void gemm_rows256(const Gemm& g, uint32_t block);

// Channels of blocks [first_block, end_block). A function of its own, never inlined: MXCSR changes around it.
__attribute__((noinline)) void gemm_blocks256(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  for (uint32_t b = first_block; b < end_block; ++b) {
    if (g.contract == Contract::kF32e) {
      gemm_rows256<F32eEpilogue256>(g, b);
    } else if (g.float_form != FloatForm::kNone && groups_have_form(g, b, 1)) {
      if (g.float_form == FloatForm::kPlain) {
        gemm_rows256<PlainEpilogue256>(g, b);
      } else {
        gemm_rows256<SignedEpilogue256>(g, b);
      }
    } else if (g.contract == Contract::kTfl2) {
      gemm_rows256<Tfl2Epilogue256>(g, b);
    } else {
      gemm_rows256<Tfl1Epilogue256>(g, b);
    }
  }
}

inline void gemm(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  const RoundTowardsZero rounding(g.float_form != FloatForm::kNone);
  gemm_blocks256(g, first_block, end_block);
}

// The sum of row p's bytes u(p, k).
inline uint32_t row_sum256(const Gemm& g, uint32_t p) {
  const size_t tap_bytes = g.tap_bytes;
  const __m256i flip = _mm256_set1_epi8(static_cast<char>(g.flip));
  __m256i sum = _mm256_setzero_si256();
  uint32_t rest = 0;
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    const uint8_t* tap = row_tap(g, p, t);
    size_t i = 0;
    for (; i + 32 <= tap_bytes; i += 32) {
      const __m256i bytes = _mm256_xor_si256(load256(tap + i), flip);
      sum = _mm256_add_epi64(sum, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
    }
    for (; i < tap_bytes; ++i) rest += static_cast<uint8_t>(tap[i] ^ g.flip);
  }
  const __m128i halves = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  return rest + static_cast<uint32_t>(_mm_cvtsi128_si64(halves)) +
         static_cast<uint32_t>(_mm_extract_epi64(halves, 1));
}

// sums[p] = factor * the sum of row p's bytes, modulo 2^32.
inline void row_sums(const Gemm& g, int32_t factor, int32_t* sums) {
  for (uint32_t p = 0; p < g.num_rows; ++p) {
    sums[p] = static_cast<int32_t>(static_cast<uint32_t>(factor) * row_sum256(g, p));
  }
}

// to[i] = from[i] ^ flip.
inline void copy_run(uint8_t* to, const uint8_t* from, size_t count, uint8_t flip) {
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
  size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_xor_si256(load256(from + i), flips));
  }
  for (; i < count; ++i) to[i] = from[i] ^ flip;
}

inline void fill(uint8_t* to, uint8_t value, size_t count) {
  const __m256i values = _mm256_set1_epi8(static_cast<char>(value));
  size_t i = 0;
  for (; i + 32 <= count; i += 32) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), values);
  for (; i < count; ++i) to[i] = value;
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_GEMM_BLOCKS_AVX2_INL_
