// fixed_exp_negative<5> on vectors, equal to that of fixed_point.h in every bit. Internal linkage only.
#ifndef QPLAN_KERNELS_NUMERIC_FIXED_POINT_LANES_INL_
#define QPLAN_KERNELS_NUMERIC_FIXED_POINT_LANES_INL_

#include <stdint.h>

namespace qplan {
namespace {

// v / 2^kCount rounded to nearest, ties away from zero, for |v| < 2^31 - 2^kCount.
template <typename Lanes, int kCount>
inline typename Lanes::Vector rounding_shift_lanes(typename Lanes::Vector v) {
  const auto half = Lanes::set1(1 << (kCount - 1));
  return Lanes::template shift_right<kCount>(
      Lanes::add(Lanes::add(v, half), Lanes::template shift_right<31>(v)));
}

template <typename Lanes>
inline typename Lanes::Vector exp_quarter_lanes(typename Lanes::Vector a) {
  const auto minus_eighth = Lanes::set1(1895147668);  // exp(-1/8)
  const auto x = Lanes::add(a, Lanes::set1(1 << 28));
  const auto x2 = Lanes::doubling_high_mul(x, x);
  const auto x3 = Lanes::doubling_high_mul(x2, x);
  const auto x4 = Lanes::doubling_high_mul(x2, x2);
  const auto cubic = Lanes::add(rounding_shift_lanes<Lanes, 2>(x4), x3);
  const auto third = Lanes::doubling_high_mul(cubic, Lanes::set1(715827883));
  const auto tail = rounding_shift_lanes<Lanes, 1>(Lanes::add(third, x2));
  return Lanes::add(minus_eighth, Lanes::doubling_high_mul(Lanes::add(x, tail), minus_eighth));
}

// Lanes: Vector, int32 lanes; set1, add, sub, bit_and, shift_left<n>, shift_right<n> (with the sign),
// doubling_high_mul; select_bit<n>(bits, yes, no); select_zero(v, yes, no).
template <typename Lanes>
inline typename Lanes::Vector exp_negative_lanes(typename Lanes::Vector a) {
  constexpr int kFractionBits = 26;
  constexpr int32_t kQuarter = int32_t{1} << (kFractionBits - 2);
  const auto rest = Lanes::sub(Lanes::bit_and(a, Lanes::set1(kQuarter - 1)), Lanes::set1(kQuarter));
  const auto quarters = Lanes::sub(rest, a);
  // rest is at least -2^24: nothing saturates.
  auto result = exp_quarter_lanes<Lanes>(Lanes::template shift_left<5>(rest));
  const auto factor = [&](int32_t value) { return Lanes::doubling_high_mul(result, Lanes::set1(value)); };
  result = Lanes::template select_bit<kFractionBits - 2>(quarters, factor(1672461947), result);
  result = Lanes::template select_bit<kFractionBits - 1>(quarters, factor(1302514674), result);
  result = Lanes::template select_bit<kFractionBits>(quarters, factor(790015084), result);
  result = Lanes::template select_bit<kFractionBits + 1>(quarters, factor(290630308), result);
  result = Lanes::template select_bit<kFractionBits + 2>(quarters, factor(39332535), result);
  result = Lanes::template select_bit<kFractionBits + 3>(quarters, factor(720401), result);
  result = Lanes::template select_bit<kFractionBits + 4>(quarters, factor(242), result);
  return Lanes::select_zero(a, Lanes::set1(INT32_MAX), result);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_FIXED_POINT_LANES_INL_
