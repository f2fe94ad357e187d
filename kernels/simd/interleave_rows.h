// Interleaves rows of pixels, side by side, into contiguous columns, by plain loads and stores. Internal
// linkage only.
#ifndef QPLAN_KERNELS_SIMD_INTERLEAVE_ROWS_H_
#define QPLAN_KERNELS_SIMD_INTERLEAVE_ROWS_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/simd.h"

#if defined(QPLAN_SIMD_INTERLEAVE_ROWS)
#include QPLAN_SIMD_INTERLEAVE_ROWS
#else

namespace qplan {
namespace {

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

}  // namespace
}  // namespace qplan

#endif  // QPLAN_SIMD_INTERLEAVE_ROWS

#endif  // QPLAN_KERNELS_SIMD_INTERLEAVE_ROWS_H_
