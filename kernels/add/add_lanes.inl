// add and sub by vectors. An ISA file includes its kernels/numeric/lanes_<isa>.inl before this one, which
// gives the names used here their meaning. Internal linkage only.
#ifndef QPLAN_KERNELS_ADD_ADD_LANES_INL_
#define QPLAN_KERNELS_ADD_ADD_LANES_INL_

#include "kernels/add/add.h"
#include "kernels/elementwise/binary_lanes.inl"

namespace qplan {
namespace {

template <bool kSubtract>
inline void add_tfl2(const AddArgs& args, uint32_t begin, uint32_t end) {
  const Ints zero1 = set_ints(args.input1_zero_point);
  const Ints zero2 = set_ints(args.input2_zero_point);
  const Requant requant1 = set_requant(args.input1_multiplier, args.input1_shift);
  const Requant requant2 = set_requant(args.input2_multiplier, args.input2_shift);
  const Requant requant = set_requant(args.output_multiplier, args.output_shift);
  const Output output = set_output(args.output_zero_point, args.clamp_min, args.clamp_max);
  for_each_pair(args, begin, end, [&](Ints a, Ints b) {
    a = requantize(shift_left(sub(a, zero1), args.left_shift), requant1);
    b = requantize(shift_left(sub(b, zero2), args.left_shift), requant2);
    return finish(requantize(kSubtract ? sub(a, b) : add(a, b), requant), output);
  });
}

template <bool kSubtract>
inline void add_f32e(const AddArgs& args, uint32_t begin, uint32_t end) {
  const Ints zero1 = set_ints(args.input1_zero_point);
  const Ints zero2 = set_ints(args.input2_zero_point);
  const Reals scale1 = set_reals(args.input1_scale);
  const Reals scale2 = set_reals(args.input2_scale);
  const Reals output_scale = set_reals(args.output_scale);
  const RealOutput output = set_real_output(args.output_zero_point, args.clamp_min, args.clamp_max);
  for_each_pair(args, begin, end, [&](Ints a, Ints b) {
    const Reals real1 = dequantize(a, zero1, scale1);
    const Reals real2 = dequantize(b, zero2, scale2);
    return finish(div(kSubtract ? sub(real1, real2) : add(real1, real2), output_scale), output);
  });
}

template <bool kSubtract>
inline void add_lanes(const AddArgs& args, uint32_t begin, uint32_t end) {
  if (args.contract == Contract::kF32e) {
    add_f32e<kSubtract>(args, begin, end);
  } else {
    add_tfl2<kSubtract>(args, begin, end);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_ADD_ADD_LANES_INL_
