// TFL2 and F32E on 8 accumulators at a time, equal to requantize_tfl2 and requantize_f32e in every bit. F32E
// relies on the floating point environment that programs start with: rounding to nearest even, subnormals
// kept. Internal linkage only.
#ifndef QPLAN_KERNELS_NUMERIC_REQUANTIZE_AVX2_INL_
#define QPLAN_KERNELS_NUMERIC_REQUANTIZE_AVX2_INL_

#include <immintrin.h>
#include <stdint.h>

namespace qplan {
namespace {

// Multipliers and shifts of 8 channels.
struct Requant256 {
  __m256i multiplier;
  __m256i left;
  __m256i right;
  __m256i mask;       // 2^right - 1
  __m256i threshold;  // mask >> 1
};

inline __m256i load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

inline Requant256 requant256(__m256i multiplier, __m256i shift) {
  const __m256i zero = _mm256_setzero_si256();
  Requant256 r;
  r.multiplier = multiplier;
  r.left = _mm256_max_epi32(shift, zero);
  r.right = _mm256_max_epi32(_mm256_sub_epi32(zero, shift), zero);
  const __m256i one = _mm256_set1_epi32(1);
  r.mask = _mm256_sub_epi32(_mm256_sllv_epi32(one, r.right), one);
  r.threshold = _mm256_srli_epi32(r.mask, 1);
  return r;
}

inline Requant256 load_requant256(const int32_t* multiplier, const int32_t* shift) {
  return requant256(load256(multiplier), load256(shift));
}

inline Requant256 set1_requant256(int32_t multiplier, int32_t shift) {
  return requant256(_mm256_set1_epi32(multiplier), _mm256_set1_epi32(shift));
}

// floor((a * multiplier + 2^30) / 2^31): even and odd lanes in 64 bits each, of which bits 31..62 are the
// result.
inline __m256i doubling_high_mul256(__m256i a, __m256i multiplier) {
  const __m256i half = _mm256_set1_epi64x(int64_t{1} << 30);
  const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(a, multiplier), half);
  const __m256i odd =
      _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(multiplier, 32)), half);
  return _mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xAA);
}

// v / 2^right to nearest, ties away from zero.
inline __m256i rounding_shift_right256(__m256i v, const Requant256& r) {
  const __m256i remainder = _mm256_and_si256(v, r.mask);
  const __m256i threshold = _mm256_sub_epi32(r.threshold, _mm256_srai_epi32(v, 31));
  // A comparison that holds is -1.
  return _mm256_sub_epi32(_mm256_srav_epi32(v, r.right), _mm256_cmpgt_epi32(remainder, threshold));
}

inline __m256i requantize_tfl2_256(__m256i a, const Requant256& r) {
  return rounding_shift_right256(doubling_high_mul256(_mm256_sllv_epi32(a, r.left), r.multiplier), r);
}

// Zero point and clamp of an 8-bit output. The clamp comes first, less the zero point: that sum cannot wrap.
struct Output256 {
  __m256i zero_point;
  __m256i clamp_min;
  __m256i clamp_max;
};

inline Output256 output256(int32_t zero_point, int32_t clamp_min, int32_t clamp_max) {
  return {_mm256_set1_epi32(zero_point), _mm256_set1_epi32(clamp_min - zero_point),
          _mm256_set1_epi32(clamp_max - zero_point)};
}

// The low byte of each lane, in the low 8 bytes.
inline __m128i low_bytes256(__m256i v) {
  const __m256i low_bytes =
      _mm256_shuffle_epi8(v, _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                              0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  return _mm_unpacklo_epi32(_mm256_castsi256_si128(low_bytes), _mm256_extracti128_si256(low_bytes, 1));
}

// The bytes after zero point and clamp.
inline __m128i finish256(__m256i v, const Output256& out) {
  const __m256i clamped = _mm256_min_epi32(_mm256_max_epi32(v, out.clamp_min), out.clamp_max);
  return low_bytes256(_mm256_add_epi32(clamped, out.zero_point));
}

// The same for F32E, where the clamp is one of reals.
struct RealOutput256 {
  __m256i zero_point;
  __m256 clamp_min;
  __m256 clamp_max;
};

inline RealOutput256 real_output256(int32_t zero_point, int32_t clamp_min, int32_t clamp_max) {
  return {_mm256_set1_epi32(zero_point), _mm256_set1_ps(static_cast<float>(clamp_min - zero_point)),
          _mm256_set1_ps(static_cast<float>(clamp_max - zero_point))};
}

// quantize_f32e.
inline __m128i finish_real256(__m256 real, const RealOutput256& out) {
  const __m256 clamped = _mm256_min_ps(_mm256_max_ps(real, out.clamp_min), out.clamp_max);
  return low_bytes256(_mm256_add_epi32(_mm256_cvtps_epi32(clamped), out.zero_point));
}

// What a contract makes of the accumulators of channels channel .. channel + 7: `bytes`, one per channel.
// Args has multiplier and shift or scale, rounded up to whole vectors, output_zero_point, clamp_min and
// clamp_max.
struct Tfl2Epilogue256 {
  Requant256 requant;
  Output256 output;
  template <typename Args>
  Tfl2Epilogue256(const Args& args, uint32_t channel)
      : requant(load_requant256(args.multiplier + channel, args.shift + channel)),
        output(output256(args.output_zero_point, args.clamp_min, args.clamp_max)) {}
  __m128i bytes(__m256i sum) const { return finish256(requantize_tfl2_256(sum, requant), output); }
};

struct F32eEpilogue256 {
  __m256 scale;
  RealOutput256 output;
  template <typename Args>
  F32eEpilogue256(const Args& args, uint32_t channel)
      : scale(_mm256_loadu_ps(args.scale + channel)),
        output(real_output256(args.output_zero_point, args.clamp_min, args.clamp_max)) {}
  __m128i bytes(__m256i sum) const {
    return finish_real256(_mm256_mul_ps(_mm256_cvtepi32_ps(sum), scale), output);
  }
};

// count (<= 8) bytes in the low bytes of the result.
inline __m128i load_low_bytes(const uint8_t* from, uint32_t count) {
  if (count == 8) return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  uint64_t bytes = 0;
  for (uint32_t i = count; i-- > 0;) bytes = bytes << 8 | from[i];
  return _mm_cvtsi64_si128(static_cast<int64_t>(bytes));
}

// Stores the low count (<= 8) bytes of v.
inline void store_low_bytes(uint8_t* to, __m128i v, uint32_t count) {
  if (count == 8) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), v);
    return;
  }
  uint64_t bytes = static_cast<uint64_t>(_mm_cvtsi128_si64(v));
  for (uint32_t i = 0; i < count; ++i, bytes >>= 8) to[i] = static_cast<uint8_t>(bytes);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_REQUANTIZE_AVX2_INL_
