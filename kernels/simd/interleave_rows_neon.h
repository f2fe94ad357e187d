// kernels/simd/interleave_rows.h by tables of bytes: 16 bytes of each of two to four rows make as many
// vectors of columns. The 225 columns of 3 rows of 3 bytes under a row of MobileNet V2's first layer take 45
// iterations of 13 instructions, and 225 of 40 by plain loads and stores (QEMU, GCC 12). Internal linkage
// only.
#ifndef QPLAN_KERNELS_SIMD_INTERLEAVE_ROWS_NEON_H_
#define QPLAN_KERNELS_SIMD_INTERLEAVE_ROWS_NEON_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

namespace qplan {
namespace {

class RowInterleave {
 public:
  RowInterleave(uint32_t num_rows, uint32_t pixel_bytes) : num_rows_(num_rows), pixel_bytes_(pixel_bytes) {
    if (num_rows < 2 || num_rows > kMostRows) return;
    columns_ = 16 / pixel_bytes;
    uint32_t at = 0;
    for (uint32_t x = 0; x < columns_; ++x) {
      for (uint32_t y = 0; y < num_rows; ++y) {
        for (uint32_t i = 0; i < pixel_bytes; ++i) {
          order_[at++] = static_cast<uint8_t>(16 * y + x * pixel_bytes + i);
        }
      }
    }
    while (at < sizeof(order_)) order_[at++] = UINT8_MAX;
  }

  void interleave(const uint8_t* first_row, size_t pitch, size_t columns, uint8_t* to) const {
    switch (num_rows_) {
      case 2:
        return interleave_rows<2>(first_row, pitch, columns, to);
      case 3:
        return interleave_rows<3>(first_row, pitch, columns, to);
      case 4:
        return interleave_rows<4>(first_row, pitch, columns, to);
      default:
        return interleave_pixels(first_row, pitch, columns, to);
    }
  }

 private:
  static constexpr uint32_t kMostRows = 4;

  // 16 bytes of each row, of which whole columns count.
  template <uint32_t kRows>
  void interleave_rows(const uint8_t* from, size_t pitch, size_t columns, uint8_t* to) const {
    const uint32_t step = columns_ * pixel_bytes_;
    uint8x16_t order[kRows];
#pragma GCC unroll 4
    for (uint32_t v = 0; v < kRows; ++v) order[v] = vld1q_u8(order_ + 16 * v);
    for (size_t x = 0; x < columns; x += columns_, from += step, to += step * kRows) {
      uint8x16x4_t rows = {};
#pragma GCC unroll 4
      for (uint32_t y = 0; y < kRows; ++y) rows.val[y] = vld1q_u8(from + y * pitch);
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kRows; ++v) vst1q_u8(to + 16 * v, look_up<kRows>(rows, order[v]));
    }
  }

  template <uint32_t kRows>
  static uint8x16_t look_up(const uint8x16x4_t& rows, uint8x16_t order) {
    if constexpr (kRows == 2) return vqtbl2q_u8({rows.val[0], rows.val[1]}, order);
    if constexpr (kRows == 3) return vqtbl3q_u8({rows.val[0], rows.val[1], rows.val[2]}, order);
    return vqtbl4q_u8(rows, order);
  }

  // For any number of rows. Each store writes 16 bytes; the next pixel overwrites those beyond its own.
  void interleave_pixels(const uint8_t* first_row, size_t pitch, size_t columns, uint8_t* to) const {
    for (size_t x = 0; x < columns; ++x) {
      const uint8_t* from = first_row + x * pixel_bytes_;
      for (uint32_t y = 0; y < num_rows_; ++y, from += pitch, to += pixel_bytes_) {
        vst1q_u8(to, vld1q_u8(from));
      }
    }
  }

  uint8_t order_[16 * kMostRows];  // of the bytes of all rows, those in the vectors of columns
  uint32_t num_rows_, pixel_bytes_;
  uint32_t columns_ = 0;  // of 16 bytes of a row
};

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_INTERLEAVE_ROWS_NEON_H_
