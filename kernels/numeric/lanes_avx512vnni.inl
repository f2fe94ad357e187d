// The vector of 16 int32 or float32 and its arithmetic, by the names that kernels use which are the same for
// every instruction set. Internal linkage only.
#ifndef QPLAN_KERNELS_NUMERIC_LANES_AVX512VNNI_INL_
#define QPLAN_KERNELS_NUMERIC_LANES_AVX512VNNI_INL_

#include <immintrin.h>
#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize_avx512vnni.inl"

namespace qplan {
namespace {

constexpr uint32_t kLanes = 16;
using Ints = __m512i;
using Reals = __m512;
using Requant = Requant512;
using Output = Output512;
using RealOutput = RealOutput512;
using OutputBytes = Bytes512;

inline Ints set_ints(int32_t v) { return _mm512_set1_epi32(v); }
inline Reals set_reals(float v) { return _mm512_set1_ps(v); }

// Integers wrap.
inline Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
inline Ints sub(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
inline Ints mul(Ints a, Ints b) { return _mm512_mullo_epi32(a, b); }
inline Ints max(Ints a, Ints b) { return _mm512_max_epi32(a, b); }
inline Ints shift_left(Ints v, int32_t count) { return _mm512_sll_epi32(v, _mm_cvtsi32_si128(count)); }
inline Reals add(Reals a, Reals b) { return _mm512_add_ps(a, b); }
inline Reals sub(Reals a, Reals b) { return _mm512_sub_ps(a, b); }
inline Reals mul(Reals a, Reals b) { return _mm512_mul_ps(a, b); }
inline Reals div(Reals a, Reals b) { return _mm512_div_ps(a, b); }
// a * b + c, rounded once.
constexpr bool kHasFma = true;
inline Reals fma(Reals a, Reals b, Reals c) { return _mm512_fmadd_ps(a, b, c); }

inline Reals to_reals(Ints v) { return _mm512_cvtepi32_ps(v); }
inline Reals max(Reals a, Reals b) { return _mm512_max_ps(a, b); }
inline Reals min(Reals a, Reals b) { return _mm512_min_ps(a, b); }
// Half to even.
inline Ints round(Reals v) { return _mm512_cvtps_epi32(v); }
inline Ints truncate(Reals v) { return _mm512_cvttps_epi32(v); }
inline Ints round_half_even(Reals v) { return _mm512_cvtps_epi32(v); }
// 0 where v is no number.
inline Reals zero_nans(Reals v) { return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), v); }
// Half away from zero, for |v| < 2^23: the largest float below 1/2, with the sign of v, is added. What was
// below a half stays below 1 then, and a half becomes 1 as the sum is rounded.
inline Ints round_away(Reals v) {
  const __m512i sign = _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(INT32_MIN));
  const __m512i half = _mm512_or_si512(sign, _mm512_castps_si512(_mm512_set1_ps(0.49999997f)));
  return _mm512_cvttps_epi32(_mm512_add_ps(v, _mm512_castsi512_ps(half)));
}
// yes where v > 0, elsewhere no.
inline Ints if_positive(Ints v, Ints yes, Ints no) {
  return _mm512_mask_mov_epi32(no, _mm512_cmpgt_epi32_mask(v, _mm512_setzero_si512()), yes);
}

// TFL2.
inline Requant set_requant(int32_t multiplier, int32_t shift) { return set1_requant512(multiplier, shift); }
inline Ints requantize(Ints v, const Requant& requant) { return requantize_tfl2_512(v, requant); }

// TFL1.
struct RequantOnce {
  Ints multiplier, shift;
};
inline RequantOnce set_requant_once(int32_t multiplier, int32_t shift) {
  return {set_ints(multiplier), set_ints(shift)};
}
inline Ints requantize(Ints v, const RequantOnce& r) { return requantize_tfl1_512(v, r.multiplier, r.shift); }

// Float forms (kHasFma), while a FormRounding lives around a function that is not inlined.
using PlainForm = PlainEpilogue512;
using SignedForm = SignedEpilogue512;
struct FormRounding {  // instructions say it themselves
  explicit FormRounding(bool) {}
};

// Zero point, clamp and the low byte of each lane.
inline Output set_output(int32_t zero_point, int32_t clamp_min, int32_t clamp_max) {
  return output512(zero_point, clamp_min, clamp_max);
}
inline RealOutput set_real_output(int32_t zero_point, int32_t clamp_min, int32_t clamp_max) {
  return real_output512(zero_point, clamp_min, clamp_max);
}
inline __m128i finish(Ints v, const Output& output) { return finish512(v, output); }
inline __m128i finish(Reals v, const RealOutput& output) { return finish_real512(v, output); }

// The first count (1 .. kLanes) elements; nothing is read or written behind them.
inline __m128i load_bytes(const uint8_t* from, uint32_t count) {
  return _mm_maskz_loadu_epi8(mask16(count), from);
}
inline void store_bytes(uint8_t* to, __m128i bytes, uint32_t count) {
  _mm_mask_storeu_epi8(to, mask16(count), bytes);
}
inline Ints load_ints(const int32_t* from, uint32_t count) {
  return _mm512_maskz_loadu_epi32(mask16(count), from);
}
inline Reals load_reals(const float* from, uint32_t count) {
  return _mm512_maskz_loadu_ps(mask16(count), from);
}
inline void store_reals(float* to, Reals v, uint32_t count) { _mm512_mask_storeu_ps(to, mask16(count), v); }
inline Requant load_requant(const int32_t* multiplier, const int32_t* shift, uint32_t count) {
  return requant512(load_ints(multiplier, count), load_ints(shift, count));
}
inline RequantOnce load_requant_once(const int32_t* multiplier, const int32_t* shift, uint32_t count) {
  return {load_ints(multiplier, count), load_ints(shift, count)};
}
inline Ints widen(__m128i bytes, Dtype dtype) {
  return dtype == Dtype::kS8 ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_LANES_AVX512VNNI_INL_
