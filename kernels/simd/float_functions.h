// The functions of kernels/numeric/float_functions.h lane by lane: the same operations in the same order,
// hence the same bits. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_FLOAT_FUNCTIONS_H_
#define QPLAN_KERNELS_SIMD_FLOAT_FUNCTIONS_H_

#include <stdint.h>

#include "kernels/numeric/float_functions.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

inline VecF32 clamp(VecF32 v, VecF32 least, VecF32 most) {
  return if_less(v, least, least, if_less(most, v, most, v));
}
inline VecF32 absolute(VecF32 v) { return as_reals(bit_and(as_ints(v), set_ints(INT32_MAX))); }
inline VecF32 negative(VecF32 v) { return as_reals(bit_xor(as_ints(v), set_ints(INT32_MIN))); }

// 2^n for n in [-126, 127].
inline VecF32 powers_of_two(VecI32 n) { return as_reals(shift_left<23>(add(n, set_ints(127)))); }

inline VecF32 exp_lanes(VecF32 x) {
  const VecF32 within = clamp(x, set_reals(kExpMin), set_reals(kExpMax));
  const VecF32 magic = set_reals(kRoundMagic);
  const VecF32 shifted = add(mul(within, set_reals(kFloatLog2E)), magic);
  const VecI32 n = sub(as_ints(shifted), as_ints(magic));
  const VecF32 whole = sub(shifted, magic);
  const VecF32 high = sub(within, mul(whole, set_reals(kFloatLn2High)));
  const VecF32 r = sub(high, mul(whole, set_reals(kFloatLn2Low)));
  VecF32 sum = set_reals(kExpTerms[0]);
  for (uint32_t i = 1; i < 6; ++i) sum = add(mul(sum, r), set_reals(kExpTerms[i]));
  const VecF32 mantissa = add(add(mul(sum, mul(r, r)), r), set_reals(1.0f));
  const VecI32 half = shift_right<1>(n);
  return mul(mul(mantissa, powers_of_two(half)), powers_of_two(sub(n, half)));
}

inline VecF32 logistic_lanes(VecF32 x) {
  const VecF32 e = exp_lanes(negative(absolute(x)));
  const VecF32 one = set_reals(1.0f);
  return div(if_less(x, set_reals(0.0f), e, one), add(one, e));
}

inline VecF32 tanh_lanes(VecF32 x) {
  const VecF32 size = absolute(x), square = mul(x, x), one = set_reals(1.0f);
  VecF32 sum = set_reals(kTanhTerms[0]);
  for (uint32_t i = 1; i < 5; ++i) sum = add(mul(sum, square), set_reals(kTanhTerms[i]));
  const VecF32 small = add(mul(mul(sum, square), x), x);
  const VecF32 positive = sub(one, div(set_reals(2.0f), add(exp_lanes(add(size, size)), one)));
  const VecF32 large = if_less(x, set_reals(0.0f), negative(positive), positive);
  return if_less(size, set_reals(kTanhSmall), small, large);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_FLOAT_FUNCTIONS_H_
