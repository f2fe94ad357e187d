// Exponential and reciprocal in 32-bit fixed point, bit for bit those of gemmlowp (fixedpoint.h), on which
// TFLite's reference softmax and logistic stand. "Qm.n" has m integer bits beside the sign and n = 31 - m
// fraction bits. A product of Qa and Qb is doubling_high_mul and has a + b integer bits. Internal linkage
// only: ISA files include this.
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

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_FIXED_POINT_H_
