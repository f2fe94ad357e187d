// add and sub of broadcast tensors with Armv8.1-M's vectors: by the float form where the packer has proved
// one, otherwise as TFL2 says. F32E divides, which MVE does not. Internal linkage only; for cores with MVE
// alone.
#ifndef QPLAN_KERNELS_SIMD_ADD_ELEMENTS_MVE_H_
#define QPLAN_KERNELS_SIMD_ADD_ELEMENTS_MVE_H_

#include <stdint.h>

#include "kernels/add/add.h"
#include "kernels/simd/bytes_mve.h"

namespace qplan {
namespace {

inline Refusal add_elements_accepts(const AddArgs& args) {
  if (args.contract != Contract::kTfl2) return Refusal::kContract;
  return args.dtype == Dtype::kS16 ? Refusal::kDtype : Refusal::kNone;
}

#if !defined(QPLAN_ONLY_QUERIES)

template <bool kSigned>
inline void add_elements_of(const AddArgs& args, bool subtract, uint32_t begin, uint32_t end) {
  if (args.float_scale1 > 0.0f) {
    // The difference of sub is in the sign of a scale.
    const Output output(0, args.clamp_min, args.clamp_max);
    const float32x4_t offset = vdupq_n_f32(args.float_offset);
    for_each_four<kSigned>(args, begin, end, [&](int32x4_t a, int32x4_t b) {
      const float32x4_t second = vfmaq_n_f32(offset, vcvtq_f32_s32(b), args.float_scale2);
      return output(vcvtnq_s32_f32(vfmaq_n_f32(second, vcvtq_f32_s32(a), args.float_scale1)));
    });
    return;
  }
  const Requant requant1(args.input1_multiplier, args.input1_shift);
  const Requant requant2(args.input2_multiplier, args.input2_shift);
  const Requant requant(args.output_multiplier, args.output_shift);
  const Output output(args.output_zero_point, args.clamp_min, args.clamp_max);
  for_each_four<kSigned>(args, begin, end, [&](int32x4_t a, int32x4_t b) {
    a = requant1(vshlq_r_s32(vsubq_n_s32(a, args.input1_zero_point), args.left_shift));
    b = requant2(vshlq_r_s32(vsubq_n_s32(b, args.input2_zero_point), args.left_shift));
    return output(requant(subtract ? vsubq_s32(a, b) : vaddq_s32(a, b)));
  });
}

inline void add_elements(const AddArgs& args, bool subtract, uint32_t begin, uint32_t end) {
  if (args.dtype == Dtype::kS8) {
    add_elements_of<true>(args, subtract, begin, end);
  } else {
    add_elements_of<false>(args, subtract, begin, end);
  }
}

#endif

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_ADD_ELEMENTS_MVE_H_
