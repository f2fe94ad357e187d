// Sums of bytes (kernels/elementwise/add.h) with Armv8.1-M's vectors: where the packer has proved a float
// form, four at a time. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_ADD_MVE_H_
#define QPLAN_KERNELS_SIMD_ADD_MVE_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/elementwise/add.h"
#include "kernels/simd/dots_mve.h"

namespace qplan {
namespace {

template <typename T>
inline void add_each(const AddFormula& f, const uint8_t* a, const uint8_t* b, size_t bytes, uint8_t* out) {
  for (size_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<uint8_t>(sum_of(f, static_cast<T>(a[i]), static_cast<T>(b[i]), false));
  }
}

#if defined(QPLAN_MVE)
// VFMA and VCVTN round half to even, whatever the mode of the processor is.
#define QPLAN_MVE_FLOAT_ADD(load)                                                             \
  __asm__ volatile(                                                                           \
      "vdup.32 q4, %[offset]\n\t"                                                             \
      "vdup.32 q5, %[scale1]\n\t"                                                             \
      "vdup.32 q6, %[low]\n\t"                                                                \
      "vdup.32 q7, %[high]\n\t"                                                               \
      "wlstp.32 lr, %[bytes], 2f\n"                                                           \
      "1:\n\t" load " q0, [%[a]], #4\n\t" load                                                \
      " q1, [%[b]], #4\n\t"                                                                   \
      "vcvt.f32.s32 q0, q0\n\t"                                                               \
      "vcvt.f32.s32 q1, q1\n\t"                                                               \
      "vmov q2, q4\n\t"                                                                       \
      "vfma.f32 q2, q1, %[scale2]\n\t"                                                        \
      "vfma.f32 q2, q0, q5\n\t"                                                               \
      "vcvtn.s32.f32 q2, q2\n\t"                                                              \
      "vmax.s32 q2, q2, q6\n\t"                                                               \
      "vmin.s32 q2, q2, q7\n\t"                                                               \
      "vstrb.32 q2, [%[out]], #4\n\t"                                                         \
      "letp lr, 1b\n"                                                                         \
      "2:\n\t"                                                                                \
      : [a] "+l"(a), [b] "+l"(b), [out] "+l"(out)                                             \
      : [bytes] "r"(bytes), [scale1] "r"(scale1), [scale2] "r"(scale2), [offset] "r"(offset), \
        [low] "r"(low), [high] "r"(high)                                                      \
      : "lr", "cc", "memory", QPLAN_MVE_VECTORS)
#endif

// out may be a or b.
inline void add_residual(const AddFormula& f, Dtype dtype, const uint8_t* a, const uint8_t* b, size_t bytes,
                         uint8_t* out) {
#if defined(QPLAN_MVE)
  if (f.contract == Contract::kTfl2 && f.float_scale1 > 0.0f) {
    const auto scale1 = __builtin_bit_cast(uint32_t, f.float_scale1);
    const auto scale2 = __builtin_bit_cast(uint32_t, f.float_scale2);
    const auto offset = __builtin_bit_cast(uint32_t, f.float_offset);
    const int32_t low = f.clamp_min, high = f.clamp_max;
    if (dtype == Dtype::kS8) {
      QPLAN_MVE_FLOAT_ADD("vldrb.s32");
    } else {
      QPLAN_MVE_FLOAT_ADD("vldrb.u32");
    }
    return;
  }
#endif
  dtype == Dtype::kS8 ? add_each<int8_t>(f, a, b, bytes, out) : add_each<uint8_t>(f, a, b, bytes, out);
}
#undef QPLAN_MVE_FLOAT_ADD

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_ADD_MVE_H_
