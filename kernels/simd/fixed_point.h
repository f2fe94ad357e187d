// fixed_exp_negative<5> on vectors, equal to that of kernels/numeric/fixed_point.h in every bit. Internal
// linkage only.
#ifndef QPLAN_KERNELS_SIMD_FIXED_POINT_H_
#define QPLAN_KERNELS_SIMD_FIXED_POINT_H_

#include <stdint.h>

#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// v / 2^kCount rounded to nearest, ties away from zero, for |v| < 2^31 - 2^kCount.
template <int kCount>
inline VecI32 rounding_shift(VecI32 v) {
  const auto half = set_ints(1 << (kCount - 1));
  return shift_right<kCount>(add(add(v, half), shift_right<31>(v)));
}

inline VecI32 exp_quarter(VecI32 a) {
  const auto minus_eighth = set_ints(1895147668);  // exp(-1/8)
  const auto x = add(a, set_ints(1 << 28));
  const auto x2 = doubling_high_mul(x, x);
  const auto x3 = doubling_high_mul(x2, x);
  const auto x4 = doubling_high_mul(x2, x2);
  const auto cubic = add(rounding_shift<2>(x4), x3);
  const auto third = doubling_high_mul(cubic, set_ints(715827883));
  const auto tail = rounding_shift<1>(add(third, x2));
  return add(minus_eighth, doubling_high_mul(add(x, tail), minus_eighth));
}

inline VecI32 exp_negative(VecI32 a) {
  constexpr int kFractionBits = 26;
  constexpr int32_t kQuarter = int32_t{1} << (kFractionBits - 2);
  const auto rest = sub(bit_and(a, set_ints(kQuarter - 1)), set_ints(kQuarter));
  const auto quarters = sub(rest, a);
  // rest is at least -2^24: nothing saturates.
  auto result = exp_quarter(shift_left<5>(rest));
  const auto factor = [&](int32_t value) { return doubling_high_mul(result, set_ints(value)); };
  result = select_bit<kFractionBits - 2>(quarters, factor(1672461947), result);
  result = select_bit<kFractionBits - 1>(quarters, factor(1302514674), result);
  result = select_bit<kFractionBits>(quarters, factor(790015084), result);
  result = select_bit<kFractionBits + 1>(quarters, factor(290630308), result);
  result = select_bit<kFractionBits + 2>(quarters, factor(39332535), result);
  result = select_bit<kFractionBits + 3>(quarters, factor(720401), result);
  result = select_bit<kFractionBits + 4>(quarters, factor(242), result);
  return select_zero(a, set_ints(INT32_MAX), result);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_FIXED_POINT_H_
