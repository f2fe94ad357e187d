// TFL2, TFL1 and F32E on 4 accumulators at a time, equal to requantize_tfl2, requantize_tfl1 and
// requantize_f32e in every bit. F32E relies on the floating point environment that programs start with:
// rounding to nearest even, subnormals kept. Float forms want a fused multiply-add, which SSE4.1 lacks.
// Internal linkage only.
#ifndef QPLAN_KERNELS_NUMERIC_REQUANTIZE_SSE41_INL_
#define QPLAN_KERNELS_NUMERIC_REQUANTIZE_SSE41_INL_

#include <immintrin.h>
#include <stdint.h>

#include "kernels/numeric/low_bytes.inl"
#include "kernels/numeric/requantize.h"

namespace qplan {
namespace {

inline __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

// The low 32 bits of floor((x * multiplier + addend - lowered) / 2^count), for each of 4 channels:
//
//   TFL1  x = a; count = 31 - shift, addend = 2^(count - 1), lowered = 0
//   TFL2  x = a * 2^max(shift, 0), modulo 2^32; count = 31 + right with right = max(-shift, 0);
//         addend = 2^30 and lowered = 0 for right = 0, otherwise
//         addend = 2^30 + 2^(count - 1) and lowered = 2^31 where x is negative.
//
// That is TFL2 in one step: its second rounding, floor((v + 2^(right - 1) - (v < 0)) / 2^right), is taken of
// the floor v = floor((x * multiplier + 2^30) / 2^31), and floors of quotients nest. The sign of x may stand
// for that of v, since they differ only where v and the result are 0.
//
// There is no arithmetic shift in 64 bits: 2^63 is added before a logical one, 2^(63 - count) taken away
// after it. Shifts have one count for a whole register, hence a register for each channel.
struct Requant128 {
  __m128i multiplier;
  __m128i left;         // 2^max(shift, 0), or 1
  __m128i even_addend;  // with 2^63; of channels 0 and 2
  __m128i odd_addend;   // of channels 1 and 3
  __m128i lowers;       // INT32_MIN where negative x are lowered
  __m128i offset;       // 2^(63 - count) modulo 2^32
  __m128i count[4];
  bool shifts_left;
};

// multiplier and shift have 4 entries; contract is kTfl2 or kTfl1.
inline Requant128 requant128(const int32_t* multiplier, const int32_t* shift, Contract contract) {
  Requant128 r;
  int32_t left[4], lowers[4], offset[4];
  uint64_t addend[4];
  r.shifts_left = false;
  for (int i = 0; i < 4; ++i) {
    const bool twice = contract == Contract::kTfl2;  // rounds twice
    const int32_t count = twice && shift[i] > 0 ? 31 : 31 - shift[i];
    const bool lower = twice && count > 31;
    left[i] = twice && shift[i] > 0 ? int32_t{1} << shift[i] : 1;
    r.shifts_left |= left[i] != 1;
    addend[i] = (uint64_t{1} << 63) + (uint64_t{1} << (count - 1)) + (lower ? uint64_t{1} << 30 : 0);
    lowers[i] = lower ? INT32_MIN : 0;
    offset[i] = static_cast<int32_t>(static_cast<uint32_t>(uint64_t{1} << (63 - count)));
    r.count[i] = _mm_cvtsi32_si128(count);
  }
  r.multiplier = load128(multiplier);
  r.left = load128(left);
  r.even_addend = _mm_set_epi64x(static_cast<int64_t>(addend[2]), static_cast<int64_t>(addend[0]));
  r.odd_addend = _mm_set_epi64x(static_cast<int64_t>(addend[3]), static_cast<int64_t>(addend[1]));
  r.lowers = load128(lowers);
  r.offset = load128(offset);
  return r;
}

inline Requant128 set1_requant128(int32_t multiplier, int32_t shift, Contract contract) {
  const int32_t multipliers[4] = {multiplier, multiplier, multiplier, multiplier};
  const int32_t shifts[4] = {shift, shift, shift, shift};
  return requant128(multipliers, shifts, contract);
}

inline __m128i requantize128(__m128i a, const Requant128& r) {
  const __m128i x = r.shifts_left ? _mm_mullo_epi32(a, r.left) : a;
  const __m128i lowered = _mm_and_si128(x, r.lowers);
  const __m128i even = _mm_sub_epi64(_mm_add_epi64(_mm_mul_epi32(x, r.multiplier), r.even_addend),
                                     _mm_blend_epi16(lowered, _mm_setzero_si128(), 0xCC));
  const __m128i odd = _mm_sub_epi64(
      _mm_add_epi64(_mm_mul_epi32(_mm_srli_epi64(x, 32), _mm_srli_epi64(r.multiplier, 32)), r.odd_addend),
      _mm_srli_epi64(lowered, 32));
  const __m128i even_quotient =
      _mm_blend_epi16(_mm_srl_epi64(even, r.count[0]), _mm_srl_epi64(even, r.count[2]), 0xF0);
  const __m128i odd_quotient =
      _mm_blend_epi16(_mm_srl_epi64(odd, r.count[1]), _mm_srl_epi64(odd, r.count[3]), 0xF0);
  return _mm_sub_epi32(_mm_blend_epi16(even_quotient, _mm_slli_epi64(odd_quotient, 32), 0xCC), r.offset);
}

// Zero point and clamp of an 8-bit output. The clamp comes first, less the zero point: that sum cannot wrap.
struct Output128 {
  __m128i zero_point;
  __m128i clamp_min;
  __m128i clamp_max;
};

inline Output128 output128(int32_t zero_point, int32_t clamp_min, int32_t clamp_max) {
  return {_mm_set1_epi32(zero_point), _mm_set1_epi32(clamp_min - zero_point),
          _mm_set1_epi32(clamp_max - zero_point)};
}

// The low byte of each lane, in the low 4 bytes.
inline __m128i low_bytes128(__m128i v) {
  return _mm_shuffle_epi8(v, _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
}

// The bytes after zero point and clamp.
inline __m128i finish128(__m128i v, const Output128& out) {
  const __m128i clamped = _mm_min_epi32(_mm_max_epi32(v, out.clamp_min), out.clamp_max);
  return low_bytes128(_mm_add_epi32(clamped, out.zero_point));
}

// The same for F32E, where the clamp is one of reals.
struct RealOutput128 {
  __m128i zero_point;
  __m128 clamp_min;
  __m128 clamp_max;
};

inline RealOutput128 real_output128(int32_t zero_point, int32_t clamp_min, int32_t clamp_max) {
  return {_mm_set1_epi32(zero_point), _mm_set1_ps(static_cast<float>(clamp_min - zero_point)),
          _mm_set1_ps(static_cast<float>(clamp_max - zero_point))};
}

// quantize_f32e.
inline __m128i finish_real128(__m128 real, const RealOutput128& out) {
  const __m128 clamped = _mm_min_ps(_mm_max_ps(real, out.clamp_min), out.clamp_max);
  return low_bytes128(_mm_add_epi32(_mm_cvtps_epi32(clamped), out.zero_point));
}

// ---- layers of weights ----
// An epilogue makes outputs without zero point and clamp of the accumulators of channels channel .. channel +
// 3; ends of int32 stand for what is beyond. Args has what its kind looks at, rounded up to whole vectors.

// F32E. What is below int32 converts to its minimum; what is above would, too, and is held back.
struct F32eEpilogue128 {
  __m128 scale;
  template <typename Args>
  F32eEpilogue128(const Args& args, uint32_t channel) : scale(_mm_loadu_ps(args.scale + channel)) {}
  __m128i outputs(__m128i sum) const {
    const __m128 real = _mm_mul_ps(_mm_cvtepi32_ps(sum), scale);
    return _mm_cvtps_epi32(_mm_min_ps(real, _mm_set1_ps(65536.0f)));
  }
};

// TFL2 and TFL1.
struct IntegerEpilogue128 {
  Requant128 requant;
  template <typename Args>
  IntegerEpilogue128(const Args& args, uint32_t channel)
      : requant(requant128(args.multiplier + channel, args.shift + channel, args.contract)) {}
  __m128i outputs(__m128i sum) const { return requantize128(sum, requant); }
};

// Zero point and clamp of 16 outputs at once, as uint8; what may be negative is int8, lifted by 128 on the
// way.
struct Bytes128 {
  __m128i zero_point;  // int16
  __m128i clamp_min, clamp_max, flip;
  template <typename Args>
  explicit Bytes128(const Args& args) {
    const bool is_signed = args.output_zero_point < 0 || args.clamp_min < 0;
    const int32_t lift = is_signed ? 128 : 0;
    zero_point = _mm_set1_epi16(static_cast<int16_t>(args.output_zero_point + lift));
    clamp_min = _mm_set1_epi8(static_cast<char>(args.clamp_min + lift));
    clamp_max = _mm_set1_epi8(static_cast<char>(args.clamp_max + lift));
    flip = _mm_set1_epi8(static_cast<char>(lift));
  }
  // The bytes of a, then those of b, c, d. Everything on the way saturates.
  __m128i pack(__m128i a, __m128i b, __m128i c, __m128i d) const {
    const __m128i ab = _mm_adds_epi16(_mm_packs_epi32(a, b), zero_point);
    const __m128i cd = _mm_adds_epi16(_mm_packs_epi32(c, d), zero_point);
    const __m128i bytes = _mm_packus_epi16(ab, cd);
    return _mm_xor_si128(_mm_min_epu8(_mm_max_epu8(bytes, clamp_min), clamp_max), flip);
  }
};

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_REQUANTIZE_SSE41_INL_
