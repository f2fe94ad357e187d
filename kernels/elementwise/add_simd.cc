// add and sub by vectors.
#include "kernels/elementwise/add.h"
#include "kernels/elementwise/binary_simd.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// ---- TFL2 by 16 bits ----
// Most sums of TFL2 from one product of 16 bits per operand. The contract rounds five times, but all of them
// together move the result by less than a few units of the last of 18 or more binary places; where a sum
// in those places is not that near to the border between two outputs, its floor is the output. Where it is,
// and blocks of outputs that hold one, are computed as the contract says.

// For operands and outputs as uint8 (int8 after to_unsigned, `sign_bias` = 128) the output is
//   clamp(floor((a * factor1 + b * factor2 + offset) / 2^places))
// and in doubt where the places of the sum, taken as a number, are below `doubt`.
struct FixedPointAdd {
  bool is_valid;
  int32_t places;
  int32_t factor1;
  int32_t factor2;
  int32_t offset;
  uint32_t doubt;
  uint8_t sign_bias;
  uint8_t clamp_min;
  uint8_t clamp_max;
  // Factors are high * 2^15 + low; pairs of them for one multiplication of pairs of 16 bits.
  uint32_t high_pair() const { return pair(factor1 >> 15, factor2 >> 15); }
  uint32_t low_pair() const { return pair(factor1 & 0x7fff, factor2 & 0x7fff); }

 private:
  static uint32_t pair(int32_t first, int32_t second) {
    return (static_cast<uint32_t>(first) & 0xffff) | static_cast<uint32_t>(second) << 16;
  }
};

// What one unit of an operand adds to the output, in `places` binary places, to nearest. multiplier1 *
// multiplier2 * 2^(left_shift + shift1 + shift2 - 62) is the real number.
inline int64_t fixed_point_factor(const AddArgs& args, int32_t multiplier, int32_t shift, int32_t places) {
  const uint64_t product = static_cast<uint64_t>(multiplier) * static_cast<uint64_t>(args.output_multiplier);
  const int32_t right = 62 - args.left_shift - shift - args.output_shift - places;  // at least 19
  if (right > 63) return 0;
  return static_cast<int64_t>(((product >> (right - 1)) + 1) >> 1);
}

// With u the last place: the two factors are off by u / 2 each, of at most 255 units: together 255 u.
// Rescaled operands are off by 3/4 each, which the output's multiplier makes 2^output_shift * 3/2 at most,
// and the output's first rounding adds 2^output_shift / 2: together 2^(output_shift + 1).
inline FixedPointAdd fixed_point_add(const AddArgs& args, bool subtract) {
  FixedPointAdd fixed = {};
  if (args.output_shift > -12) return fixed;
  for (int32_t places = 21; places >= 18; --places) {
    const int64_t factor1 = fixed_point_factor(args, args.input1_multiplier, args.input1_shift, places);
    const int64_t factor2 = fixed_point_factor(args, args.input2_multiplier, args.input2_shift, places);
    // The sum and an output's zero point, as of uint8, fit int32.
    if ((factor1 + factor2) * 255 + (int64_t{258} << places) >= int64_t{1} << 31) continue;
    const int32_t to_unsigned = args.dtype == Dtype::kS8 ? 128 : 0;
    const int32_t error =
        256 + (args.output_shift + 1 + places >= 0 ? 1 << (args.output_shift + 1 + places) : 1);
    fixed.is_valid = true;
    fixed.places = places;
    fixed.factor1 = static_cast<int32_t>(factor1);
    fixed.factor2 = static_cast<int32_t>(subtract ? -factor2 : factor2);
    const int64_t offset = (int64_t{args.output_zero_point + to_unsigned} << places) +
                           (int64_t{1} << (places - 1)) + error -
                           int64_t{fixed.factor1} * (args.input1_zero_point + to_unsigned) -
                           int64_t{fixed.factor2} * (args.input2_zero_point + to_unsigned);
    fixed.offset = static_cast<int32_t>(offset);
    fixed.doubt = static_cast<uint32_t>(2 * error) << (32 - places);
    fixed.sign_bias = static_cast<uint8_t>(to_unsigned);
    fixed.clamp_min = static_cast<uint8_t>(args.clamp_min + to_unsigned);
    fixed.clamp_max = static_cast<uint8_t>(args.clamp_max + to_unsigned);
    return fixed;
  }
  return fixed;
}

// ---- the float epilogue (kernels/elementwise/add.h) ----

