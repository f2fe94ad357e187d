// How an int32 accumulator becomes an output, contract by contract, and a real multiplier fixed point.
// docs/numerics.md states the same formulas; the sources are TFLite's reference kernels (gemmlowp's fixed
// point) for TFL2, TVM's fixed_point_multiply (UPWARD) and TFLite built with single rounding for TFL1, ONNX
// Runtime and FBGEMM for F32E. Internal linkage only, no libm: ISA files include this, and use it for what is
// left over of their vectors.
#ifndef QPLAN_KERNELS_NUMERIC_REQUANTIZE_H_
#define QPLAN_KERNELS_NUMERIC_REQUANTIZE_H_

#include <stdint.h>

namespace qplan {

// ---- clamps, and int32 arithmetic that wraps instead of being undefined

// lo <= hi.
static constexpr int32_t clamp_s32(int32_t value, int32_t lo, int32_t hi) {
  return value < lo ? lo : value > hi ? hi : value;
}

// The result modulo 2^32, read as two's complement.
static constexpr int32_t wrap_add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

static constexpr int32_t wrap_sub(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}

static constexpr int32_t wrap_mul(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}

// count in [0, 31].
static constexpr int32_t wrap_shift_left(int32_t a, int32_t count) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) << count);
}

// a + b clamped to [lo, hi], without wrapping in between: for a zero point added to a value of any size.
static constexpr int32_t add_clamp(int32_t a, int32_t b, int32_t lo, int32_t hi) {
  const int64_t sum = int64_t{a} + b;
  return sum < lo ? lo : sum > hi ? hi : static_cast<int32_t>(sum);
}

// ---- contracts

// The contracts that kernels compute, by their numbers in format/plan.fbs. Under kAcc32 the accumulator is
// the output.
enum class Contract : uint8_t { kTfl2 = 1, kTfl1 = 2, kF32e = 3, kAcc32 = 5 };

// How float_scale and float_offset, which a packer has proved, may stand for multiplier and shift under TFL2
// and TFL1: accumulator a becomes int(fma(float(a), float_scale, float_offset)), everything rounded towards
// zero; kSigned: the offset with the sign of a. Zero point and clamp follow, saturating. A group of 16
// channels that begins with a negative float_scale has no proof and no form. Where the packer's proof holds
// the results are those of the contract; a kernel may use the form or not, and the reference does not.
enum class FloatEpilogue : uint8_t { kNone = 0, kPlain = 1, kSigned = 2 };

// Whether groups [first, first + count) of 16 channels have it.
template <typename Args>
static bool groups_have_form(const Args& args, uint32_t first, uint32_t count) {
  bool all = true;
  for (uint32_t i = 0; i < count; ++i) all &= args.float_scale[(first + i) * 16] >= 0.0f;
  return all;
}

// Whether F32E's scales of `count` channels are below 1: then no product with an accumulator is beyond int32.
// The bits of positive floats have the order of the floats.
static inline bool are_fractions(const float* scales, uint32_t count) {
  uint32_t above = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t bits;
    __builtin_memcpy(&bits, scales + i, sizeof(bits));
    above |= 0x3f7fffffu - bits;
  }
  return above >> 31 == 0;
}

// Doubling high multiplication: floor((a * m + 2^30) / 2^31), that is a * m / 2^31 rounded to nearest, ties
// upwards. Equals gemmlowp's SaturatingRoundingDoublingHighMul for all a and m but a == m == -2^31, where
// that one saturates.
static constexpr int32_t doubling_high_mul(int32_t a, int32_t m) {
  return static_cast<int32_t>((int64_t{a} * m + (int64_t{1} << 30)) >> 31);
}

// a / 2^count rounded to nearest, ties away from zero; count in [0, 31]. gemmlowp's RoundingDivideByPOT.
static constexpr int32_t rounding_shift_right(int32_t a, int32_t count) {
  const uint32_t mask = (uint32_t{1} << count) - 1;
  const uint32_t remainder = static_cast<uint32_t>(a) & mask;
  const uint32_t threshold = (mask >> 1) + (a < 0 ? 1u : 0u);
  return (a >> count) + (remainder > threshold ? 1 : 0);
}

// TFL2: two roundings. multiplier is 0 or in [2^30, 2^31), shift in [-31, 30], positive to the left. The left
// shift wraps: a packer that knows the range of its accumulators can tell that it does not.
static constexpr int32_t requantize_tfl2(int32_t a, int32_t multiplier, int32_t shift) {
  const int32_t left = shift > 0 ? shift : 0;
  const int32_t right = shift > 0 ? 0 : -shift;
  return rounding_shift_right(doubling_high_mul(wrap_shift_left(a, left), multiplier), right);
}

// TFL2 of an accumulator of 64 bits, which int16 activations have: the multiplier is rounded to 16 bits
// first, and one rounding, ties upwards, follows. Products are taken modulo 2^64. multiplier is not negative,
// shift in
// [-31, kMaxWideShift].
static constexpr int32_t kMaxWideShift = 7;
static constexpr int32_t requantize_tfl2_wide(int64_t a, int32_t multiplier, int32_t shift) {
  const int32_t reduced = multiplier < 0x7fff0000 ? (multiplier + (1 << 15)) >> 16 : 0x7fff;
  const int32_t right = 15 - shift;  // [8, 46]
  const uint64_t product =
      static_cast<uint64_t>(a) * static_cast<uint64_t>(reduced) + (uint64_t{1} << (right - 1));
  return static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(product) >> right));
}

