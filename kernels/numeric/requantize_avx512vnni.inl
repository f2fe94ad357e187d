// TFL2, TFL1 and F32E on 16 accumulators at a time, equal to requantize_tfl2, requantize_tfl1 and
// requantize_f32e in every bit, and the float forms that stand for the first two. F32E relies on the floating
// point environment that programs start with: rounding to nearest even, subnormals kept. Internal linkage
// only.
#ifndef QPLAN_KERNELS_NUMERIC_REQUANTIZE_AVX512VNNI_INL_
#define QPLAN_KERNELS_NUMERIC_REQUANTIZE_AVX512VNNI_INL_

#include <immintrin.h>
#include <stdint.h>

#include "kernels/numeric/requantize.h"

namespace qplan {
namespace {

// Multipliers and shifts of 16 channels.
struct Requant512 {
  __m512i multiplier;
  __m512i left;
  __m512i right;
  __m512i mask;       // 2^right - 1
  __m512i threshold;  // mask >> 1
};

inline Requant512 requant512(__m512i multiplier, __m512i shift) {
  const __m512i zero = _mm512_setzero_si512();
  Requant512 r;
  r.multiplier = multiplier;
  r.left = _mm512_max_epi32(shift, zero);
  r.right = _mm512_max_epi32(_mm512_sub_epi32(zero, shift), zero);
  const __m512i one = _mm512_set1_epi32(1);
  r.mask = _mm512_sub_epi32(_mm512_sllv_epi32(one, r.right), one);
  r.threshold = _mm512_srli_epi32(r.mask, 1);
  return r;
}

inline Requant512 load_requant512(const int32_t* multiplier, const int32_t* shift) {
  return requant512(_mm512_loadu_si512(multiplier), _mm512_loadu_si512(shift));
}

inline Requant512 set1_requant512(int32_t multiplier, int32_t shift) {
  return requant512(_mm512_set1_epi32(multiplier), _mm512_set1_epi32(shift));
}

// floor((a * multiplier + 2^30) / 2^31): even and odd lanes in 64 bits each, of which bits 31..62 are the
// result.
inline __m512i doubling_high_mul512(__m512i a, __m512i multiplier) {
  const __m512i half = _mm512_set1_epi64(int64_t{1} << 30);
  const __m512i even = _mm512_add_epi64(_mm512_mul_epi32(a, multiplier), half);
  const __m512i odd =
      _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(multiplier, 32)), half);
  return _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 31), _mm512_slli_epi64(odd, 1));
}

// v / 2^right to nearest, ties away from zero.
inline __m512i rounding_shift_right512(__m512i v, const Requant512& r) {
  const __m512i remainder = _mm512_and_si512(v, r.mask);
  const __m512i threshold = _mm512_sub_epi32(r.threshold, _mm512_srai_epi32(v, 31));
  const __mmask16 up = _mm512_cmpgt_epi32_mask(remainder, threshold);
  const __m512i floor = _mm512_srav_epi32(v, r.right);
  return _mm512_mask_add_epi32(floor, up, floor, _mm512_set1_epi32(1));
}

inline __m512i requantize_tfl2_512(__m512i a, const Requant512& r) {
  return rounding_shift_right512(doubling_high_mul512(_mm512_sllv_epi32(a, r.left), r.multiplier), r);
}

// TFL1 on the multiplier and shift as they are: bits right .. right + 31 of a * multiplier + half, which are
// the low half of even lanes and shifted into the high half of odd ones.
inline __m512i requantize_tfl1_512(__m512i a, __m512i multiplier, __m512i shift) {
  const __m512i right = _mm512_sub_epi32(_mm512_set1_epi32(31), shift);
  const __m512i low_half = _mm512_set1_epi64(UINT32_MAX);
  const __m512i even_right = _mm512_and_si512(right, low_half), odd_right = _mm512_srli_epi64(right, 32);
  const __m512i one = _mm512_set1_epi64(1);
  const __m512i even_half = _mm512_srli_epi64(_mm512_sllv_epi64(one, even_right), 1);
  const __m512i odd_half = _mm512_srli_epi64(_mm512_sllv_epi64(one, odd_right), 1);
  const __m512i even = _mm512_add_epi64(_mm512_mul_epi32(a, multiplier), even_half);
  const __m512i odd = _mm512_add_epi64(
      _mm512_mul_epi32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(multiplier, 32)), odd_half);
  return _mm512_mask_blend_epi32(0xAAAA, _mm512_srav_epi64(even, even_right),
                                 _mm512_slli_epi64(_mm512_srav_epi64(odd, odd_right), 32));
}

