// mul by vectors. An ISA file includes its kernels/numeric/lanes_<isa>.inl before this one, which gives the
// names used here their meaning. Internal linkage only.
#ifndef QPLAN_KERNELS_MUL_MUL_LANES_INL_
#define QPLAN_KERNELS_MUL_MUL_LANES_INL_

#include "kernels/elementwise/binary_lanes.inl"
#include "kernels/mul/mul.h"

namespace qplan {
namespace {

inline void mul_tfl2(const MulArgs& args, uint32_t begin, uint32_t end) {
  const Ints zero1 = set_ints(args.input1_zero_point);
  const Ints zero2 = set_ints(args.input2_zero_point);
  const Requant requant = set_requant(args.output_multiplier, args.output_shift);
  const Output output = set_output(args.output_zero_point, args.clamp_min, args.clamp_max);
  for_each_pair(args, begin, end, [&](Ints a, Ints b) {
    return finish(requantize(mul(sub(a, zero1), sub(b, zero2)), requant), output);
  });
}

inline void mul_f32e(const MulArgs& args, uint32_t begin, uint32_t end) {
  const Ints zero1 = set_ints(args.input1_zero_point);
  const Ints zero2 = set_ints(args.input2_zero_point);
  const Reals scale1 = set_reals(args.input1_scale);
  const Reals scale2 = set_reals(args.input2_scale);
  const Reals output_scale = set_reals(args.output_scale);
  const RealOutput output = set_real_output(args.output_zero_point, args.clamp_min, args.clamp_max);
  for_each_pair(args, begin, end, [&](Ints a, Ints b) {
    const Reals product = mul(dequantize(a, zero1, scale1), dequantize(b, zero2, scale2));
    return finish(div(product, output_scale), output);
  });
}

inline void mul_lanes(const MulArgs& args, uint32_t begin, uint32_t end) {
  if (args.contract == Contract::kF32e) {
    mul_f32e(args, begin, end);
  } else {
    mul_tfl2(args, begin, end);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_MUL_MUL_LANES_INL_