// TFL1: one rounding, ties upwards: floor((a * multiplier + 2^(30 - shift)) / 2^(31 - shift)), of which the
// low 32 bits are kept (a positive shift can make it wider). Parameters as for TFL2.
static constexpr int32_t requantize_tfl1(int32_t a, int32_t multiplier, int32_t shift) {
  const int32_t right = 31 - shift;  // [1, 62]
  const int64_t half = int64_t{1} << (right - 1);
  return static_cast<int32_t>(static_cast<uint32_t>((int64_t{a} * multiplier + half) >> right));
}

// The end of every operator under F32E: clamp(round_half_even(real) + zero_point, lo, hi). real may be
// infinite but not NaN; lo - zero_point and hi - zero_point are within +-2^21 (those of 8 and 16 bit outputs
// do). The clamp comes before the rounding, so that every float converts: both ends are integers, and the
// order does not matter.
static inline int32_t quantize_f32e(float real, int32_t zero_point, int32_t lo, int32_t hi) {
  const float low = static_cast<float>(lo - zero_point);
  const float high = static_cast<float>(hi - zero_point);
  const float x = real < low ? low : real > high ? high : real;
  // Adding 1.5 * 2^23 leaves no fraction bits, so that the addition itself rounds half to even.
  const float magic = 12582912.0f;
  return static_cast<int32_t>((x + magic) - magic) + zero_point;
}

// F32E: float(a) rounded to nearest even, one float32 product. scale is finite and not negative.
static inline int32_t requantize_f32e(int32_t a, float scale, int32_t zero_point, int32_t lo, int32_t hi) {
  return quantize_f32e(static_cast<float>(a) * scale, zero_point, lo, hi);
}

// The 8-bit output of channel o for the accumulator a, under the contract of args, which is not kAcc32: those
// of convolutions and fully connected layers.
template <typename Args>
static inline int32_t requantize_channel(const Args& args, int32_t a, uint32_t o) {
  const int32_t zero_point = args.output_zero_point, lo = args.clamp_min, hi = args.clamp_max;
  switch (args.contract) {
    case Contract::kF32e:
      return requantize_f32e(a, args.scale[o], zero_point, lo, hi);
    case Contract::kTfl1:
      return add_clamp(requantize_tfl1(a, args.multiplier[o], args.shift[o]), zero_point, lo, hi);
    case Contract::kTfl2:
    case Contract::kAcc32:
      break;
  }
  return add_clamp(requantize_tfl2(a, args.multiplier[o], args.shift[o]), zero_point, lo, hi);
}

// The int16 output for an accumulator of 64 bits, under TFL2.
template <typename Args>
static inline int32_t requantize_channel(const Args& args, int64_t a, uint32_t o) {
  return add_clamp(requantize_tfl2_wide(a, args.multiplier[o], args.shift[o]), args.output_zero_point,
                   args.clamp_min, args.clamp_max);
}

// The bias of output channel o, of as many bits as the accumulator.
template <typename Sum, typename Args>
static inline Sum channel_bias(const Args& args, uint32_t o) {
  return static_cast<const Sum*>(static_cast<const void*>(args.bias))[o];
}

// A positive real multiplier as fixed point: real = multiplier * 2^(shift - 31). Same bits on host and
// device: no libm.

struct QuantizedMultiplier {
  int32_t multiplier;  // 0 or in [2^30, 2^31)
  int32_t shift;       // >= -31, positive to the left; requantize_tfl2 takes up to 30
};

// 31 bits, rounded half up; what would be 2^31 becomes 2^30 with a shift one higher; a shift below -31 gives
// {0, 0}. real is finite and not negative. From 2^30 on the shift is above 30, which no kernel accepts: the
// caller refuses it. The scales' product that makes `real` is formed differently for each source:
// docs/numerics.md, "Scales".
static inline QuantizedMultiplier quantize_multiplier(double real) {
  static_assert(sizeof(double) == sizeof(uint64_t), "double is IEEE 754 binary64");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &real, sizeof(bits));
  const uint32_t biased_exponent = static_cast<uint32_t>(bits >> 52) & 0x7ff;
  if (biased_exponent == 0) return {0, 0};  // zero and what is far below 2^-32
  // real = significand * 2^(biased_exponent - 1075), significand in [2^52, 2^53); as a fraction in [0.5, 1)
  // times 2^shift:
  const uint64_t significand = (bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  int32_t shift = static_cast<int32_t>(biased_exponent) - 1022;
  uint64_t rounded = (significand + (uint64_t{1} << 21)) >> 22;
  if (rounded == uint64_t{1} << 31) {
    rounded >>= 1;
    ++shift;
  }
  if (shift < -31) return {0, 0};
  return {static_cast<int32_t>(rounded), shift};
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_REQUANTIZE_H_