// Zero point and clamp of an 8-bit output. The clamp comes first, less the zero point: that sum cannot wrap.
struct Output512 {
  __m512i zero_point;
  __m512i clamp_min;
  __m512i clamp_max;
};

inline Output512 output512(int32_t zero_point, int32_t clamp_min, int32_t clamp_max) {
  return {_mm512_set1_epi32(zero_point), _mm512_set1_epi32(clamp_min - zero_point),
          _mm512_set1_epi32(clamp_max - zero_point)};
}

// The low byte of each lane after zero point and clamp.
inline __m128i finish512(__m512i v, const Output512& out) {
  const __m512i clamped = _mm512_min_epi32(_mm512_max_epi32(v, out.clamp_min), out.clamp_max);
  return _mm512_cvtepi32_epi8(_mm512_add_epi32(clamped, out.zero_point));
}

// The same for F32E, where the clamp is one of reals.
struct RealOutput512 {
  __m512i zero_point;
  __m512 clamp_min;
  __m512 clamp_max;
};

inline RealOutput512 real_output512(int32_t zero_point, int32_t clamp_min, int32_t clamp_max) {
  return {_mm512_set1_epi32(zero_point), _mm512_set1_ps(static_cast<float>(clamp_min - zero_point)),
          _mm512_set1_ps(static_cast<float>(clamp_max - zero_point))};
}

// quantize_f32e.
inline __m128i finish_real512(__m512 real, const RealOutput512& out) {
  const __m512 clamped = _mm512_min_ps(_mm512_max_ps(real, out.clamp_min), out.clamp_max);
  return _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(clamped), out.zero_point));
}

// ---- layers of weights ----
// An epilogue makes outputs without zero point and clamp of the accumulators of channels channel .. channel +
// 15; ends of int32 stand for what is beyond. Args has what its kind looks at, rounded up to whole vectors.

// FloatForm::kPlain. Embedded rounding costs nothing.
struct PlainEpilogue512 {
  static constexpr bool kIsFloat = true;
  static constexpr int kTowardsZero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  __m512 scale, offset;
  template <typename Args>
  PlainEpilogue512(const Args& args, uint32_t channel)
      : scale(_mm512_loadu_ps(args.float_scale + channel)),
        offset(_mm512_loadu_ps(args.float_offset + channel)) {}
  PlainEpilogue512(__m512 scale_of_all, __m512 offset_of_all) : scale(scale_of_all), offset(offset_of_all) {}
  __m512i outputs(__m512i sum) const {
    const __m512 real = _mm512_cvt_roundepi32_ps(sum, kTowardsZero);
    return _mm512_cvttps_epi32(_mm512_fmadd_round_ps(real, scale, offset, kTowardsZero));
  }
};

// FloatForm::kSigned.
struct SignedEpilogue512 {
  static constexpr bool kIsFloat = true;
  static constexpr int kTowardsZero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  __m512 scale;
  __m512i offset;
  template <typename Args>
  SignedEpilogue512(const Args& args, uint32_t channel)
      : scale(_mm512_loadu_ps(args.float_scale + channel)),
        offset(_mm512_loadu_si512(args.float_offset + channel)) {}
  SignedEpilogue512(__m512 scale_of_all, __m512 offset_of_all)
      : scale(scale_of_all), offset(_mm512_castps_si512(offset_of_all)) {}
  __m512i outputs(__m512i sum) const {
    const __m512 real = _mm512_cvt_roundepi32_ps(sum, kTowardsZero);
    // offset ^ (sum & sign bit)
    const __m512i with_sign = _mm512_ternarylogic_epi32(offset, sum, _mm512_set1_epi32(INT32_MIN), 0x78);
    return _mm512_cvttps_epi32(
        _mm512_fmadd_round_ps(real, scale, _mm512_castsi512_ps(with_sign), kTowardsZero));
  }
};

