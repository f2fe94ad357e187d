// TFL2, TFL1 and F32E on 8 accumulators at a time, equal to requantize_tfl2, requantize_tfl1 and
// requantize_f32e in every bit, and the float forms that stand for the first two. F32E relies on the floating
// point environment that programs start with: rounding to nearest even, subnormals kept. Internal linkage
// only.
#ifndef QPLAN_KERNELS_NUMERIC_REQUANTIZE_AVX2_INL_
#define QPLAN_KERNELS_NUMERIC_REQUANTIZE_AVX2_INL_

#include <immintrin.h>
#include <stdint.h>

#include "kernels/numeric/low_bytes.inl"
#include "kernels/numeric/requantize.h"

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

// x >> count in 64 bits, with the sign: the logical shift of a number made positive.
inline __m256i shift_right_signed256(__m256i x, __m256i count) {
  const __m256i sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), x);
  return _mm256_xor_si256(_mm256_srlv_epi64(_mm256_xor_si256(x, sign), count), sign);
}

// TFL1 on the multiplier and shift as they are: bits right .. right + 31 of a * multiplier + half, for even
// and odd lanes.
inline __m256i requantize_tfl1_256(__m256i a, __m256i multiplier, __m256i shift) {
  const __m256i right = _mm256_sub_epi32(_mm256_set1_epi32(31), shift);
  const __m256i even_right = _mm256_blend_epi32(right, _mm256_setzero_si256(), 0xAA);
  const __m256i odd_right = _mm256_srli_epi64(right, 32);
  const __m256i one = _mm256_set1_epi64x(1);
  const __m256i even_half = _mm256_srli_epi64(_mm256_sllv_epi64(one, even_right), 1);
  const __m256i odd_half = _mm256_srli_epi64(_mm256_sllv_epi64(one, odd_right), 1);
  const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(a, multiplier), even_half);
  const __m256i odd = _mm256_add_epi64(
      _mm256_mul_epi32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(multiplier, 32)), odd_half);
  return _mm256_blend_epi32(shift_right_signed256(even, even_right),
                            _mm256_slli_epi64(shift_right_signed256(odd, odd_right), 32), 0xAA);
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

// ---- layers of weights ----
// An epilogue makes outputs without zero point and clamp of the accumulators of channels channel .. channel +
// 7; ends of int32 stand for what is beyond. Args has what its kind looks at, rounded up to whole vectors.

// For the time of its life floats are rounded towards zero, as float forms want it: MXCSR's field, since
// 256-bit instructions cannot say it themselves. What computes is to be a function of its own.
class RoundTowardsZero {
 public:
  explicit RoundTowardsZero(bool wanted) : before_(_mm_getcsr()) {
    if (wanted) _mm_setcsr(before_ | _MM_ROUND_TOWARD_ZERO);
  }
  ~RoundTowardsZero() { _mm_setcsr(before_); }
  RoundTowardsZero(const RoundTowardsZero&) = delete;
  RoundTowardsZero& operator=(const RoundTowardsZero&) = delete;

 private:
  uint32_t before_;
};

// FloatForm::kPlain, under RoundTowardsZero.
struct PlainEpilogue256 {
  __m256 scale, offset;
  template <typename Args>
  PlainEpilogue256(const Args& args, uint32_t channel)
      : scale(_mm256_loadu_ps(args.float_scale + channel)),
        offset(_mm256_loadu_ps(args.float_offset + channel)) {}
  PlainEpilogue256(__m256 scale_of_all, __m256 offset_of_all) : scale(scale_of_all), offset(offset_of_all) {}
  __m256i outputs(__m256i sum) const {
    return _mm256_cvttps_epi32(_mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scale, offset));
  }
};

// FloatForm::kSigned, under RoundTowardsZero.
struct SignedEpilogue256 {
  __m256 scale, offset;
  template <typename Args>
  SignedEpilogue256(const Args& args, uint32_t channel)
      : scale(_mm256_loadu_ps(args.float_scale + channel)),
        offset(_mm256_loadu_ps(args.float_offset + channel)) {}
  SignedEpilogue256(__m256 scale_of_all, __m256 offset_of_all) : scale(scale_of_all), offset(offset_of_all) {}
  __m256i outputs(__m256i sum) const {
    const __m256 sign = _mm256_and_ps(_mm256_castsi256_ps(sum), _mm256_set1_ps(-0.0f));
    return _mm256_cvttps_epi32(_mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scale, _mm256_xor_ps(offset, sign)));
  }
};

// F32E. What is below int32 converts to its minimum; what is above would, too, and is held back.
struct F32eEpilogue256 {
  __m256 scale;
  template <typename Args>
  F32eEpilogue256(const Args& args, uint32_t channel) : scale(_mm256_loadu_ps(args.scale + channel)) {}
  __m256i outputs(__m256i sum) const {
    const __m256 real = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), scale);
    return _mm256_cvtps_epi32(_mm256_min_ps(real, _mm256_set1_ps(65536.0f)));
  }
};

// TFL2 and TFL1 in integers, for channels without a proof.
struct Tfl2Epilogue256 {
  Requant256 requant;
  template <typename Args>
  Tfl2Epilogue256(const Args& args, uint32_t channel)
      : requant(load_requant256(args.multiplier + channel, args.shift + channel)) {}
  __m256i outputs(__m256i sum) const { return requantize_tfl2_256(sum, requant); }
};

struct Tfl1Epilogue256 {
  __m256i multiplier, shift;
  template <typename Args>
  Tfl1Epilogue256(const Args& args, uint32_t channel)
      : multiplier(load256(args.multiplier + channel)), shift(load256(args.shift + channel)) {}
  __m256i outputs(__m256i sum) const { return requantize_tfl1_256(sum, multiplier, shift); }
};

// Zero point and clamp of 32 outputs at once, as uint8; what may be negative is int8, lifted by 128 on the
// way.
struct Bytes256 {
  __m256i zero_point;  // int16
  __m256i clamp_min, clamp_max, flip;
  template <typename Args>
  explicit Bytes256(const Args& args) {
    const bool is_signed = args.output_zero_point < 0 || args.clamp_min < 0;
    const int32_t lift = is_signed ? 128 : 0;
    zero_point = _mm256_set1_epi16(static_cast<int16_t>(args.output_zero_point + lift));
    clamp_min = _mm256_set1_epi8(static_cast<char>(args.clamp_min + lift));
    clamp_max = _mm256_set1_epi8(static_cast<char>(args.clamp_max + lift));
    flip = _mm256_set1_epi8(static_cast<char>(lift));
  }
  // The bytes of a, then those of b, c, d. Everything on the way saturates.
  __m256i pack(__m256i a, __m256i b, __m256i c, __m256i d) const {
    const __m256i ab = _mm256_adds_epi16(_mm256_packs_epi32(a, b), zero_point);
    const __m256i cd = _mm256_adds_epi16(_mm256_packs_epi32(c, d), zero_point);
    __m256i bytes = _mm256_packus_epi16(ab, cd);
    bytes = _mm256_min_epu8(_mm256_max_epu8(bytes, clamp_min), clamp_max);
    // Each 128 bits hold four channels of a, of b, of c, of d.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(_mm256_xor_si256(bytes, flip), order);
  }
};

// Whether groups [first, first + count) of 16 channels have float forms.
template <typename Args>
inline bool groups_have_form(const Args& args, uint32_t first, uint32_t count) {
  bool all = true;
  for (uint32_t i = 0; i < count; ++i) all &= args.float_scale[(first + i) * 16] >= 0.0f;
  return all;
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_REQUANTIZE_AVX2_INL_
