// The vocabulary of kernels/simd/simd.h with AVX2 and FMA: 8 int32 or float32, or 32 bytes. F32E relies on
// the floating point environment that programs start with: rounding to nearest even, subnormals kept.
// Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_AVX2_H_
#define QPLAN_KERNELS_SIMD_AVX2_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/simd/x86_bytes.h"

#if !defined(QPLAN_SIMD_ISA)
#define QPLAN_SIMD_ISA avx2
#define QPLAN_SIMD_VECTORS avx2
#endif

namespace qplan {
namespace {

// int32, or bits of any kind; float32; the bytes of kLanes elements, the first ones of it.
constexpr uint32_t kLanes = 8;
using VecI32 = __m256i;
using VecF32 = __m256;
using LaneBytes = __m128i;

inline VecI32 load_whole(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

inline VecI32 set_ints(int32_t v) { return _mm256_set1_epi32(v); }
inline VecF32 set_reals(float v) { return _mm256_set1_ps(v); }

// Integers wrap.
inline VecI32 add(VecI32 a, VecI32 b) { return _mm256_add_epi32(a, b); }
inline VecI32 sub(VecI32 a, VecI32 b) { return _mm256_sub_epi32(a, b); }
inline VecI32 mul(VecI32 a, VecI32 b) { return _mm256_mullo_epi32(a, b); }
inline VecI32 max(VecI32 a, VecI32 b) { return _mm256_max_epi32(a, b); }
inline VecI32 min(VecI32 a, VecI32 b) { return _mm256_min_epi32(a, b); }
inline VecI32 bit_and(VecI32 a, VecI32 b) { return _mm256_and_si256(a, b); }
inline VecI32 shift_left(VecI32 v, int32_t count) { return _mm256_sll_epi32(v, _mm_cvtsi32_si128(count)); }
inline VecF32 add(VecF32 a, VecF32 b) { return _mm256_add_ps(a, b); }
inline VecF32 sub(VecF32 a, VecF32 b) { return _mm256_sub_ps(a, b); }
inline VecF32 mul(VecF32 a, VecF32 b) { return _mm256_mul_ps(a, b); }
inline VecF32 div(VecF32 a, VecF32 b) { return _mm256_div_ps(a, b); }
// a * b + c, rounded once.
constexpr bool kHasFma = true;
inline VecF32 fma(VecF32 a, VecF32 b, VecF32 c) { return _mm256_fmadd_ps(a, b, c); }

inline VecF32 to_reals(VecI32 v) { return _mm256_cvtepi32_ps(v); }
inline VecF32 max(VecF32 a, VecF32 b) { return _mm256_max_ps(a, b); }
inline VecF32 min(VecF32 a, VecF32 b) { return _mm256_min_ps(a, b); }
// Half to even.
inline VecI32 round(VecF32 v) { return _mm256_cvtps_epi32(v); }
inline VecI32 truncate(VecF32 v) { return _mm256_cvttps_epi32(v); }
// 0 where v is no number.
inline VecF32 zero_nans(VecF32 v) { return _mm256_and_ps(v, _mm256_cmp_ps(v, v, _CMP_ORD_Q)); }
// Half away from zero, for |v| < 2^23: the largest float below 1/2, with the sign of v, is added. What was
// below a half stays below 1 then, and a half becomes 1 as the sum is rounded.
inline VecI32 round_away(VecF32 v) {
  const VecF32 sign = _mm256_and_ps(v, _mm256_set1_ps(-0.0f));
  return _mm256_cvttps_epi32(_mm256_add_ps(v, _mm256_or_ps(sign, _mm256_set1_ps(0.49999997f))));
}
// yes where v > 0, elsewhere no.
inline VecI32 if_positive(VecI32 v, VecI32 yes, VecI32 no) {
  return _mm256_blendv_epi8(no, yes, _mm256_cmpgt_epi32(v, _mm256_setzero_si256()));
}

template <int kCount>
inline VecI32 shift_left(VecI32 v) {
  return _mm256_slli_epi32(v, kCount);
}
template <int kCount>
inline VecI32 shift_right(VecI32 v) {
  return _mm256_srai_epi32(v, kCount);
}
// With zeros from the left; from 32 on nothing is left.
inline VecI32 shift_right_zeros(VecI32 v, int32_t count) {
  return _mm256_srl_epi32(v, _mm_cvtsi32_si128(count));
}
// yes where bit kBit of bits is set, elsewhere no: the bit goes where blending looks at it.
template <int kBit>
inline VecI32 select_bit(VecI32 bits, VecI32 yes, VecI32 no) {
  const VecF32 sign = _mm256_castsi256_ps(_mm256_slli_epi32(bits, 31 - kBit));
  return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(no), _mm256_castsi256_ps(yes), sign));
}
// yes where v is 0, elsewhere no.
inline VecI32 select_zero(VecI32 v, VecI32 yes, VecI32 no) {
  return _mm256_blendv_epi8(no, yes, _mm256_cmpeq_epi32(v, _mm256_setzero_si256()));
}
// value, but 0 where v > limit.
inline VecI32 zero_above(VecI32 v, int32_t limit, VecI32 value) {
  return _mm256_andnot_si256(_mm256_cmpgt_epi32(v, set_ints(limit)), value);
}
inline VecF32 as_reals(VecI32 v) { return _mm256_castsi256_ps(v); }
inline VecI32 as_ints(VecF32 v) { return _mm256_castps_si256(v); }
// yes where a < b, which no NaN is, elsewhere no.
inline VecF32 if_less(VecF32 a, VecF32 b, VecF32 yes, VecF32 no) {
  return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

// The first count (1 .. kLanes) elements; nothing after them is read or written.
inline LaneBytes load_bytes(const uint8_t* from, uint32_t count) { return load_low_bytes(from, count); }
inline LaneBytes set_lane_bytes(uint8_t v) { return _mm_set1_epi8(static_cast<char>(v)); }
inline LaneBytes add_lane_bytes(LaneBytes a, LaneBytes b) { return _mm_add_epi8(a, b); }
inline void store_bytes(uint8_t* to, LaneBytes bytes, uint32_t count) { store_low_bytes(to, bytes, count); }
inline VecI32 first_lanes(uint32_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline void store_ints(void* to, VecI32 v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
inline VecI32 load_ints(const void* from) { return load_whole(from); }
inline VecF32 load_reals(const float* from) { return _mm256_loadu_ps(from); }
inline VecI32 load_ints(const int32_t* from, uint32_t count) {
  return _mm256_maskload_epi32(from, first_lanes(count));
}
inline VecF32 load_reals(const float* from, uint32_t count) {
  return _mm256_maskload_ps(from, first_lanes(count));
}
// Stores with a mask take several times as long on some processors (Zen).
inline void store_reals(float* to, VecF32 v, uint32_t count) {
  if (count == 8) return _mm256_storeu_ps(to, v);
  _mm256_maskstore_ps(to, first_lanes(count), v);
}
// kLanes bytes without a sign.
inline VecI32 widen(const uint8_t* bytes) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
}
inline VecI32 widen(LaneBytes bytes, Dtype dtype) {
  return dtype == Dtype::kS8 ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
}

// ---- bytes ----

constexpr uint32_t kBytes = 32;

inline VecI32 set_bytes(uint8_t v) { return _mm256_set1_epi8(static_cast<char>(v)); }
inline VecI32 bit_xor(VecI32 a, VecI32 b) { return _mm256_xor_si256(a, b); }
inline VecI32 max_bytes(VecI32 a, VecI32 b) { return _mm256_max_epu8(a, b); }
inline VecI32 min_bytes(VecI32 a, VecI32 b) { return _mm256_min_epu8(a, b); }
inline VecI32 interleave_low_bytes(VecI32 a, VecI32 b) { return _mm256_unpacklo_epi8(a, b); }
inline VecI32 interleave_high_bytes(VecI32 a, VecI32 b) { return _mm256_unpackhi_epi8(a, b); }
inline VecI32 interleave_low_words(VecI32 a, VecI32 b) { return _mm256_unpacklo_epi16(a, b); }
inline VecI32 interleave_high_words(VecI32 a, VecI32 b) { return _mm256_unpackhi_epi16(a, b); }
// Saturating: int32 to int16, int16 to uint8.
inline VecI32 pack_ints(VecI32 a, VecI32 b) { return _mm256_packs_epi32(a, b); }
inline VecI32 pack_words(VecI32 a, VecI32 b) { return _mm256_packus_epi16(a, b); }

inline VecI32 set_words(int16_t v) { return _mm256_set1_epi16(v); }
inline VecI32 add_words(VecI32 a, VecI32 b) { return _mm256_add_epi16(a, b); }
inline VecI32 add_words_saturating(VecI32 a, VecI32 b) { return _mm256_adds_epi16(a, b); }

// 16 bits, kBytes / 2 of them.
template <bool kSigned>
inline VecI32 load_words(const uint8_t* bytes) {
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  return kSigned ? _mm256_cvtepi8_epi16(v) : _mm256_cvtepu8_epi16(v);
}
inline VecI32 sub_words(VecI32 a, VecI32 b) { return _mm256_sub_epi16(a, b); }
inline VecI32 mul_words(VecI32 a, VecI32 b) { return _mm256_mullo_epi16(a, b); }
template <int kCount>
inline VecI32 shift_left_words(VecI32 v) {
  return _mm256_slli_epi16(v, kCount);
}
template <int kCount>
inline VecI32 shift_right_words(VecI32 v) {
  return _mm256_srai_epi16(v, kCount);
}
template <int kCount>
inline VecI32 shift_right_zeros_words(VecI32 v) {
  return _mm256_srli_epi16(v, kCount);
}
// The first count words, which are values of int8 or of uint8, as bytes.
template <bool kSigned>
inline void store_words_as_bytes(uint8_t* to, VecI32 v, uint32_t count) {
  // Named halves would cost GCC 12 another move (5 % of a resize).
  if constexpr (kSigned) {
    store_low_bytes(to, _mm_packs_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)), count);
  } else {
    store_low_bytes(to, _mm_packus_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)), count);
  }
}

