// Families over height and width without weights: avg_pool2d, max_pool2d and resize_bilinear.
#ifndef QPLAN_KERNELS_SPATIAL_SPATIAL_H_
#define QPLAN_KERNELS_SPATIAL_SPATIAL_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/numeric/wide.h"
#include "kernels/variant.h"

namespace qplan {

// avg_pool2d, max_pool2d: windows over height and width of x [n,h,w,c]; input and output have one dtype,
// int8, uint8 or int16 (not under F32E), and, but for avg under F32E, one scale and zero point.
//
// The window of output (y, x) is the inputs (y * stride_h - pad_top + ky, x * stride_w - pad_left + kx), ky <
// pool_h, kx < pool_w, as far as they exist; each window holds at least one. With their sum and their number
// `count`:
//
//   avg  out = clamp((sum + (sum > 0 ? count / 2 : -(count / 2))) / count, clamp_min, clamp_max)
//   max  out = clamp(max of the window, clamp_min, clamp_max)
//
// All divisions truncate. This avg is contract TFL2; max has one result under every contract. Contract F32E,
// in float32, each operation rounded but for the sums, which are exact:
//
//   avg  out   = clamp(output_zero_point + round half even (float(sum - count * input_zero_point) * scale),
//                      clamp_min, clamp_max)
//        scale = input_scale / (output_scale * float(count_include_pad ? pool_h * pool_w : count))
//
// docs/numerics/pool2d.md.
struct Pool2dArgs {
  Contract contract = Contract::kTfl2;  // or kF32e; not looked at by max
  Dtype dtype = Dtype::kOther;          // kU8, kS8, kS16
  const void* input = nullptr;
  void* output = nullptr;
  // Extents and window positions fit int32; batch * output_h does, too.
  uint32_t batch = 1;
  uint32_t input_h = 1;
  uint32_t input_w = 1;
  uint32_t channels = 1;
  uint32_t output_h = 1;
  uint32_t output_w = 1;
  uint32_t pool_h = 1;
  uint32_t pool_w = 1;
  uint32_t stride_h = 1;
  uint32_t stride_w = 1;
  uint32_t pad_top = 0;
  uint32_t pad_left = 0;
  int32_t clamp_min = 0;  // of the dtype, min <= max
  int32_t clamp_max = 0;
  // avg under F32E: scales in (0, 2^100] with a finite quotient, zero points of the dtype.
  float input_scale = 0.0f;
  float output_scale = 0.0f;
  int32_t input_zero_point = 0;
  int32_t output_zero_point = 0;
  bool count_include_pad = false;
};

// The factor between the centred sum of a window of `count` elements and the output, under F32E.
static inline float pool_scale_f32e(const Pool2dArgs& args, uint64_t count) {
  const uint64_t divisor = args.count_include_pad ? uint64_t{args.pool_h} * args.pool_w : count;
  return args.input_scale / (args.output_scale * wide_float(divisor));
}

// The part [begin, end) of an axis that the window of output `at` covers.
struct PoolSpan {
  uint32_t begin;
  uint32_t end;
};

static constexpr PoolSpan pool_span(uint32_t at, uint32_t stride, uint32_t pad, uint32_t pool,
                                    uint32_t input) {
  const int64_t first = int64_t{at} * stride - pad;
  const int64_t last = first + pool;
  return {first > 0 ? static_cast<uint32_t>(first) : 0,
          last < int64_t{input} ? static_cast<uint32_t>(last) : input};
}

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_AVG_POOL2D_VARIANTS \
  QPLAN_SIMD_VARIANTS(avg_pool2d) \
  QPLAN_FILE_VARIANTS_IN(pool2d, avg_pool2d) QPLAN_VARIANT(avg_pool2d_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_MAX_POOL2D_VARIANTS \
  QPLAN_SIMD_VARIANTS(max_pool2d) \
  QPLAN_FILE_VARIANTS_IN(pool2d, max_pool2d) QPLAN_VARIANT(max_pool2d_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, Pool2dArgs)
QPLAN_AVG_POOL2D_VARIANTS
QPLAN_MAX_POOL2D_VARIANTS
#undef QPLAN_VARIANT

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

// As in format/plan.fbs.
enum class ResizeRounding : uint8_t { kFloat = 0, kInteger = 1 };

struct ResizeBilinearArgs {
  // Positions fit int32, and float32 positions stay within the input.
  static constexpr uint32_t kMaxExtent = uint32_t{1} << 20;

  Dtype dtype = Dtype::kOther;  // kFloat: kU8; kInteger: kU8, kS8, kS16
  ResizeRounding rule = ResizeRounding::kFloat;
  bool align_corners = false;  // not both
  bool half_pixel_centers = false;
  const void* input = nullptr;
  void* output = nullptr;  // [batch, rows, output_w, channels]
  uint32_t batch = 1;      // batch * output_h fits int32
  uint32_t input_h = 1;    // heights and widths: [1, kMaxExtent]
  uint32_t input_w = 1;
  uint32_t channels = 1;
  uint32_t output_h = 1;  // of whole images, which positions depend on
  uint32_t output_w = 1;
  // The rows [first_row, first_row + rows) of each image are made: all output_h, but in a cascade.
  uint32_t first_row = 0;
  uint32_t rows = 1;
};

// Best first; the reference, which computes all that is bound, is the last. Work items: rows of the output.
#define QPLAN_RESIZE_BILINEAR_VARIANTS                      \
  QPLAN_SIMD_VARIANTS_AFTER(resize_bilinear, resize_pixels) \
  QPLAN_VARIANT(resize_bilinear_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, ResizeBilinearArgs)
QPLAN_RESIZE_BILINEAR_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_SPATIAL_SPATIAL_H_
