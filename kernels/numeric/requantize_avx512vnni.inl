// TFL2 and F32E on 16 accumulators at a time, equal to requantize_tfl2 and requantize_f32e in every bit. F32E
// relies on the floating point environment that programs start with: rounding to nearest even, subnormals
// kept. Internal linkage only.
#ifndef QPLAN_KERNELS_NUMERIC_REQUANTIZE_AVX512VNNI_INL_
#define QPLAN_KERNELS_NUMERIC_REQUANTIZE_AVX512VNNI_INL_

#include <immintrin.h>
#include <stdint.h>

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

// What a contract makes of the accumulators of channels channel .. channel + 15: `bytes`, one per channel.
// Args has multiplier and shift or scale, rounded up to whole vectors, output_zero_point, clamp_min and
// clamp_max.
struct Tfl2Epilogue512 {
  Requant512 requant;
  Output512 output;
  template <typename Args>
  Tfl2Epilogue512(const Args& args, uint32_t channel)
      : requant(load_requant512(args.multiplier + channel, args.shift + channel)),
        output(output512(args.output_zero_point, args.clamp_min, args.clamp_max)) {}
  __m128i bytes(__m512i sum) const { return finish512(requantize_tfl2_512(sum, requant), output); }
};

struct F32eEpilogue512 {
  __m512 scale;
  RealOutput512 output;
  template <typename Args>
  F32eEpilogue512(const Args& args, uint32_t channel)
      : scale(_mm512_loadu_ps(args.scale + channel)),
        output(real_output512(args.output_zero_point, args.clamp_min, args.clamp_max)) {}
  __m128i bytes(__m512i sum) const {
    return finish_real512(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale), output);
  }
};

inline __mmask16 mask16(uint32_t count) {
  return count >= 16 ? static_cast<__mmask16>(0xFFFF) : static_cast<__mmask16>((1u << count) - 1);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_REQUANTIZE_AVX512VNNI_INL_