// Pairs of int16: a0 * b0 + a1 * b1.
inline VecI32 multiply_pairs(VecI32 a, VecI32 b) { return _mm256_madd_epi16(a, b); }
inline VecI32 min_unsigned(VecI32 a, VecI32 b) { return _mm256_min_epu32(a, b); }
inline VecI32 shift_right(VecI32 v, int32_t count) { return _mm256_sra_epi32(v, _mm_cvtsi32_si128(count)); }
// Whether a lane of a is below that of b, both without a sign.
inline bool any_below(VecI32 a, VecI32 b) {
  return _mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a)) != -1;
}

// The first count (1 .. kBytes) bytes; nothing after them is read or written. kLoadsFewBytes: it takes about
// as long as kBytes do.
constexpr bool kLoadsFewBytes = false;
inline VecI32 load_vector(const uint8_t* from, uint32_t count) {
  if (count >= kBytes) return load_whole(from);
  uint8_t some[kBytes] = {};
  __builtin_memcpy(some, from, count);
  return load_whole(some);
}
inline void store_vector(uint8_t* to, VecI32 bytes, uint32_t count) {
  if (count >= kBytes) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
  store_low_bytes(to, _mm256_castsi256_si128(bytes), count < 16 ? count : 16);
  if (count > 16) store_low_bytes(to + 16, _mm256_extracti128_si256(bytes, 1), count - 16);
}

