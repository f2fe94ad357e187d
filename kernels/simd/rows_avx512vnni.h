// Rows of bytes before a product (kernels/simd/gemm.h) with AVX-512: copies, padding and lists of them.
// Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_ROWS_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_ROWS_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/avx512vnni.h"

namespace qplan {
namespace {

// to[i] = from[i] ^ sign_bias, where the two do not overlap: the last 64 bytes may be among those before.
inline void copy_run(uint8_t* to, const uint8_t* from, size_t count, uint8_t sign_bias) {
  const __m512i sign_biases = _mm512_set1_epi8(static_cast<char>(sign_bias));
  if (count < 64) {
    const __mmask64 mask = mask64(static_cast<uint32_t>(count));
    _mm512_mask_storeu_epi8(to, mask, _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, from), sign_biases));
    return;
  }
  const auto copy_64 = [&](size_t at) __attribute__((always_inline)) {
    _mm512_storeu_si512(to + at, _mm512_xor_si512(_mm512_loadu_si512(from + at), sign_biases));
  };
  for (size_t i = 0; i + 64 <= count; i += 64) copy_64(i);
  if (count % 64 != 0) copy_64(count - 64);
}

inline void fill(uint8_t* to, uint8_t value, size_t count) {
  const __m512i values = _mm512_set1_epi8(static_cast<char>(value));
  for (size_t i = 0; i < count; i += 64) {
    const uint64_t left = count - i;
    _mm512_mask_storeu_epi8(to + i, left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1, values);
  }
}

// Writes where `count` rows begin, side by side; returns where the next is written.
inline const uint8_t** list_rows(const uint8_t** rows, const uint8_t* row, size_t row_stride,
                                 uint32_t count) {
  static_assert(sizeof(*rows) == sizeof(uint64_t), "eight fill a vector");
  const __m512i lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  __m512i eight =
      _mm512_add_epi64(_mm512_set1_epi64(static_cast<int64_t>(reinterpret_cast<uint64_t>(row))),
                       _mm512_mullo_epi64(_mm512_set1_epi64(static_cast<int64_t>(row_stride)), lanes));
  const __m512i step = _mm512_set1_epi64(static_cast<int64_t>(8 * row_stride));
  const uint8_t** end = rows + count / 8 * 8;
  for (; rows != end; rows += 8) {
    _mm512_storeu_si512(rows, eight);
    eight = _mm512_add_epi64(eight, step);
  }
  if (count % 8 == 0) return rows;
  _mm512_mask_storeu_epi64(rows, static_cast<__mmask8>((1u << count % 8) - 1), eight);
  return rows + count % 8;
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_ROWS_AVX512VNNI_H_
