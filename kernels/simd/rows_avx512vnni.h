// Rows of bytes before a product (kernels/simd/gemm.h) with AVX-512: copies, padding and lists of them, their
// pixels interleaved, and the sums of their bytes. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_ROWS_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_ROWS_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
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

// RowInterleave of kernels/simd/gemm.h by shuffles: 16 bytes of each row make up to 64 of columns.
class RowInterleave {
 public:
  RowInterleave(uint32_t num_rows, uint32_t pixel_bytes) : num_rows_(num_rows) {
    if (num_rows == 0) return;
    const uint32_t of_rows = 16 / pixel_bytes, of_vector = 64 / (pixel_bytes * num_rows);
    columns_ = of_rows < of_vector ? of_rows : of_vector;
    step_ = columns_ * pixel_bytes;
    for (uint32_t y = 0; y < num_rows; ++y) _mm512_store_si512(order_[y], _mm512_set1_epi8(INT8_MIN));
    uint32_t at = 0;
    for (uint32_t x = 0; x < columns_; ++x) {
      for (uint32_t y = 0; y < num_rows; ++y) {
        for (uint32_t i = 0; i < pixel_bytes; ++i) {
          order_[y][at++] = static_cast<uint8_t>(x * pixel_bytes + i);
        }
      }
    }
  }

  void interleave(const uint8_t* first_row, size_t pitch, size_t columns, uint8_t* to) const {
    num_rows_ == 3 ? interleave_rows<3>(first_row, pitch, columns, to)
                   : interleave_rows<0>(first_row, pitch, columns, to);
  }

 private:
  // One vector of whole columns at a time.
  template <uint32_t kRows>
  void interleave_rows(const uint8_t* from, size_t pitch, size_t columns, uint8_t* to) const {
    const uint32_t num_rows = kRows != 0 ? kRows : num_rows_;
    for (size_t x = 0; x < columns; x += columns_, from += step_, to += size_t{step_} * num_rows) {
      __m512i bytes = _mm512_setzero_si512();
#pragma GCC unroll 3
      for (uint32_t y = 0; y < num_rows; ++y) {
        const __m128i row = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + y * pitch));
        const __m512i order = _mm512_load_si512(order_[y]);
        bytes = _mm512_or_si512(bytes, _mm512_shuffle_epi8(_mm512_broadcast_i32x4(row), order));
      }
      _mm512_storeu_si512(to, bytes);
    }
  }

  // Where the bytes of row y go; all others become zero.
  alignas(64) uint8_t order_[16][64];
  uint32_t num_rows_;
  uint32_t columns_ = 0;  // of a vector
  uint32_t step_ = 0;     // bytes of them, of a row
};

// ---- sums of the bytes of a product's rows, which weights with a zero point need

// In assembly: GCC 12 moves the accumulators to and fro around the intrinsic.
inline void dot_u8s8_512([[maybe_unused]] __m512i& sum, [[maybe_unused]] __m512i u8,
                         [[maybe_unused]] __m512i s8) {
// clang checks the sizes of operands in functions that nobody calls too.
#if !defined(QPLAN_ONLY_QUERIES)
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(u8), "v"(s8));
#endif
}

// Adds the sums of the bytes of four taps, xored with sign_bias, to four vectors, each lane of which has some
// of them.
__attribute__((always_inline)) inline void add_tap_sums512(const uint8_t* const (&taps)[4], size_t bytes,
                                                           __m512i sign_bias, __m512i (&sums)[4]) {
  const __m512i ones = _mm512_set1_epi8(1);
  size_t k = 0;
  for (; k + 64 <= bytes; k += 64) {
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) {
      dot_u8s8_512(sums[i], _mm512_xor_si512(_mm512_loadu_si512(taps[i] + k), sign_bias), ones);
    }
  }
  if (k == bytes) return;
  const __mmask64 mask = mask64(static_cast<uint32_t>(bytes - k));
  const __m512i some_sign_bias = _mm512_maskz_mov_epi8(mask, sign_bias);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; ++i) {
    dot_u8s8_512(sums[i], _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, taps[i] + k), some_sign_bias), ones);
  }
}

// Sums of neighbours: lane i of the result is the sum of lanes 2i and 2i + 1 of the concatenation of `low`
// and `high`.
inline __m512i add_neighbours512(__m512i low, __m512i high) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  return _mm512_add_epi32(_mm512_permutex2var_epi32(low, even, high),
                          _mm512_permutex2var_epi32(low, odd, high));
}

