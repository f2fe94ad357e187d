// avg_pool2d, max_pool2d: windows over height and width of x [n,h,w,c]; input and output share scale, zero
// point and dtype, int8 or uint8.
//
// The window of output (y, x) is the inputs (y * stride_h - pad_top + ky, x * stride_w - pad_left + kx), ky <
// pool_h, kx < pool_w, as far as they exist; each window holds at least one. With their sum and their number
// `count`:
//
//   avg  out = clamp((sum + (sum > 0 ? count / 2 : -(count / 2))) / count, clamp_min, clamp_max)
//   max  out = clamp(max of the window, clamp_min, clamp_max)
//
// All divisions truncate. avg is contract TFL2; max has one result under every contract.
// docs/numerics/pool2d.md.
#ifndef QPLAN_KERNELS_POOL2D_POOL2D_H_
#define QPLAN_KERNELS_POOL2D_POOL2D_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

struct Pool2dArgs {
  Dtype dtype = Dtype::kOther;  // kU8, kS8
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
};

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

#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, Pool2dArgs)
#include "kernels/pool2d/avg_pool2d_variants.def"
#include "kernels/pool2d/max_pool2d_variants.def"
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_POOL2D_POOL2D_H_
