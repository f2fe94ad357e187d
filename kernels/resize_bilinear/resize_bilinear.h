// resize_bilinear: x [n,h,w,c] to another height and width; input and output share scale, zero point and
// dtype.
//
// Along an axis of `in` elements the output o reads position p, between the neighbours `lower` and `upper`:
//   kFloat    float32: s = in / out, or (in - 1) / (out - 1) for align_corners and out > 1;
//             p = o * s, or (o + 0.5) * s - 0.5 for half-pixel centres;
//             lower = max(floor(p), 0), upper = min(ceil(p), in - 1)
//   kInteger  units of 1/1024, all divisions truncate: s = (1024 * in + out / 2) / out, or
//             (1024 * (in - 1) + (out - 1) / 2) / (out - 1) for align_corners and out > 1;
//             p = o * s, or o * s + s / 2 - 512 for half-pixel centres;
//             lower = max(p / 1024, 0), upper = min((p + 1023) / 1024, in - 1)
// lower and upper are besides at most in - 1. With dy = p - lower of the height and dx of the width:
//   kFloat    out = trunc(x00 * (1 - dy) * (1 - dx) + x10 * dy * (1 - dx)
//                         + x01 * (1 - dy) * dx + x11 * dy * dx + 0.5)
//             in float32, from left to right; uint8 only
//   kInteger  the same sum with 1024 in the place of 1, divided by 2^20 and rounded half away from zero
// docs/numerics/resize_bilinear.md.
#ifndef QPLAN_KERNELS_RESIZE_BILINEAR_RESIZE_BILINEAR_H_
#define QPLAN_KERNELS_RESIZE_BILINEAR_RESIZE_BILINEAR_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

// As in format/plan.fbs.
enum class ResizeRounding : uint8_t { kFloat = 0, kInteger = 1 };

struct ResizeBilinearArgs {
  // Positions fit int32, and float32 positions stay within the input.
  static constexpr uint32_t kMaxExtent = uint32_t{1} << 20;

  Dtype dtype = Dtype::kOther;  // kFloat: kU8; kInteger: kU8, kS8
  ResizeRounding rule = ResizeRounding::kFloat;
  bool align_corners = false;  // not both
  bool half_pixel_centers = false;
  const void* input = nullptr;
  void* output = nullptr;
  uint32_t batch = 1;    // batch * output_h fits int32
  uint32_t input_h = 1;  // heights and widths: [1, kMaxExtent]
  uint32_t input_w = 1;
  uint32_t channels = 1;
  uint32_t output_h = 1;
  uint32_t output_w = 1;
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_RESIZE_BILINEAR_VARIANTS                      \
  QPLAN_SIMD_VARIANTS_AFTER(resize_bilinear, resize_pixels) \
  QPLAN_VARIANT(resize_bilinear_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, ResizeBilinearArgs)
QPLAN_RESIZE_BILINEAR_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_RESIZE_BILINEAR_RESIZE_BILINEAR_H_