// v, with 0 after its first count bytes.
inline VecI32 first_bytes(VecI32 v, uint32_t count) {
  const VecI32 index = _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
                                        20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
  return _mm256_and_si256(v, _mm256_cmpgt_epi8(_mm256_set1_epi8(static_cast<char>(count)), index));
}
// The largest byte of v, in each byte.
inline VecI32 largest_in_all(VecI32 v) {
  const __m128i half = _mm_max_epu8(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  return _mm256_broadcastb_epi8(largest_byte_in_all(half));
}
// The index of the first byte in which a and b are equal; kBytes if they differ in all.
inline uint32_t first_equal(VecI32 a, VecI32 b) {
  const auto found = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b)));
  return found == 0 ? kBytes : static_cast<uint32_t>(__builtin_ctz(found));
}

// A table of 256 bytes.
struct TableRow {
  using Vec = VecI32;
  static VecI32 load(const uint8_t* from) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static VecI32 low_bits(VecI32 x) { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }
  static VecI32 shuffle(VecI32 row, VecI32 low) { return _mm256_shuffle_epi8(row, low); }
  template <int kBit>
  static VecI32 choose(VecI32 lower, VecI32 upper, VecI32 x) {
    return _mm256_blendv_epi8(lower, upper, _mm256_slli_epi16(x, 7 - kBit));
  }
};
using ByteTable = RowTable<TableRow>;