// F32E. What is below int32 converts to its minimum; what is above would, too, and is held back.
struct F32eEpilogue512 {
  static constexpr bool kIsFloat = true;
  __m512 scale;
  template <typename Args>
  F32eEpilogue512(const Args& args, uint32_t channel) : scale(_mm512_loadu_ps(args.scale + channel)) {}
  __m512i outputs(__m512i sum) const {
    const __m512 real = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale);
    return _mm512_cvtps_epi32(_mm512_min_ps(real, _mm512_set1_ps(65536.0f)));
  }
};

// TFL2 and TFL1 in integers, for channels without a proof.
struct Tfl2Epilogue512 {
  static constexpr bool kIsFloat = false;
  Requant512 requant;
  template <typename Args>
  Tfl2Epilogue512(const Args& args, uint32_t channel)
      : requant(load_requant512(args.multiplier + channel, args.shift + channel)) {}
  __m512i outputs(__m512i sum) const { return requantize_tfl2_512(sum, requant); }
};

struct Tfl1Epilogue512 {
  static constexpr bool kIsFloat = false;
  __m512i multiplier, shift;
  template <typename Args>
  Tfl1Epilogue512(const Args& args, uint32_t channel)
      : multiplier(_mm512_loadu_si512(args.multiplier + channel)),
        shift(_mm512_loadu_si512(args.shift + channel)) {}
  __m512i outputs(__m512i sum) const { return requantize_tfl1_512(sum, multiplier, shift); }
};

// Zero point and clamp of 64 outputs at once. The ends of the dtype are met by the saturation of what makes
// bytes. Where the zero point is the lower one, outputs saturate as uint8 and then lose what lies below 0.
struct Bytes512 {
  __m512i zero_point;            // int16
  __m512i clamp_min, clamp_max;  // of the dtype
  __m512i lowest;                // int8
  bool is_signed, clamps, from_lowest;
  template <typename Args>
  explicit Bytes512(const Args& args) {
    is_signed = args.output_zero_point < 0 || args.clamp_min < 0;
    clamps =
        args.clamp_min > (is_signed ? INT8_MIN : 0) || args.clamp_max < (is_signed ? INT8_MAX : UINT8_MAX);
    from_lowest = args.output_zero_point == (is_signed ? INT8_MIN : 0);
    lowest = _mm512_set1_epi8(is_signed ? INT8_MIN : 0);
    zero_point = _mm512_set1_epi16(static_cast<int16_t>(args.output_zero_point));
    clamp_min = _mm512_set1_epi8(static_cast<char>(args.clamp_min));
    clamp_max = _mm512_set1_epi8(static_cast<char>(args.clamp_max));
  }
  // The bytes of a, then those of b, c, d.
  __attribute__((always_inline)) __m512i pack(__m512i a, __m512i b, __m512i c, __m512i d) const {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, pack_lanes(a, b, c, d));
  }
  // Of each 128 bits the bytes of a, of b, of c, of d, four each. Everything on the way saturates.
  __attribute__((always_inline)) __m512i pack_lanes(__m512i a, __m512i b, __m512i c, __m512i d) const {
    __m512i ab = _mm512_packs_epi32(a, b), cd = _mm512_packs_epi32(c, d);
    __m512i bytes;
    if (from_lowest) {
      bytes = _mm512_xor_si512(_mm512_packus_epi16(ab, cd), lowest);
    } else {
      ab = _mm512_adds_epi16(ab, zero_point);
      cd = _mm512_adds_epi16(cd, zero_point);
      bytes = is_signed ? _mm512_packs_epi16(ab, cd) : _mm512_packus_epi16(ab, cd);
    }
    if (clamps) {
      bytes = is_signed ? _mm512_min_epi8(_mm512_max_epi8(bytes, clamp_min), clamp_max)
                        : _mm512_min_epu8(_mm512_max_epu8(bytes, clamp_min), clamp_max);
    }
    return bytes;
  }
};

// Whether groups [first, first + count) of 16 channels have float forms.
template <typename Args>
inline bool groups_have_form(const Args& args, uint32_t first, uint32_t count) {
  bool all = true;
  for (uint32_t i = 0; i < count; ++i) all &= args.float_scale[(first + i) * 16] >= 0.0f;
  return all;
}

inline __mmask64 mask64(uint32_t count) { return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1; }
inline __mmask16 mask16(uint32_t count) {
  return count >= 16 ? static_cast<__mmask16>(0xFFFF) : static_cast<__mmask16>((1u << count) - 1);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_REQUANTIZE_AVX512VNNI_INL_