#if defined(QPLAN_SIMD_FLOAT_ADD)
}  // namespace
}  // namespace qplan
#include QPLAN_SIMD_FLOAT_ADD
namespace qplan {
namespace {
#else

// kBytes elements at a time. The difference of sub is in the sign of a scale. int8 is packed as uint8, 128
// above, for which the packing instructions saturate.
template <bool kSigned>
struct FloatAddLanes {
  static constexpr int32_t kToUnsigned = kSigned ? 128 : 0;
  // A byte with a sign becomes the highest of four, 2^24 times itself, which its scale takes back exactly.
  static constexpr float kUnit = kSigned ? 1.0f / (1 << 24) : 1.0f;
  VecF32 scale1, scale2, offset;
  VecI32 to_unsigned, sign_bias, clamp_min, clamp_max, zero;

  explicit FloatAddLanes(const AddArgs& args)
      : scale1(set_reals(args.float_scale1 * kUnit)),
        scale2(set_reals(args.float_scale2 * kUnit)),
        offset(set_reals(args.float_offset)),
        to_unsigned(set_words(kToUnsigned)),
        sign_bias(set_bytes(kToUnsigned)),
        clamp_min(set_bytes(static_cast<uint8_t>(args.clamp_min + kToUnsigned))),
        clamp_max(set_bytes(static_cast<uint8_t>(args.clamp_max + kToUnsigned))),
        zero(set_ints(0)) {}

  // A byte without a sign becomes the lowest of four.
  VecI32 low_words(VecI32 v) const {
    return kSigned ? interleave_low_bytes(zero, v) : interleave_low_bytes(v, zero);
  }
  VecI32 high_words(VecI32 v) const {
    return kSigned ? interleave_high_bytes(zero, v) : interleave_high_bytes(v, zero);
  }
  VecF32 low_reals(VecI32 words) const {
    return to_reals(kSigned ? interleave_low_words(zero, words) : interleave_low_words(words, zero));
  }
  VecF32 high_reals(VecI32 words) const {
    return to_reals(kSigned ? interleave_high_words(zero, words) : interleave_high_words(words, zero));
  }

  VecI32 sum(VecF32 a, VecF32 b) const { return round(fma(a, scale1, fma(b, scale2, offset))); }
  VecI32 words(VecI32 a, VecI32 b) const {
    const VecI32 sums = pack_ints(sum(low_reals(a), low_reals(b)), sum(high_reals(a), high_reals(b)));
    return kSigned ? add_words_saturating(sums, to_unsigned) : sums;
  }
  VecI32 outputs(VecI32 a, VecI32 b) const {
    const VecI32 bytes = pack_words(words(low_words(a), low_words(b)), words(high_words(a), high_words(b)));
    return bit_xor(min_bytes(max_bytes(bytes, clamp_min), clamp_max), sign_bias);
  }
};

template <bool kSigned>
inline void add_float_of(const AddArgs& args, uint32_t begin, uint32_t end) {
  const FloatAddLanes<kSigned> lanes(args);
  for_each_vector_pair(args, begin, end, [lanes](const VectorPair& pair) {
    const VecI32 a = load_repeated(pair.a, pair.a_step, pair.count);
    const VecI32 b = load_repeated(pair.b, pair.b_step, pair.count);
    store_vector(pair.output, lanes.outputs(a, b), pair.count);
  });
}

#endif

inline void add_float(const AddArgs& args, uint32_t begin, uint32_t end) {
  if (args.dtype == Dtype::kS8) {
    add_float_of<true>(args, begin, end);
  } else {
    add_float_of<false>(args, begin, end);
  }
}

// ---- all of them ----

// TFL2 as the contract says, kLanes elements at a time.
struct ExactAdd {
  int32_t left_shift;
  VecI32 zero1, zero2, sign;
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

  LaneBytes operator()(VecI32 a, VecI32 b) const {
    a = requantize(shift_left(sub(a, zero1), left_shift), requant1);
    b = requantize(shift_left(sub(b, zero2), left_shift), requant2);
    // -b = (b ^ -1) - -1
    return finish(requantize(add(a, sub(bit_xor(b, sign), sign)), requant), output);
  }
};

// kBytes elements of a FixedPointAdd at a time.
struct FixedPointLanes {
  int32_t places;
  VecI32 high, low, offset, doubt, sign_bias, clamp_min, clamp_max;