// The largest of bytes ^ sign_bias.
inline uint8_t largest_byte(const uint8_t* from, uint32_t count, uint8_t sign_bias) {
  uint8_t most = 0;
  uint64_t i = 0;
  if (count >= kBytes) {
    const VecI32 sign_biases = set_bytes(sign_bias);
    VecI32 bytes = _mm256_setzero_si256();
    for (; i + kBytes <= count; i += kBytes)
      bytes = max_bytes(bytes, bit_xor(load_whole(from + i), sign_biases));
    __m128i v = _mm_max_epu8(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
    v = _mm_max_epu8(v, _mm_srli_si128(v, 8));
    v = _mm_max_epu8(v, _mm_srli_si128(v, 4));
    v = _mm_max_epu8(v, _mm_srli_si128(v, 2));
    v = _mm_max_epu8(v, _mm_srli_si128(v, 1));
    most = static_cast<uint8_t>(_mm_cvtsi128_si32(v));
  }
  for (; i < count; ++i) {
    const uint8_t byte = static_cast<uint8_t>(from[i] ^ sign_bias);
    most = byte > most ? byte : most;
  }
  return most;
}

// The first `count` (1 .. 2 * kLanes) bytes of a and b, ^ sign_bias, as pairs of int16: of the first kLanes
// and of the others.
struct BytePairs {
  VecI32 low, high;
};
inline __m128i load_first_bytes(const uint8_t* from, uint32_t count) {
  if (count == 16) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  if (count <= 8) return load_low_bytes(from, count);
  return _mm_unpacklo_epi64(load_low_bytes(from, 8), load_low_bytes(from + 8, count - 8));
}
inline BytePairs load_pairs(const uint8_t* a, const uint8_t* b, uint32_t count, LaneBytes sign_bias) {
  const __m128i first = _mm_xor_si128(load_first_bytes(a, count), sign_bias);
  const __m128i second = _mm_xor_si128(load_first_bytes(b, count), sign_bias);
  return {_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(first, second)),
          _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(first, second))};
}

// ---- requantisation ----

// Multipliers and shifts of 8 channels.
struct Requant {
  VecI32 multiplier;
  VecI32 left;
  VecI32 right;
  VecI32 mask;       // 2^right - 1
  VecI32 threshold;  // mask >> 1
};

inline Requant make_requant(VecI32 multiplier, VecI32 shift) {
  const VecI32 zero = _mm256_setzero_si256();
  Requant r;
  r.multiplier = multiplier;
  r.left = _mm256_max_epi32(shift, zero);
  r.right = _mm256_max_epi32(_mm256_sub_epi32(zero, shift), zero);
  const VecI32 one = _mm256_set1_epi32(1);
  r.mask = _mm256_sub_epi32(_mm256_sllv_epi32(one, r.right), one);
  r.threshold = _mm256_srli_epi32(r.mask, 1);
  return r;
}

inline Requant set_requant(int32_t multiplier, int32_t shift) {
  return make_requant(_mm256_set1_epi32(multiplier), _mm256_set1_epi32(shift));
}

// floor((a * multiplier + 2^30) / 2^31): even and odd lanes in 64 bits each, of which bits 31..62 are the
// result.
inline VecI32 doubling_high_mul(VecI32 a, VecI32 multiplier) {
  const VecI32 half = _mm256_set1_epi64x(int64_t{1} << 30);
  const VecI32 even = _mm256_add_epi64(_mm256_mul_epi32(a, multiplier), half);
  const VecI32 odd =
      _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(multiplier, 32)), half);
  return _mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xAA);
}

// v / 2^right to nearest, ties away from zero.
inline VecI32 rounding_shift_right(VecI32 v, const Requant& r) {
  const VecI32 remainder = _mm256_and_si256(v, r.mask);
  const VecI32 threshold = _mm256_sub_epi32(r.threshold, _mm256_srai_epi32(v, 31));
  // A comparison that holds is -1.
  return _mm256_sub_epi32(_mm256_srav_epi32(v, r.right), _mm256_cmpgt_epi32(remainder, threshold));
}

inline VecI32 requantize(VecI32 a, const Requant& r) {
  return rounding_shift_right(doubling_high_mul(_mm256_sllv_epi32(a, r.left), r.multiplier), r);
}

// x >> count in 64 bits, with the sign: the logical shift of a number made positive.
inline VecI32 shift_right_signed256(VecI32 x, VecI32 count) {
  const VecI32 sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), x);
  return _mm256_xor_si256(_mm256_srlv_epi64(_mm256_xor_si256(x, sign), count), sign);
}