// Contiguous rows of kDwords * 4 bytes: the sums of the 16 rows that begin at `bytes`.
template <uint32_t kDwords>
inline __m512i dense_sums512(const uint8_t* bytes, __m512i sign_bias) {
  __m512i sums[kDwords];
#pragma GCC unroll 8
  for (uint32_t i = 0; i < kDwords; ++i) {
    sums[i] = _mm512_setzero_si512();
    dot_u8s8_512(sums[i], _mm512_xor_si512(_mm512_loadu_si512(bytes + i * 64), sign_bias),
                 _mm512_set1_epi8(1));
  }
#pragma GCC unroll 3
  for (uint32_t count = kDwords / 2; count > 0; count /= 2) {
#pragma GCC unroll 4
    for (uint32_t i = 0; i < count; ++i) sums[i] = add_neighbours512(sums[2 * i], sums[2 * i + 1]);
  }
  return sums[0];
}

// The first rows, by sixteen: how many.
template <uint32_t kDwords>
inline uint32_t dense_row_sums(const Gemm& g, int32_t factor, int32_t* sums) {
  const __m512i sign_bias = _mm512_set1_epi8(static_cast<char>(g.sign_bias));
  uint32_t p = 0;
  for (; p + 16 <= g.num_rows; p += 16) {
    const __m512i sixteen = dense_sums512<kDwords>(row_tap(g, p, 0), sign_bias);
    _mm512_storeu_si512(sums + p, _mm512_mullo_epi32(sixteen, _mm512_set1_epi32(factor)));
  }
  return p;
}

// Rows of one tap of at most 32 bytes, two in a vector: the sums of the 16 rows from p on.
inline __m512i sixteen_short_row_sums(const Gemm& g, uint32_t p) {
  const __mmask32 mask = static_cast<__mmask32>(mask64(g.tap_bytes));
  const __m512i sign_bias = _mm512_set1_epi8(static_cast<char>(g.sign_bias));
  const __m512i factors = _mm512_broadcast_i64x4(_mm256_maskz_set1_epi8(mask, 1));
  const uint8_t* row = row_tap(g, p, 0);
  __m512i sums[8];
#pragma GCC unroll 8
  for (uint32_t i = 0; i < 8; ++i, row += 2 * g.row_stride) {
    const __m256i low = _mm256_maskz_loadu_epi8(mask, row);
    const __m256i high = _mm256_maskz_loadu_epi8(mask, row + g.row_stride);
    const __m512i two = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    sums[i] = _mm512_setzero_si512();
    dot_u8s8_512(sums[i], _mm512_xor_si512(two, sign_bias), factors);
  }
#pragma GCC unroll 3
  for (uint32_t count = 4; count > 0; count /= 2) {
#pragma GCC unroll 4
    for (uint32_t i = 0; i < count; ++i) sums[i] = add_neighbours512(sums[2 * i], sums[2 * i + 1]);
  }
  return sums[0];
}

// The sums of the lanes of eight vectors, in order.
inline __m256i lane_sums512(const __m512i (&s)[8]) {
  __m512i pairs[4], fours[2];
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; ++i) {
    pairs[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(s[2 * i], s[2 * i + 1]),
                                _mm512_unpackhi_epi32(s[2 * i], s[2 * i + 1]));
  }
#pragma GCC unroll 2
  for (uint32_t i = 0; i < 2; ++i) {
    fours[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(pairs[2 * i], pairs[2 * i + 1]),
                                _mm512_unpackhi_epi64(pairs[2 * i], pairs[2 * i + 1]));
  }
  // 128 bits each: two parts of the first four sums, two of the others.
  const __m512i eight = _mm512_add_epi32(_mm512_shuffle_i32x4(fours[0], fours[1], 0x88),
                                         _mm512_shuffle_i32x4(fours[0], fours[1], 0xdd));
  const __m512i order = _mm512_setr_epi64(0, 1, 4, 5, 2, 3, 6, 7);
  const __m512i halves = _mm512_permutexvar_epi64(order, eight);
  return _mm256_add_epi32(_mm512_castsi512_si256(halves), _mm512_extracti64x4_epi64(halves, 1));
}