  explicit FixedPointLanes(const FixedPointAdd& fixed)
      : places(fixed.places),
        high(set_ints(static_cast<int32_t>(fixed.high_pair()))),
        low(set_ints(static_cast<int32_t>(fixed.low_pair()))),
        offset(set_ints(fixed.offset)),
        doubt(set_ints(static_cast<int32_t>(fixed.doubt))),
        sign_bias(set_bytes(fixed.sign_bias)),
        clamp_min(set_bytes(fixed.clamp_min)),
        clamp_max(set_bytes(fixed.clamp_max)) {}

  VecI32 sum(VecI32 pairs) const {
    const VecI32 upper = shift_left(multiply_pairs(pairs, high), 15);
    return add(add(multiply_pairs(pairs, low), offset), upper);
  }

  // False where an element is in doubt.
  bool outputs(VecI32 a, VecI32 b, VecI32* bytes) const {
    const VecI32 zero = set_ints(0);
    a = bit_xor(a, sign_bias);
    b = bit_xor(b, sign_bias);
    const VecI32 lower = interleave_low_bytes(a, b), upper = interleave_high_bytes(a, b);
    const VecI32 sum0 = sum(interleave_low_bytes(lower, zero)),
                 sum1 = sum(interleave_high_bytes(lower, zero));
    const VecI32 sum2 = sum(interleave_low_bytes(upper, zero)),
                 sum3 = sum(interleave_high_bytes(upper, zero));
    const VecI32 packed = pack_words(pack_ints(shift_right(sum0, places), shift_right(sum1, places)),
                                     pack_ints(shift_right(sum2, places), shift_right(sum3, places)));
    *bytes = bit_xor(min_bytes(max_bytes(packed, clamp_min), clamp_max), sign_bias);
    const VecI32 least01 = min_unsigned(shift_left(sum0, 32 - places), shift_left(sum1, 32 - places));
    const VecI32 least23 = min_unsigned(shift_left(sum2, 32 - places), shift_left(sum3, 32 - places));
    return !any_below(min_unsigned(least01, least23), doubt);
  }
};

inline void add_fixed_point(const AddArgs& args, const FixedPointAdd& fixed, const ExactAdd& exact,
                            uint32_t begin, uint32_t end) {
  const FixedPointLanes lanes(fixed);
  for_each_vector_pair(args, begin, end, [&](const VectorPair& pair) {
    VecI32 bytes;
    if (lanes.outputs(load_repeated(pair.a, pair.a_step, pair.count),
                      load_repeated(pair.b, pair.b_step, pair.count), &bytes)) {
      store_vector(pair.output, bytes, pair.count);
      return;
    }
    for (uint32_t k = 0; k < pair.count; k += kLanes) {
      const uint32_t some = pair.count - k < kLanes ? pair.count - k : kLanes;
      const VecI32 va = load_elements(pair.a + k * pair.a_step, pair.a_step, some, args.dtype);
      const VecI32 vb = load_elements(pair.b + k * pair.b_step, pair.b_step, some, args.dtype);
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
  const VecI32 zero1 = set_ints(args.input1_zero_point);
  const VecI32 zero2 = set_ints(args.input2_zero_point);
  const VecF32 scale1 = set_reals(args.input1_scale);
  // The negative of a product or a sum has the same bits but for the sign.
  const VecF32 scale2 = set_reals(subtract ? -args.input2_scale : args.input2_scale);
  const VecF32 output_scale = set_reals(args.output_scale);
  const RealOutput output = set_real_output(args.output_zero_point, args.clamp_min, args.clamp_max);
  for_each_pair(args, begin, end, [&](VecI32 a, VecI32 b) {
    const VecF32 real1 = dequantize(a, zero1, scale1);
    const VecF32 real2 = dequantize(b, zero2, scale2);
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

QPLAN_SIMD_NAMESPACE(add) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const AddArgs& args) { return args.dtype == Dtype::kS16 ? Refusal::kDtype : Refusal::kNone; }

size_t scratch_bytes(const AddArgs&) { return 0; }

uint32_t work_items(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) { add_lanes(args, false, begin, end); }
#endif

}  // QPLAN_SIMD_NAMESPACE(add)

QPLAN_SIMD_NAMESPACE(sub) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const AddArgs& args) { return args.dtype == Dtype::kS16 ? Refusal::kDtype : Refusal::kNone; }

size_t scratch_bytes(const AddArgs&) { return 0; }

uint32_t work_items(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) { add_lanes(args, true, begin, end); }
#endif

}  // QPLAN_SIMD_NAMESPACE(sub)

}  // namespace qplan
