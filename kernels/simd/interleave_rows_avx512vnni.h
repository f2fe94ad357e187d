// kernels/simd/interleave_rows.h by shuffles: 16 bytes of each row make up to 64 of columns. Internal linkage
// only.
#ifndef QPLAN_KERNELS_SIMD_INTERLEAVE_ROWS_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_INTERLEAVE_ROWS_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

namespace qplan {
namespace {

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

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_INTERLEAVE_ROWS_AVX512VNNI_H_