// TFL1 on the multiplier and shift as they are: bits right .. right + 31 of a * multiplier + half, for even
// and odd lanes.
inline VecI32 requantize_tfl1(VecI32 a, VecI32 multiplier, VecI32 shift) {
  const VecI32 right = _mm256_sub_epi32(_mm256_set1_epi32(31), shift);
  const VecI32 even_right = _mm256_blend_epi32(right, _mm256_setzero_si256(), 0xAA);
  const VecI32 odd_right = _mm256_srli_epi64(right, 32);
  const VecI32 one = _mm256_set1_epi64x(1);
  const VecI32 even_half = _mm256_srli_epi64(_mm256_sllv_epi64(one, even_right), 1);
  const VecI32 odd_half = _mm256_srli_epi64(_mm256_sllv_epi64(one, odd_right), 1);
  const VecI32 even = _mm256_add_epi64(_mm256_mul_epi32(a, multiplier), even_half);
  const VecI32 odd = _mm256_add_epi64(
      _mm256_mul_epi32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(multiplier, 32)), odd_half);
  return _mm256_blend_epi32(shift_right_signed256(even, even_right),
                            _mm256_slli_epi64(shift_right_signed256(odd, odd_right), 32), 0xAA);
}

// TFL1.
struct RequantOnce {
  VecI32 multiplier, shift;
};
inline RequantOnce set_requant_once(int32_t multiplier, int32_t shift) {
  return {set_ints(multiplier), set_ints(shift)};
}
inline VecI32 requantize(VecI32 v, const RequantOnce& r) { return requantize_tfl1(v, r.multiplier, r.shift); }

// The constants of kLanes channels, or of the first `count` of them.
inline Requant load_requant(const int32_t* multiplier, const int32_t* shift) {
  return make_requant(load_ints(multiplier), load_ints(shift));
}
inline RequantOnce load_requant_once(const int32_t* multiplier, const int32_t* shift) {
  return {load_ints(multiplier), load_ints(shift)};
}
inline Requant load_requant(const int32_t* multiplier, const int32_t* shift, uint32_t count) {
  return make_requant(load_ints(multiplier, count), load_ints(shift, count));
}
inline RequantOnce load_requant_once(const int32_t* multiplier, const int32_t* shift, uint32_t count) {
  return {load_ints(multiplier, count), load_ints(shift, count)};
}

// The low byte of each lane, in the low 8 bytes.
inline LaneBytes low_bytes(VecI32 v) {
  const VecI32 low_bytes =
      _mm256_shuffle_epi8(v, _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                              0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  return _mm_unpacklo_epi32(_mm256_castsi256_si128(low_bytes), _mm256_extracti128_si256(low_bytes, 1));
}

// Zero point and clamp of 32 outputs at once, as uint8; 128 is added to int8 on the way.
struct OutputBytes {
  VecI32 zero_point;  // int16
  VecI32 clamp_min, clamp_max, sign_bias;
  template <typename Args>
  explicit OutputBytes(const Args& args) {
    const bool is_signed = args.output_zero_point < 0 || args.clamp_min < 0;
    const int32_t to_unsigned = is_signed ? 128 : 0;
    zero_point = _mm256_set1_epi16(static_cast<int16_t>(args.output_zero_point + to_unsigned));
    clamp_min = _mm256_set1_epi8(static_cast<char>(args.clamp_min + to_unsigned));
    clamp_max = _mm256_set1_epi8(static_cast<char>(args.clamp_max + to_unsigned));
    sign_bias = _mm256_set1_epi8(static_cast<char>(to_unsigned));
  }
  // The bytes of a, then those of b, c, d. Everything on the way saturates.
  VecI32 pack(VecI32 a, VecI32 b, VecI32 c, VecI32 d) const {
    const VecI32 ab = _mm256_adds_epi16(_mm256_packs_epi32(a, b), zero_point);
    const VecI32 cd = _mm256_adds_epi16(_mm256_packs_epi32(c, d), zero_point);
    VecI32 bytes = _mm256_packus_epi16(ab, cd);
    bytes = _mm256_min_epu8(_mm256_max_epu8(bytes, clamp_min), clamp_max);
    // Each 128 bits hold four channels of a, of b, of c, of d.
    const VecI32 order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(_mm256_xor_si256(bytes, sign_bias), order);
  }
};

// For the time of its life floats are rounded towards zero, as float epilogues want it: MXCSR's field, since
// 256-bit instructions cannot say it themselves. What computes is to be a function of its own.
class EpilogueRounding {
 public:
  explicit EpilogueRounding(bool wanted) : before_(_mm_getcsr()) {
    if (wanted) _mm_setcsr(before_ | _MM_ROUND_TOWARD_ZERO);
  }
  ~EpilogueRounding() { _mm_setcsr(before_); }
  EpilogueRounding(const EpilogueRounding&) = delete;
  EpilogueRounding& operator=(const EpilogueRounding&) = delete;

 private:
  uint32_t before_;
};

// FloatEpilogue::kPlain, under EpilogueRounding.
struct PlainEpilogue {
  static constexpr bool kIsFloat = true;
  VecF32 scale, offset;
  template <typename Args>
  PlainEpilogue(const Args& args, uint32_t channel)
      : scale(_mm256_loadu_ps(args.float_scale + channel)),
        offset(_mm256_loadu_ps(args.float_offset + channel)) {}
  PlainEpilogue(VecF32 scale_of_all, VecF32 offset_of_all) : scale(scale_of_all), offset(offset_of_all) {}
  VecI32 outputs(VecI32 sum) const {
    return _mm256_cvttps_epi32(_mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scale, offset));
  }
};

