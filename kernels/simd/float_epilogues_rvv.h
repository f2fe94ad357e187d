// The float epilogues of kernels/simd/simd.h with RISC-V's fused multiply-add, which rounds as the register
// frm says. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_FLOAT_EPILOGUES_RVV_H_
#define QPLAN_KERNELS_SIMD_FLOAT_EPILOGUES_RVV_H_

#include <stdint.h>

#include "kernels/simd/generic.h"

namespace qplan {
namespace {

constexpr bool kHasFma = true;
// Clang makes one instruction of the four.
inline VecF32 fma(VecF32 a, VecF32 b, VecF32 c) {
  return VecF32{__builtin_fmaf(a[0], b[0], c[0]), __builtin_fmaf(a[1], b[1], c[1]),
                __builtin_fmaf(a[2], b[2], c[2]), __builtin_fmaf(a[3], b[3], c[3])};
}

// For the time of its life floats are rounded towards zero, as float epilogues want it. What computes is to
// be a function of its own.
class EpilogueRounding {
 public:
  explicit EpilogueRounding(bool wanted) : before_(0) {
    __asm__ volatile("frrm %0" : "=r"(before_));
    if (wanted) set(kTowardsZero);
  }
  ~EpilogueRounding() { set(before_); }
  EpilogueRounding(const EpilogueRounding&) = delete;
  EpilogueRounding& operator=(const EpilogueRounding&) = delete;

 private:
  static constexpr uint64_t kTowardsZero = 1;
  static void set(uint64_t frm) { __asm__ volatile("fsrm %0" : : "r"(frm)); }
  uint64_t before_;
};

// FloatEpilogue::kPlain, under EpilogueRounding.
struct PlainEpilogue {
  static constexpr bool kIsFloat = true;
  VecF32 scale, offset;
  template <typename Args>
  PlainEpilogue(const Args& args, uint32_t channel)
      : scale(load_reals(args.float_scale + channel)), offset(load_reals(args.float_offset + channel)) {}
  PlainEpilogue(VecF32 scale_of_all, VecF32 offset_of_all) : scale(scale_of_all), offset(offset_of_all) {}
  VecI32 outputs(VecI32 sum) const { return truncate(fma(to_reals(sum), scale, offset)); }
};

// FloatEpilogue::kSigned, under EpilogueRounding.
struct SignedEpilogue {
  static constexpr bool kIsFloat = true;
  VecF32 scale, offset;
  template <typename Args>
  SignedEpilogue(const Args& args, uint32_t channel)
      : scale(load_reals(args.float_scale + channel)), offset(load_reals(args.float_offset + channel)) {}
  SignedEpilogue(VecF32 scale_of_all, VecF32 offset_of_all) : scale(scale_of_all), offset(offset_of_all) {}
  VecI32 outputs(VecI32 sum) const {
    // The sign of the sum, the rest of the offset, which is not negative.
    const VecI32 sign = bit_and(sum, set_ints(INT32_MIN));
    const VecF32 signed_offset = as_reals(sign | bits_of<VecI32>(offset));
    return truncate(fma(to_reals(sum), scale, signed_offset));
  }
};

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_FLOAT_EPILOGUES_RVV_H_
