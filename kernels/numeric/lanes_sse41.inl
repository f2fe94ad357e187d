// The vector of 4 int32 or float32 and its arithmetic, by the names that kernels use which are the same for
// every instruction set. Internal linkage only.
#ifndef QPLAN_KERNELS_NUMERIC_LANES_SSE41_INL_
#define QPLAN_KERNELS_NUMERIC_LANES_SSE41_INL_

#include <immintrin.h>
#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize_sse41.inl"

namespace qplan {
namespace {

constexpr uint32_t kLanes = 4;
using Ints = __m128i;
using Reals = __m128;
using Requant = Requant128;
using Output = Output128;
using RealOutput = RealOutput128;
using OutputBytes = Bytes128;

inline Ints set_ints(int32_t v) { return _mm_set1_epi32(v); }
inline Reals set_reals(float v) { return _mm_set1_ps(v); }

// Integers wrap.
inline Ints add(Ints a, Ints b) { return _mm_add_epi32(a, b); }
inline Ints sub(Ints a, Ints b) { return _mm_sub_epi32(a, b); }
inline Ints mul(Ints a, Ints b) { return _mm_mullo_epi32(a, b); }
inline Ints max(Ints a, Ints b) { return _mm_max_epi32(a, b); }
inline Ints shift_left(Ints v, int32_t count) { return _mm_sll_epi32(v, _mm_cvtsi32_si128(count)); }
inline Reals add(Reals a, Reals b) { return _mm_add_ps(a, b); }
inline Reals sub(Reals a, Reals b) { return _mm_sub_ps(a, b); }
inline Reals mul(Reals a, Reals b) { return _mm_mul_ps(a, b); }
inline Reals div(Reals a, Reals b) { return _mm_div_ps(a, b); }
// There is none: forms that need it are passed over.
constexpr bool kHasFma = false;
inline Reals fma(Reals a, Reals, Reals) { return a; }

inline Reals to_reals(Ints v) { return _mm_cvtepi32_ps(v); }
inline Reals max(Reals a, Reals b) { return _mm_max_ps(a, b); }
inline Reals min(Reals a, Reals b) { return _mm_min_ps(a, b); }
// Half to even.
inline Ints round(Reals v) { return _mm_cvtps_epi32(v); }
inline Ints truncate(Reals v) { return _mm_cvttps_epi32(v); }
inline Ints round_half_even(Reals v) { return _mm_cvtps_epi32(v); }
// 0 where v is no number.
inline Reals zero_nans(Reals v) { return _mm_and_ps(v, _mm_cmpord_ps(v, v)); }
// Half away from zero, for |v| < 2^23: the largest float below 1/2, with the sign of v, is added. What was
// below a half stays below 1 then, and a half becomes 1 as the sum is rounded.
inline Ints round_away(Reals v) {
  const Reals sign = _mm_and_ps(v, _mm_set1_ps(-0.0f));
  return _mm_cvttps_epi32(_mm_add_ps(v, _mm_or_ps(sign, _mm_set1_ps(0.49999997f))));
}
// yes where v > 0, elsewhere no.
inline Ints if_positive(Ints v, Ints yes, Ints no) {
  return _mm_blendv_epi8(no, yes, _mm_cmpgt_epi32(v, _mm_setzero_si128()));
}

// TFL2.
inline Requant set_requant(int32_t multiplier, int32_t shift) {
  return set1_requant128(multiplier, shift, Contract::kTfl2);
}
inline Ints requantize(Ints v, const Requant& requant) { return requantize128(v, requant); }

// TFL1.
struct RequantOnce {
  Requant128 requant;
};
inline RequantOnce set_requant_once(int32_t multiplier, int32_t shift) {
  return {set1_requant128(multiplier, shift, Contract::kTfl1)};
}
inline Ints requantize(Ints v, const RequantOnce& r) { return requantize128(v, r.requant); }

// Float forms are passed over (kHasFma).
struct PlainForm {
  PlainForm(Reals, Reals) {}
  Ints outputs(Ints v) const { return v; }
};
using SignedForm = PlainForm;
struct FormRounding {
  explicit FormRounding(bool) {}
};

// Zero point, clamp and the low byte of each lane.
inline Output set_output(int32_t zero_point, int32_t clamp_min, int32_t clamp_max) {
  return output128(zero_point, clamp_min, clamp_max);
}
inline RealOutput set_real_output(int32_t zero_point, int32_t clamp_min, int32_t clamp_max) {
  return real_output128(zero_point, clamp_min, clamp_max);
}
inline __m128i finish(Ints v, const Output& output) { return finish128(v, output); }
inline __m128i finish(Reals v, const RealOutput& output) { return finish_real128(v, output); }

// The first count (1 .. kLanes) elements; nothing is read or written behind them.
inline __m128i load_bytes(const uint8_t* from, uint32_t count) {
  if (count != 4) return load_low_bytes(from, count);
  int32_t four;
  __builtin_memcpy(&four, from, 4);
  return _mm_cvtsi32_si128(four);
}
inline void store_bytes(uint8_t* to, __m128i bytes, uint32_t count) { store_low_bytes(to, bytes, count); }
inline Ints load_ints(const int32_t* from, uint32_t count) {
  if (count == 4) return load128(from);
  int32_t some[4] = {from[0], count > 1 ? from[1] : 0, count > 2 ? from[2] : 0, 0};
  return load128(some);
}
inline Reals load_reals(const float* from, uint32_t count) {
  if (count == 4) return _mm_loadu_ps(from);
  return _mm_setr_ps(from[0], count > 1 ? from[1] : 0.0f, count > 2 ? from[2] : 0.0f, 0.0f);
}
inline void store_reals(float* to, Reals v, uint32_t count) {
  if (count == 4) return _mm_storeu_ps(to, v);
  float all[4];
  _mm_storeu_ps(all, v);
  for (uint32_t i = 0; i < count; ++i) to[i] = all[i];
}
inline Requant load_requant_of(Contract contract, const int32_t* multiplier, const int32_t* shift,
                               uint32_t count) {
  if (count == 4) return requant128(multiplier, shift, contract);
  int32_t multipliers[4], shifts[4];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(multipliers), load_ints(multiplier, count));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(shifts), load_ints(shift, count));
  return requant128(multipliers, shifts, contract);
}
inline Requant load_requant(const int32_t* multiplier, const int32_t* shift, uint32_t count) {
  return load_requant_of(Contract::kTfl2, multiplier, shift, count);
}
inline RequantOnce load_requant_once(const int32_t* multiplier, const int32_t* shift, uint32_t count) {
  return {load_requant_of(Contract::kTfl1, multiplier, shift, count)};
}
inline Ints widen(__m128i bytes, Dtype dtype) {
  return dtype == Dtype::kS8 ? _mm_cvtepi8_epi32(bytes) : _mm_cvtepu8_epi32(bytes);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_LANES_SSE41_INL_
