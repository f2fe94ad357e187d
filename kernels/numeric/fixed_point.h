// Exponential, reciprocal and logarithm in 32-bit fixed point, bit for bit those of gemmlowp (fixedpoint.h),
// on which TFLite's reference softmax and logistic stand. Internal linkage only: ISA files include this.
//
//   Qm.n       a number with m integer bits beside the sign and n = 31 - m fraction bits
//   Qa * Qb    doubling_high_mul(Qa, Qb), which has a + b integer bits
#ifndef QPLAN_KERNELS_NUMERIC_FIXED_POINT_H_
#define QPLAN_KERNELS_NUMERIC_FIXED_POINT_H_

#include <stdint.h>

#include "kernels/numeric/requantize.h"

namespace qplan {

// a * 2^count, saturated; count in [1, 30].
static constexpr int32_t saturating_shift_left(int32_t a, int32_t count) {
  const int32_t limit = static_cast<int32_t>((uint32_t{1} << (31 - count)) - 1);
  return a > limit ? INT32_MAX : a < -limit ? INT32_MIN : wrap_shift_left(a, count);
}

// exp(a) in Q0.31 for a in [-1/4, 0) in Q0.31: the Taylor polynomial of degree 4 around -1/8, in x = a + 1/8.
static constexpr int32_t fixed_exp_quarter(int32_t a) {
  constexpr int32_t kExpMinusEighth = 1895147668;
  constexpr int32_t kThird = 715827883;
  const int32_t x = a + (int32_t{1} << 28);
  const int32_t x2 = doubling_high_mul(x, x);
  const int32_t x3 = doubling_high_mul(x2, x);
  const int32_t x4 = doubling_high_mul(x2, x2);
  // x^2/2 + x^3/6 + x^4/24
  const int32_t tail =
      rounding_shift_right(doubling_high_mul(rounding_shift_right(x4, 2) + x3, kThird) + x2, 1);
  return kExpMinusEighth + doubling_high_mul(x + tail, kExpMinusEighth);
}

// exp(a) in Q0.31 for a <= 0 with kIntegerBits <= 5; exp(0) is 2^31 - 1. a is split into a multiple of -1/4,
// whose binary digits select factors exp(-2^k), and a rest in [-1/4, 0).
template <int kIntegerBits>
static constexpr int32_t fixed_exp_negative(int32_t a) {
  static_assert(kIntegerBits >= 1 && kIntegerBits <= 5, "more would need a clamp at -32");
  constexpr int kFractionBits = 31 - kIntegerBits;
  constexpr int32_t kQuarter = int32_t{1} << (kFractionBits - 2);
  // exp(-2^k) in Q0.31, from k = -2.
  constexpr int32_t kFactors[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
  if (a == 0) return INT32_MAX;
  const int32_t rest = (a & (kQuarter - 1)) - kQuarter;
  const int32_t quarters = wrap_sub(rest, a);
  int32_t result = fixed_exp_quarter(saturating_shift_left(rest, kIntegerBits));
  for (int k = -2; k < kIntegerBits; ++k) {
    if ((static_cast<uint32_t>(quarters) >> (kFractionBits + k) & 1) != 0) {
      result = doubling_high_mul(result, kFactors[k + 2]);
    }
  }
  return result;
}

// 1 / (1 + a) in Q0.31 for a in [0, 1) in Q0.31: Newton's iteration for the reciprocal of (1 + a) / 2.
static constexpr int32_t fixed_reciprocal_one_plus(int32_t a) {
  constexpr int32_t k48Over17 = 1515870810;        // Q2.29
  constexpr int32_t kMinus32Over17 = -1010580540;  // Q2.29
  constexpr int32_t kOne = int32_t{1} << 29;       // Q2.29
  // (a + 1) / 2 with 1 as 2^31 - 1, rounded half up: it is not negative.
  const int32_t half = static_cast<int32_t>((int64_t{a} + INT32_MAX + 1) >> 1);
  int32_t x = k48Over17 + doubling_high_mul(half, kMinus32Over17);
  for (int i = 0; i < 3; ++i) {
    const int32_t rest = kOne - doubling_high_mul(half, x);
    // Q2 times Q2 is Q4, hence the shift.
    x += saturating_shift_left(doubling_high_mul(x, rest), 2);
  }
  // x is Q2.29 and approximates 2 / (1 + a): half of it in Q0.31 is one bit to the left.
  return saturating_shift_left(x, 1);
}

// log(a) in Q5.26 for a >= 1 in Q12.19, which TFLite adds to gemmlowp's functions. a is r times a power of 2
// or of 2 times the root of 2, whichever puts r in [sqrt(1/2), 1); log(r) is a rational function around the
// fourth root of 1/2.
static constexpr int32_t fixed_log(int32_t a) {
  constexpr int32_t kLog2 = 1488522236, kRootOfHalf = 1518500250, kFourthRootOfHalf = 1805811301;  // Q0.31
  // 11/240, 1/20 and 1/4 times the fourth root of 2, and 2 times that of 1/2 less that of 2.
  constexpr int32_t kAlphaN = 117049297, kAlphaD = 127690142, kAlphaF = 638450708, kAlphaI = 1057819769;
  constexpr int32_t kIntegerBits = 12;            // of a
  constexpr int32_t kQuarter = int32_t{1} << 23;  // Q6.25, in which the parts are added
  const auto shifted = [](int32_t x, int32_t count) {
    return count == 0 ? x : saturating_shift_left(x, count);
  };
  const int32_t zeros = __builtin_clz(static_cast<uint32_t>(a));
  const int32_t zeros_by_root = __builtin_clz(static_cast<uint32_t>(doubling_high_mul(a, kRootOfHalf))) - 1;
  const int32_t r1 = shifted(doubling_high_mul(shifted(a, zeros - 1), kRootOfHalf), 1);
  const int32_t r2 = shifted(a, zeros_by_root);
  const int32_t r = r1 < r2 ? r1 : r2;
  const int32_t power1 = (kIntegerBits - zeros) * (1 << 25) + kQuarter;
  const int32_t power2 = (kIntegerBits - zeros_by_root) * (1 << 25) - kQuarter;
  const int32_t power = power1 > power2 ? power1 : power2;
  const int32_t half = static_cast<int32_t>((int64_t{r} + kFourthRootOfHalf + 1) >> 1);
  const int32_t q = 2 * (r - kFourthRootOfHalf);  // within +-0.32
  const int32_t q2 = doubling_high_mul(q, q);
  const int32_t numerator = doubling_high_mul(q, r) + doubling_high_mul(doubling_high_mul(q, q2), kAlphaN);
  const int32_t denominator = doubling_high_mul(half, kAlphaI + q + doubling_high_mul(kAlphaD, q2)) +
                              doubling_high_mul(kAlphaF, q);                   // less 1; in (0, 1)
  const int32_t log_r = doubling_high_mul(rounding_shift_right(numerator, 6),  // Q6.25
                                          fixed_reciprocal_one_plus(denominator));
  return saturating_shift_left(doubling_high_mul(power, kLog2) + log_r, 1);
}

// 1 / sqrt(value) = multiplier * 2^(shift - 31) for value >= 0, as requantize_tfl2 takes it, where 0 counts
// as 1: TFLite's, by Newton's iteration in Q3.28 from 1. shift is in [-12, 0].
struct InverseSqrt {
  int32_t multiplier;
  int32_t shift;
};
static constexpr InverseSqrt fixed_inverse_sqrt(int32_t value) {
  if (value <= 1) return {INT32_MAX, 0};
  int32_t right = 11;
  while (value >= 1 << 29) {
    value /= 4;
    ++right;
  }
  // To [2^27, 2^29), by an even number of bits.
  while (value < 1 << 27) {
    value *= 4;
    --right;
  }
  constexpr int32_t kOneAndHalf = (1 << 28) + (1 << 27), kHalfSqrt2 = 1518500250;  // Q3.28, Q0.31
  const int32_t half = rounding_shift_right(value >> 1, 1);
  int32_t x = 1 << 28;
  for (int i = 0; i < 5; ++i) {
    const int32_t cube = saturating_shift_left(doubling_high_mul(doubling_high_mul(x, x), x), 6);
    x = saturating_shift_left(wrap_sub(doubling_high_mul(kOneAndHalf, x), doubling_high_mul(half, cube)), 3);
  }
  x = doubling_high_mul(x, kHalfSqrt2);
  if (right >= 0) return {x, -right};
  return {wrap_shift_left(x, -right), 0};
}

// ---- 16 bits: gemmlowp's functions on int16, where Qm.n has n = 15 - m ----

static constexpr int32_t wrap_s16(int32_t a) { return static_cast<int16_t>(static_cast<uint16_t>(a)); }
static constexpr int32_t saturate_s16(int32_t a) {
  return a < INT16_MIN ? INT16_MIN : a > INT16_MAX ? INT16_MAX : a;
}

// a * b / 2^15 rounded to nearest, ties upwards.
static constexpr int32_t high_mul_q15(int32_t a, int32_t b) {
  return saturate_s16((a * b + (1 << 14)) >> 15);
}

// exp(a) in Q0.15 for a in [-1/4, 0) in Q0.15, as fixed_exp_quarter.
static constexpr int32_t exp_quarter_q15(int32_t a) {
  constexpr int32_t kExpMinusEighth = 28918;
  constexpr int32_t kThird = 10923;
  const int32_t x = a + (1 << 12);
  const int32_t x2 = high_mul_q15(x, x);
  const int32_t x3 = high_mul_q15(x2, x);
  const int32_t x4 = high_mul_q15(x2, x2);
  const int32_t tail = rounding_shift_right(high_mul_q15(rounding_shift_right(x4, 2) + x3, kThird) + x2, 1);
  return saturate_s16(kExpMinusEighth + high_mul_q15(kExpMinusEighth, x + tail));
}

// exp(a) in Q0.15 for a <= 0 with integer_bits in [1, 7]; exp(0) is 2^15 - 1.
static constexpr int32_t exp_negative_q15(int32_t a, int32_t integer_bits) {
  constexpr int32_t kFactors[] = {25520, 19875, 12055, 4435, 600, 11, 0};  // exp(-2^k) from k = -2
  const int32_t fraction_bits = 15 - integer_bits;
  const int32_t quarter = 1 << (fraction_bits - 2);
  if (a == 0) return INT16_MAX;
  // Less than -32 is 0.
  if (integer_bits > 5 && a < -(1 << (20 - integer_bits))) return 0;
  const int32_t rest = (a & (quarter - 1)) - quarter;
  const int32_t quarters = wrap_s16(rest - a);
  int32_t result = exp_quarter_q15(saturate_s16(rest * (1 << integer_bits)));
  for (int32_t k = -2; k < integer_bits && k <= 4; ++k) {
    if (((static_cast<uint32_t>(quarters) >> (fraction_bits + k)) & 1) != 0)
      result = high_mul_q15(result, kFactors[k + 2]);
  }
  return result;
}

// 2 / (1 + a) in Q2.13 for a in [0, 1) in Q0.15, as fixed_reciprocal_one_plus.
static constexpr int32_t reciprocal_one_plus_q13(int32_t a) {
  constexpr int32_t k48Over17 = 23130, kMinus32Over17 = -15420;  // Q2.13
  const int32_t half = (a + INT16_MAX + 1) >> 1;
  int32_t x = wrap_s16(k48Over17 + high_mul_q15(half, kMinus32Over17));
  for (int i = 0; i < 3; ++i) {
    const int32_t rest = (1 << 13) - high_mul_q15(half, x);
    x = wrap_s16(x + saturate_s16(high_mul_q15(x, rest) * 4));
  }
  return x;
}

// 1 / (1 + exp(-v)) in Q0.15, of an int16 v with so many integer bits.
static constexpr int32_t logistic_q15(int32_t v, int32_t integer_bits) {
  if (v == 0) return 1 << 14;
  const int32_t positive =
      saturate_s16(reciprocal_one_plus_q13(exp_negative_q15(v < 0 ? v : -v, integer_bits)) * 2);
  return v > 0 ? positive : INT16_MAX - positive;
}

// tanh(v) in Q0.15, of an int16 v with integer_bits in [0, 6].
static constexpr int32_t tanh_q15(int32_t v, int32_t integer_bits) {
  if (v == 0) return 0;
  // (1 - e) / (1 + e) with e = exp(-2 |v|): doubling |v| is reading it with one integer bit more.
  const int32_t e = exp_negative_q15(v < 0 ? v : -v, integer_bits + 1);
  const int32_t size = saturate_s16((reciprocal_one_plus_q13(e) - (1 << 13)) * 4);
  return v < 0 ? -size : size;
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_FIXED_POINT_H_
