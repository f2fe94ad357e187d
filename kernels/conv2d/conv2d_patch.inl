// Patches of a convolution: the kernel_h * kernel_w * input_c bytes under one output pixel, gathered into a
// row, as uint8 (int8 plus 128). Shared by the ISA files, which pass their ways to copy and fill; internal
// linkage only.
#ifndef QPLAN_KERNELS_CONV2D_CONV2D_PATCH_INL_
#define QPLAN_KERNELS_CONV2D_CONV2D_PATCH_INL_

#include <stddef.h>
#include <stdint.h>

#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"

namespace qplan {
namespace {

// Output pixels of one work unit: their patches and row terms lie in scratch.
constexpr uint32_t kPatchRows = 24;

// What the vector variants compute: everything but groups and ACC32, with the input zero point at the dtype's
// minimum (where the packer puts it), so that the bytes, seen as uint8, are the factors.
inline bool patch_accepts(const Conv2dArgs& a) {
  const uint64_t pixels = uint64_t{a.batch} * a.output_h * a.output_w;
  return a.contract != Contract::kAcc32 && a.groups == 1 && a.weights_layout == kLayout_o16k4 &&
         a.input_zero_point == dtype_min(a.input_dtype) && a.output_w < (1u << 30) &&
         uint64_t{a.batch} * a.output_h < (1u << 30) && pixels < (1u << 31) &&
         uint64_t{a.kernel_h} * a.kernel_w * a.input_c < (1u << 30);
}

inline uint32_t patch_bytes(const Conv2dArgs& a) { return a.kernel_h * a.kernel_w * a.input_c; }
inline size_t patch_stride(const Conv2dArgs& a) { return (size_t{patch_bytes(a)} + 63) / 64 * 64; }
inline uint32_t patch_units(const Conv2dArgs& a) {
  return (a.batch * a.output_h * a.output_w + kPatchRows - 1) / kPatchRows;
}

// Whether the input itself is the matrix of patches.
inline bool patch_is_input(const Conv2dArgs& a) {
  return a.input_dtype == Dtype::kU8 && a.kernel_h == 1 && a.kernel_w == 1 && a.stride_h == 1 &&
         a.stride_w == 1 && a.pad_top == 0 && a.pad_left == 0 && a.input_c % 4 == 0 &&
         a.output_h == a.input_h && a.output_w == a.input_w;
}

// Scratch: kPatchRows patches, then kPatchRows row terms.
inline size_t patch_scratch_bytes(const Conv2dArgs& a) {
  const size_t terms = (kPatchRows * sizeof(int32_t) + 63) / 64 * 64;
  return (patch_is_input(a) ? 0 : kPatchRows * patch_stride(a)) + terms;
}

// One row of the kernel at input row y, columns x0, x0 + dilation_w, ...
template <void (*kCopyFlip)(uint8_t*, const uint8_t*, size_t, uint8_t),
          void (*kFill)(uint8_t*, uint8_t, size_t)>
inline void gather_kernel_row(const Conv2dArgs& a, const uint8_t* row, int32_t x0, uint8_t flip, uint8_t pad,
                              uint8_t* to) {
  const uint32_t c = a.input_c;
  if (a.dilation_w == 1) {  // one run of bytes, with padding before and after
    const int32_t kernel_w = static_cast<int32_t>(a.kernel_w);
    const int32_t before = x0 >= 0 ? 0 : (-x0 < kernel_w ? -x0 : kernel_w);
    const int64_t room = int64_t{a.input_w} - x0;  // wider than int32 where x0 is negative
    const int32_t end = room >= kernel_w ? kernel_w : (room > before ? static_cast<int32_t>(room) : before);
    if (before > 0) kFill(to, pad, size_t{c} * static_cast<uint32_t>(before));
    if (end > before) {
      kCopyFlip(to + size_t{c} * static_cast<uint32_t>(before),
                row + size_t{c} * static_cast<uint32_t>(x0 + before),
                size_t{c} * static_cast<uint32_t>(end - before), flip);
    }
    if (end < kernel_w) {
      kFill(to + size_t{c} * static_cast<uint32_t>(end), pad,
            size_t{c} * static_cast<uint32_t>(kernel_w - end));
    }
    return;
  }
  for (uint32_t kx = 0; kx < a.kernel_w; ++kx, to += c) {
    const int32_t x = x0 + static_cast<int32_t>(kx * a.dilation_w);
    if (x >= 0 && static_cast<uint32_t>(x) < a.input_w) {
      kCopyFlip(to, row + size_t{c} * static_cast<uint32_t>(x), c, flip);
    } else {
      kFill(to, pad, c);
    }
  }
}

// Patches of output pixels [first, first + count) into rows of patch_stride bytes; up to three zero bytes
// follow each.
template <void (*kCopyFlip)(uint8_t*, const uint8_t*, size_t, uint8_t),
          void (*kFill)(uint8_t*, uint8_t, size_t)>
inline void gather_patches(const Conv2dArgs& a, uint32_t first, uint32_t count, uint8_t* to) {
  const uint8_t flip = a.input_dtype == Dtype::kS8 ? 0x80 : 0;
  const uint8_t pad = static_cast<uint8_t>(a.pad_value - a.input_zero_point);
  const uint32_t bytes = patch_bytes(a);
  const size_t row_bytes = size_t{a.input_w} * a.input_c;
  for (uint32_t p = 0; p < count; ++p, to += patch_stride(a)) {
    const uint32_t x = (first + p) % a.output_w, row = (first + p) / a.output_w;
    const uint32_t y = row % a.output_h, n = row / a.output_h;
    const uint8_t* image = static_cast<const uint8_t*>(a.input) + size_t{n} * a.input_h * row_bytes;
    const int32_t x0 = static_cast<int32_t>(x * a.stride_w) - static_cast<int32_t>(a.pad_left);
    const int32_t y0 = static_cast<int32_t>(y * a.stride_h) - static_cast<int32_t>(a.pad_top);
    uint8_t* at = to;
    for (uint32_t ky = 0; ky < a.kernel_h; ++ky, at += size_t{a.kernel_w} * a.input_c) {
      const int32_t iy = y0 + static_cast<int32_t>(ky * a.dilation_h);
      if (iy >= 0 && static_cast<uint32_t>(iy) < a.input_h) {
        gather_kernel_row<kCopyFlip, kFill>(a, image + size_t{static_cast<uint32_t>(iy)} * row_bytes, x0,
                                            flip, pad, at);
      } else {
        kFill(at, pad, size_t{a.kernel_w} * a.input_c);
      }
    }
    for (uint32_t i = bytes; i % 4 != 0; ++i) to[i] = 0;
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_CONV2D_CONV2D_PATCH_INL_
