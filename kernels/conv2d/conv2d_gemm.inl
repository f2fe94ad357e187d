// conv2d as a matrix product of windows and packed weights. An ISA file includes its
// kernels/numeric/gemm_<isa>.inl before this one, which gives the names used here their meaning. Internal
// linkage only.
#ifndef QPLAN_KERNELS_CONV2D_CONV2D_GEMM_INL_
#define QPLAN_KERNELS_CONV2D_CONV2D_GEMM_INL_

#include "kernels/conv2d/conv2d_windows.inl"
#include "kernels/numeric/gemm.h"

namespace qplan {
namespace {

// Unit u is group u % groups of the blocks of strip u / groups.
inline uint32_t conv2d_units(const Conv2dArgs& args) { return num_strips(args) * strip_groups(args); }

inline void conv2d_gemm(const Conv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  const WindowShape shape = window_shape(args);
  const Windows windows = windows_in(shape, scratch);
  Gemm product = gemm_of(args);
  const bool direct = windows_are_pixels(args);
  product.rows = direct || shape.packed ? nullptr : windows.rows;
  product.first_row = windows.slots;
  product.row_stride = direct ? args.input_c : shape.slot_bytes;
  product.tap_offsets = windows.tap_offsets;
  product.num_taps = shape.rows * shape.columns;
  product.tap_k4 = shape.tap_k4;
  product.row_term = args.weights_zero_point != 0 ? windows.terms : nullptr;
  const uint32_t groups = strip_groups(args), num_blocks = (args.output_c + 15) / 16;
  for (uint32_t unit = begin; unit < end; ++unit) {
    const uint32_t first = unit / groups * kStripRows, group = unit % groups;
    if (unit == begin || group == 0) {
      const uint32_t left = strip_pixels(args) - first;
      product.num_rows = left < kStripRows ? left : kStripRows;
      product.first_out = static_cast<uint8_t*>(args.output) + size_t{first} * args.output_c;
      if (direct) {
        product.first_row = static_cast<const uint8_t*>(args.input) + size_t{first} * args.input_c;
      } else {
        find_windows<copy_run, fill>(args, shape, first, product.num_rows, windows);
      }
      // sum u * (w - z) = sum u * w - z * sum u
      if (args.weights_zero_point != 0) row_sums(product, -args.weights_zero_point, windows.terms);
    }
    gemm(product, num_blocks * group / groups, num_blocks * (group + 1) / groups);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_CONV2D_CONV2D_GEMM_INL_