// FloatEpilogue::kSigned, under EpilogueRounding.
struct SignedEpilogue {
  static constexpr bool kIsFloat = true;
  VecF32 scale, offset;
  template <typename Args>
  SignedEpilogue(const Args& args, uint32_t channel)
      : scale(_mm256_loadu_ps(args.float_scale + channel)),
        offset(_mm256_loadu_ps(args.float_offset + channel)) {}
  SignedEpilogue(VecF32 scale_of_all, VecF32 offset_of_all) : scale(scale_of_all), offset(offset_of_all) {}
  VecI32 outputs(VecI32 sum) const {
    const VecF32 sign = _mm256_and_ps(_mm256_castsi256_ps(sum), _mm256_set1_ps(-0.0f));
    return _mm256_cvttps_epi32(_mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scale, _mm256_xor_ps(offset, sign)));
  }
};

// ---- dot products (kernels/simd/gemm.h) ----

inline VecI32 add_byte_sums(VecI32 sums, VecI32 bytes) {
  return _mm256_add_epi64(sums, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
}
inline uint32_t total_byte_sums(VecI32 sums) {
  const __m128i halves = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  return static_cast<uint32_t>(_mm_cvtsi128_si64(halves)) +
         static_cast<uint32_t>(_mm_extract_epi64(halves, 1));
}
inline void store_halves(uint8_t* to, size_t stride, VecI32 bytes, uint32_t count, uint32_t rows) {
  store_low_bytes(to, _mm256_castsi256_si128(bytes), count);
  if (rows == 2) store_low_bytes(to + stride, _mm256_extracti128_si256(bytes, 1), count);
}

#if !defined(QPLAN_SIMD_OWN_DOT)
// Products are formed in 16 bits and summed in 32 (vpmaddwd), where nothing can saturate. Vector q has two
// partial sums for each of the channels 4q .. 4q + 3.
constexpr uint32_t kDotVectors = 4;
constexpr uint32_t kDotRows = 2;
constexpr bool kDotKeepsLanes = false;
using DotSignBias = __m128i;
using DotRow = __m256i;
using DotWeights = __m256i;

inline DotSignBias dot_sign_bias(uint8_t sign_bias) { return _mm_set1_epi8(static_cast<char>(sign_bias)); }
inline DotRow dot_row(const uint8_t* from, DotSignBias sign_bias) {
  int32_t four;
  __builtin_memcpy(&four, from, 4);
  return _mm256_cvtepu8_epi16(_mm_xor_si128(_mm_set1_epi32(four), sign_bias));
}
inline DotWeights dot_weights(const int8_t* from) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline void dot_add(VecI32& sums, DotRow row, DotWeights weights) {
  sums = _mm256_add_epi32(sums, _mm256_madd_epi16(row, weights));
}
// hadd leaves channels 0 1 4 5 | 2 3 6 7 of the eight.
inline VecI32 dot_sums(const VecI32 (&sums)[kDotVectors], uint32_t half) {
  return _mm256_permute4x64_epi64(_mm256_hadd_epi32(sums[2 * half], sums[2 * half + 1]), 0xD8);
}
#endif

}  // namespace
}  // namespace qplan

#include "kernels/simd/simd.h"  // what all have in common, over these names

#endif  // QPLAN_KERNELS_SIMD_AVX2_H_
