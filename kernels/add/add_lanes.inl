// add and sub by vectors. An ISA file includes its kernels/numeric/bytes_<isa>.inl before this one, which
// gives the names used here their meaning. Internal linkage only.
#ifndef QPLAN_KERNELS_ADD_ADD_LANES_INL_
#define QPLAN_KERNELS_ADD_ADD_LANES_INL_

#include "kernels/add/add.h"
#include "kernels/add/add_fixed_point.inl"
#include "kernels/add/add_float.inl"
#include "kernels/elementwise/binary_bytes.inl"
#include "kernels/elementwise/binary_lanes.inl"

namespace qplan {
namespace {

// TFL2 as the contract says, kLanes elements at a time.
struct ExactAdd {
  int32_t left_shift;
  Ints zero1, zero2, sign;
  Requant requant1, requant2, requant;
  Output output;

  ExactAdd(const AddArgs& args, bool subtract)
      : left_shift(args.left_shift),
        zero1(set_ints(args.input1_zero_point)),
        zero2(set_ints(args.input2_zero_point)),
        sign(set_ints(subtract ? -1 : 0)),
        requant1(set_requant(args.input1_multiplier, args.input1_shift)),
        requant2(set_requant(args.input2_multiplier, args.input2_shift)),
        requant(set_requant(args.output_multiplier, args.output_shift)),
        output(set_output(args.output_zero_point, args.clamp_min, args.clamp_max)) {}

  __m128i operator()(Ints a, Ints b) const {
    a = requantize(shift_left(sub(a, zero1), left_shift), requant1);
    b = requantize(shift_left(sub(b, zero2), left_shift), requant2);
    // -b = (b ^ -1) - -1
    return finish(requantize(add(a, sub(bit_xor(b, sign), sign)), requant), output);
  }
};

// kBytes elements of a FixedPointAdd at a time.
struct FixedPointLanes {
  int32_t places;
  Ints high, low, offset, doubt, flip, clamp_min, clamp_max;

  explicit FixedPointLanes(const FixedPointAdd& fixed)
      : places(fixed.places),
        high(set_ints(static_cast<int32_t>(fixed.high_pair()))),
        low(set_ints(static_cast<int32_t>(fixed.low_pair()))),
        offset(set_ints(fixed.offset)),
        doubt(set_ints(static_cast<int32_t>(fixed.doubt))),
        flip(set_bytes(fixed.flip)),
        clamp_min(set_bytes(fixed.clamp_min)),
        clamp_max(set_bytes(fixed.clamp_max)) {}

  Ints sum(Ints pairs) const {
    const Ints upper = shift_left(multiply_pairs(pairs, high), 15);
    return add(add(multiply_pairs(pairs, low), offset), upper);
  }

  // False where an element is in doubt.
  bool outputs(Ints a, Ints b, Ints* bytes) const {
    const Ints zero = set_ints(0);
    a = bit_xor(a, flip);
    b = bit_xor(b, flip);
    const Ints lower = zip_low_bytes(a, b), upper = zip_high_bytes(a, b);
    const Ints sum0 = sum(zip_low_bytes(lower, zero)), sum1 = sum(zip_high_bytes(lower, zero));
    const Ints sum2 = sum(zip_low_bytes(upper, zero)), sum3 = sum(zip_high_bytes(upper, zero));
    const Ints packed = pack_words(pack_ints(shift_right(sum0, places), shift_right(sum1, places)),
                                   pack_ints(shift_right(sum2, places), shift_right(sum3, places)));
    *bytes = bit_xor(min_bytes(max_bytes(packed, clamp_min), clamp_max), flip);
    const Ints least01 = min_unsigned(shift_left(sum0, 32 - places), shift_left(sum1, 32 - places));
    const Ints least23 = min_unsigned(shift_left(sum2, 32 - places), shift_left(sum3, 32 - places));
    return !any_below(min_unsigned(least01, least23), doubt);
  }
};

inline void add_fixed_point(const AddArgs& args, const FixedPointAdd& fixed, const ExactAdd& exact,
                            uint32_t begin, uint32_t end) {
  const FixedPointLanes lanes(fixed);
  for_each_vector_pair(args, begin, end, [&](const VectorPair& pair) {
    Ints bytes;
    if (lanes.outputs(load_repeated(pair.a, pair.a_step, pair.count),
                      load_repeated(pair.b, pair.b_step, pair.count), &bytes)) {
      store_vector(pair.output, bytes, pair.count);
      return;
    }
    for (uint32_t k = 0; k < pair.count; k += kLanes) {
      const uint32_t some = pair.count - k < kLanes ? pair.count - k : kLanes;
      const Ints va = load_elements(pair.a + k * pair.a_step, pair.a_step, some, args.dtype);
      const Ints vb = load_elements(pair.b + k * pair.b_step, pair.b_step, some, args.dtype);
      store_bytes(pair.output + k, exact(va, vb), some);
    }
  });
}

inline void add_tfl2(const AddArgs& args, bool subtract, uint32_t begin, uint32_t end) {
  const FixedPointAdd fixed = fixed_point_add(args, subtract);
  const ExactAdd exact(args, subtract);
  if (fixed.is_valid) {
    add_fixed_point(args, fixed, exact, begin, end);
  } else {
    for_each_pair(args, begin, end, exact);
  }
}

inline void add_f32e(const AddArgs& args, bool subtract, uint32_t begin, uint32_t end) {
  const Ints zero1 = set_ints(args.input1_zero_point);
  const Ints zero2 = set_ints(args.input2_zero_point);
  const Reals scale1 = set_reals(args.input1_scale);
  // The negative of a product or a sum has the same bits but for the sign.
  const Reals scale2 = set_reals(subtract ? -args.input2_scale : args.input2_scale);
  const Reals output_scale = set_reals(args.output_scale);
  const RealOutput output = set_real_output(args.output_zero_point, args.clamp_min, args.clamp_max);
  for_each_pair(args, begin, end, [&](Ints a, Ints b) {
    const Reals real1 = dequantize(a, zero1, scale1);
    const Reals real2 = dequantize(b, zero2, scale2);
    return finish(div(add(real1, real2), output_scale), output);
  });
}

inline void add_lanes(const AddArgs& args, bool subtract, uint32_t begin, uint32_t end) {
  if (args.contract == Contract::kF32e) {
    add_f32e(args, subtract, begin, end);
  } else if (kHasFma && args.float_scale1 > 0.0f) {
    add_float(args, begin, end);
  } else {
    add_tfl2(args, subtract, begin, end);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_ADD_ADD_LANES_INL_