// The first rows, by eight: how many. One tap at one distance from row to row.
template <bool kSigned>
inline uint32_t even_row_sums(const Gemm& g, int32_t factor, int32_t* sums) {
  const size_t bytes = g.tap_bytes, stride = g.row_stride;
  const __mmask64 mask = mask64(bytes % 64);
  const __m512i ones = _mm512_set1_epi8(1);
  // The sums of int8 are 128 a byte less than those of uint8.
  const __m256i factors = _mm256_set1_epi32(factor),
                begin = _mm256_set1_epi32(kSigned ? 128 * g.tap_bytes : 0);
  const auto add_bytes = [&](__m512i & sum, __m512i v) __attribute__((always_inline)) {
    kSigned ? dot_u8s8_512(sum, ones, v) : dot_u8s8_512(sum, v, ones);
  };
  uint32_t p = 0;
  for (; p + 8 <= g.num_rows; p += 8) {
    const uint8_t* row = row_tap(g, p, 0);
    __m512i s[8];
#pragma GCC unroll 8
    for (uint32_t i = 0; i < 8; ++i) s[i] = _mm512_setzero_si512();
    size_t k = 0;
    for (; k + 64 <= bytes; k += 64) {
      const uint8_t* from = row + k;
#pragma GCC unroll 8
      for (uint32_t i = 0; i < 8; ++i, from += stride) add_bytes(s[i], _mm512_loadu_si512(from));
    }
    if (k < bytes) {
      const uint8_t* from = row + k;
#pragma GCC unroll 8
      for (uint32_t i = 0; i < 8; ++i, from += stride) add_bytes(s[i], _mm512_maskz_loadu_epi8(mask, from));
    }
    const __m256i eight = _mm256_mullo_epi32(_mm256_add_epi32(lane_sums512(s), begin), factors);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + p), eight);
  }
  return p;
}

// Rows p .. p + 3, or the last one where there are fewer.
inline __m128i four_row_sums(const Gemm& g, uint32_t p) {
  const __m512i sign_bias = _mm512_set1_epi8(static_cast<char>(g.sign_bias));
  const uint32_t last = g.num_rows - 1;
  __m512i s[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                  _mm512_setzero_si512()};
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    const uint8_t* taps[4];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) taps[i] = row_tap(g, p + i < last ? p + i : last, t);
    add_tap_sums512(taps, g.tap_bytes, sign_bias, s);
  }
  const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(s[0], s[1]), _mm512_unpackhi_epi32(s[0], s[1]));
  const __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(s[2], s[3]), _mm512_unpackhi_epi32(s[2], s[3]));
  const __m512i four = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(four), _mm512_extracti64x4_epi64(four, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

// The same where taps have at most 16 bytes: a row has 128 bits of one vector.
inline __m128i four_short_row_sums(const Gemm& g, uint32_t p) {
  const __m512i ones = _mm512_set1_epi8(1);
  const __mmask16 mask = mask16(g.tap_bytes);
  const __m512i sign_bias = _mm512_broadcast_i32x4(_mm_maskz_set1_epi8(mask, static_cast<char>(g.sign_bias)));
  const uint32_t last = g.num_rows - 1;
  __m512i sum = _mm512_setzero_si512();
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    __m128i taps[4];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) {
      taps[i] = _mm_maskz_loadu_epi8(mask, row_tap(g, p + i < last ? p + i : last, t));
    }
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(taps[0]), taps[1], 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(taps[2]), taps[3], 1);
    const __m512i four = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    dot_u8s8_512(sum, _mm512_xor_si512(four, sign_bias), ones);
  }
  sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_CDAB));
  sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_BADC));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  return _mm512_castsi512_si128(_mm512_permutexvar_epi32(order, sum));
}

// sums[p] = factor * the sum of row p's bytes u(p, k), modulo 2^32, for num_rows rows rounded up to four.
inline void row_sums(const Gemm& g, int32_t factor, int32_t* sums) {
  uint32_t p = 0;
  if (g.rows == nullptr && g.num_taps == 1 && g.row_stride == g.tap_bytes) {
    if (g.tap_bytes == 8) p = dense_row_sums<2>(g, factor, sums);
    if (g.tap_bytes == 16) p = dense_row_sums<4>(g, factor, sums);
    if (g.tap_bytes == 32) p = dense_row_sums<8>(g, factor, sums);
  }
  if (g.rows == nullptr && g.num_taps == 1 && g.tap_bytes <= 32) {
    for (; p + 16 <= g.num_rows; p += 16) {
      const __m512i sixteen = sixteen_short_row_sums(g, p);
      _mm512_storeu_si512(sums + p, _mm512_mullo_epi32(sixteen, _mm512_set1_epi32(factor)));
    }
  }
  if (g.rows == nullptr && g.num_taps == 1 && g.tap_bytes > 32) {
    p = g.sign_bias == 0 ? even_row_sums<false>(g, factor, sums) : even_row_sums<true>(g, factor, sums);
  }
  const __m128i factors = _mm_set1_epi32(factor);
  for (; p < g.num_rows; p += 4) {
    const __m128i four = g.tap_bytes <= 16 ? four_short_row_sums(g, p) : four_row_sums(g, p);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(sums + p), _mm_mullo_epi32(four, factors));
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_ROWS_AVX512VNNI_H_
