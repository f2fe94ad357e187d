// The vocabulary of kernels/simd/simd.h with AVX-512: 16 int32 or float32, or 64 bytes. F32E relies on the
// floating point environment that programs start with: rounding to nearest even, subnormals kept. Internal
// linkage only.
#ifndef QPLAN_KERNELS_SIMD_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/simd/x86_bytes.h"

#if !defined(QPLAN_SIMD_ISA)
#define QPLAN_SIMD_ISA avx512vnni
#define QPLAN_SIMD_VECTORS avx512vnni
#endif

namespace qplan {
namespace {

// int32, or bits of any kind; float32; the bytes of kLanes elements, the first ones of it.
constexpr uint32_t kLanes = 16;
using VecI32 = __m512i;
using VecF32 = __m512;
using LaneBytes = __m128i;

inline __mmask64 mask64(uint32_t count) { return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1; }
inline __mmask16 mask16(uint32_t count) {
  return count >= 16 ? static_cast<__mmask16>(0xFFFF) : static_cast<__mmask16>((1u << count) - 1);
}

// 16 bytes, four times. On Zen 5 this is one of the four vector operations of a cycle, which a broadcast of
// four or eight bytes, or a load of 64, is not.
inline VecI32 broadcast_16_bytes(const void* from) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(static_cast<const __m128i*>(from)));
}

inline VecI32 set_ints(int32_t v) { return _mm512_set1_epi32(v); }
inline VecF32 set_reals(float v) { return _mm512_set1_ps(v); }

// Integers wrap.
inline VecI32 add(VecI32 a, VecI32 b) { return _mm512_add_epi32(a, b); }
inline VecI32 sub(VecI32 a, VecI32 b) { return _mm512_sub_epi32(a, b); }
inline VecI32 mul(VecI32 a, VecI32 b) { return _mm512_mullo_epi32(a, b); }
inline VecI32 max(VecI32 a, VecI32 b) { return _mm512_max_epi32(a, b); }
inline VecI32 min(VecI32 a, VecI32 b) { return _mm512_min_epi32(a, b); }
inline VecI32 bit_and(VecI32 a, VecI32 b) { return _mm512_and_si512(a, b); }
inline VecI32 shift_left(VecI32 v, int32_t count) { return _mm512_sll_epi32(v, _mm_cvtsi32_si128(count)); }
inline VecF32 add(VecF32 a, VecF32 b) { return _mm512_add_ps(a, b); }
inline VecF32 sub(VecF32 a, VecF32 b) { return _mm512_sub_ps(a, b); }
inline VecF32 mul(VecF32 a, VecF32 b) { return _mm512_mul_ps(a, b); }
inline VecF32 div(VecF32 a, VecF32 b) { return _mm512_div_ps(a, b); }
// a * b + c, rounded once.
constexpr bool kHasFma = true;
inline VecF32 fma(VecF32 a, VecF32 b, VecF32 c) { return _mm512_fmadd_ps(a, b, c); }

inline VecF32 to_reals(VecI32 v) { return _mm512_cvtepi32_ps(v); }
inline VecF32 max(VecF32 a, VecF32 b) { return _mm512_max_ps(a, b); }
inline VecF32 min(VecF32 a, VecF32 b) { return _mm512_min_ps(a, b); }
// Half to even.
inline VecI32 round(VecF32 v) { return _mm512_cvtps_epi32(v); }
inline VecI32 truncate(VecF32 v) { return _mm512_cvttps_epi32(v); }
// 0 where v is no number.
inline VecF32 zero_nans(VecF32 v) { return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), v); }
// Half away from zero, for |v| < 2^23: the largest float below 1/2, with the sign of v, is added. What was
// below a half stays below 1 then, and a half becomes 1 as the sum is rounded.
inline VecI32 round_away(VecF32 v) {
  const VecI32 sign = _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(INT32_MIN));
  const VecI32 half = _mm512_or_si512(sign, _mm512_castps_si512(_mm512_set1_ps(0.49999997f)));
  return _mm512_cvttps_epi32(_mm512_add_ps(v, _mm512_castsi512_ps(half)));
}
// yes where v > 0, elsewhere no.
inline VecI32 if_positive(VecI32 v, VecI32 yes, VecI32 no) {
  return _mm512_mask_mov_epi32(no, _mm512_cmpgt_epi32_mask(v, _mm512_setzero_si512()), yes);
}

template <int kCount>
inline VecI32 shift_left(VecI32 v) {
  return _mm512_slli_epi32(v, kCount);
}
template <int kCount>
inline VecI32 shift_right(VecI32 v) {
  return _mm512_srai_epi32(v, kCount);
}
// With zeros from the left; from 32 on nothing is left.
inline VecI32 shift_right_zeros(VecI32 v, int32_t count) {
  return _mm512_srl_epi32(v, _mm_cvtsi32_si128(count));
}
// yes where bit kBit of bits is set, elsewhere no.
template <int kBit>
inline VecI32 select_bit(VecI32 bits, VecI32 yes, VecI32 no) {
  return _mm512_mask_mov_epi32(no, _mm512_test_epi32_mask(bits, set_ints(1 << kBit)), yes);
}
// yes where v is 0, elsewhere no.
inline VecI32 select_zero(VecI32 v, VecI32 yes, VecI32 no) {
  return _mm512_mask_mov_epi32(no, _mm512_testn_epi32_mask(v, v), yes);
}
// value, but 0 where v > limit.
inline VecI32 zero_above(VecI32 v, int32_t limit, VecI32 value) {
  return _mm512_maskz_mov_epi32(_mm512_cmple_epi32_mask(v, set_ints(limit)), value);
}
inline VecF32 as_reals(VecI32 v) { return _mm512_castsi512_ps(v); }
inline VecI32 as_ints(VecF32 v) { return _mm512_castps_si512(v); }
// yes where a < b, which no NaN is, elsewhere no.
inline VecF32 if_less(VecF32 a, VecF32 b, VecF32 yes, VecF32 no) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}

// The first count (1 .. kLanes) elements; nothing after them is read or written.
inline LaneBytes load_bytes(const uint8_t* from, uint32_t count) {
  return _mm_maskz_loadu_epi8(mask16(count), from);
}
inline LaneBytes set_lane_bytes(uint8_t v) { return _mm_set1_epi8(static_cast<char>(v)); }
inline LaneBytes add_lane_bytes(LaneBytes a, LaneBytes b) { return _mm_add_epi8(a, b); }
inline void store_bytes(uint8_t* to, LaneBytes bytes, uint32_t count) {
  _mm_mask_storeu_epi8(to, mask16(count), bytes);
}
inline void store_ints(void* to, VecI32 v) { _mm512_storeu_si512(to, v); }
inline VecI32 load_ints(const void* from) { return _mm512_loadu_si512(from); }
inline VecF32 load_reals(const float* from) { return _mm512_loadu_ps(from); }
inline VecI32 load_ints(const int32_t* from, uint32_t count) {
  return _mm512_maskz_loadu_epi32(mask16(count), from);
}
inline VecF32 load_reals(const float* from, uint32_t count) {
  return _mm512_maskz_loadu_ps(mask16(count), from);
}
inline void store_reals(float* to, VecF32 v, uint32_t count) {
  if (count == 16) return _mm512_storeu_ps(to, v);
  _mm512_mask_storeu_ps(to, mask16(count), v);
}
// kLanes bytes without a sign.
inline VecI32 widen(const uint8_t* bytes) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
}
inline VecI32 widen(LaneBytes bytes, Dtype dtype) {
  return dtype == Dtype::kS8 ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
}

// ---- bytes ----

constexpr uint32_t kBytes = 64;

inline VecI32 set_bytes(uint8_t v) { return _mm512_set1_epi8(static_cast<char>(v)); }
inline VecI32 bit_xor(VecI32 a, VecI32 b) { return _mm512_xor_si512(a, b); }
inline VecI32 max_bytes(VecI32 a, VecI32 b) { return _mm512_max_epu8(a, b); }
inline VecI32 min_bytes(VecI32 a, VecI32 b) { return _mm512_min_epu8(a, b); }
inline VecI32 interleave_low_bytes(VecI32 a, VecI32 b) { return _mm512_unpacklo_epi8(a, b); }
inline VecI32 interleave_high_bytes(VecI32 a, VecI32 b) { return _mm512_unpackhi_epi8(a, b); }
inline VecI32 interleave_low_words(VecI32 a, VecI32 b) { return _mm512_unpacklo_epi16(a, b); }
inline VecI32 interleave_high_words(VecI32 a, VecI32 b) { return _mm512_unpackhi_epi16(a, b); }
// Saturating: int32 to int16, int16 to uint8.
inline VecI32 pack_ints(VecI32 a, VecI32 b) { return _mm512_packs_epi32(a, b); }
inline VecI32 pack_words(VecI32 a, VecI32 b) { return _mm512_packus_epi16(a, b); }

inline VecI32 set_words(int16_t v) { return _mm512_set1_epi16(v); }
inline VecI32 add_words(VecI32 a, VecI32 b) { return _mm512_add_epi16(a, b); }
inline VecI32 add_words_saturating(VecI32 a, VecI32 b) { return _mm512_adds_epi16(a, b); }

// 16 bits, kBytes / 2 of them.
template <bool kSigned>
inline VecI32 load_words(const uint8_t* bytes) {
  const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
  return kSigned ? _mm512_cvtepi8_epi16(v) : _mm512_cvtepu8_epi16(v);
}
inline VecI32 sub_words(VecI32 a, VecI32 b) { return _mm512_sub_epi16(a, b); }
inline VecI32 mul_words(VecI32 a, VecI32 b) { return _mm512_mullo_epi16(a, b); }
template <int kCount>
inline VecI32 shift_left_words(VecI32 v) {
  return _mm512_slli_epi16(v, kCount);
}
template <int kCount>
inline VecI32 shift_right_words(VecI32 v) {
  return _mm512_srai_epi16(v, kCount);
}
template <int kCount>
inline VecI32 shift_right_zeros_words(VecI32 v) {
  return _mm512_srli_epi16(v, kCount);
}
// The first count words, which are values of int8 or of uint8, as bytes.
template <bool kSigned>
inline void store_words_as_bytes(uint8_t* to, VecI32 v, uint32_t count) {
  const __m256i bytes = _mm512_cvtepi16_epi8(v);
  if (count == kBytes / 2) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
  _mm256_mask_storeu_epi8(to, static_cast<__mmask32>((uint32_t{1} << count) - 1), bytes);
}

// Pairs of int16: a0 * b0 + a1 * b1.
inline VecI32 multiply_pairs(VecI32 a, VecI32 b) { return _mm512_madd_epi16(a, b); }
inline VecI32 min_unsigned(VecI32 a, VecI32 b) { return _mm512_min_epu32(a, b); }
inline VecI32 shift_right(VecI32 v, int32_t count) { return _mm512_sra_epi32(v, _mm_cvtsi32_si128(count)); }
// Whether a lane of a is below that of b, both without a sign.
inline bool any_below(VecI32 a, VecI32 b) { return _mm512_cmplt_epu32_mask(a, b) != 0; }

// The first count (1 .. kBytes) bytes; nothing after them is read or written. kLoadsFewBytes: it takes about
// as long as kBytes do.
constexpr bool kLoadsFewBytes = true;
inline VecI32 load_vector(const uint8_t* from, uint32_t count) {
  return _mm512_maskz_loadu_epi8(mask64(count), from);
}
inline void store_vector(uint8_t* to, VecI32 bytes, uint32_t count) {
  _mm512_mask_storeu_epi8(to, mask64(count), bytes);
}

// v, with 0 after its first count bytes.
inline VecI32 first_bytes(VecI32 v, uint32_t count) { return _mm512_maskz_mov_epi8(mask64(count), v); }
// The largest byte of v, in each byte.
inline VecI32 largest_in_all(VecI32 v) {
  const __m256i half = _mm256_max_epu8(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
  const __m128i most = _mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  return _mm512_broadcastb_epi8(largest_byte_in_all(most));
}
// The index of the first byte in which a and b are equal; kBytes if they differ in all.
inline uint32_t first_equal(VecI32 a, VecI32 b) {
  const uint64_t found = _mm512_cmpeq_epi8_mask(a, b);
  return found == 0 ? kBytes : static_cast<uint32_t>(__builtin_ctzll(found));
}

// A table of 256 bytes: 128 words of two entries in four vectors. The even bytes look up theirs, then the odd
// ones.
class ByteTable {
 public:
  explicit ByteTable(const uint8_t* table) {
    for (int i = 0; i < 4; ++i) words_[i] = _mm512_loadu_si512(table + 64 * i);
  }
  VecI32 look_up(VecI32 x) const {
    const VecI32 low_byte = _mm512_set1_epi16(255);
    const VecI32 even = words_of(_mm512_and_si512(x, low_byte));
    const VecI32 odd = words_of(_mm512_srli_epi16(x, 8));
    // low_byte ? even : odd << 8
    return _mm512_ternarylogic_epi32(low_byte, even, _mm512_slli_epi16(odd, 8), 0xCA);
  }

 private:
  // The words of 32 bytes, as the low bits of words say; of an odd one the high byte is meant.
  VecI32 words_of(VecI32 bytes) const {
    const VecI32 index = _mm512_srli_epi16(bytes, 1);
    const VecI32 lower = _mm512_permutex2var_epi16(words_[0], index, words_[1]);
    const VecI32 upper = _mm512_permutex2var_epi16(words_[2], index, words_[3]);
    const VecI32 found =
        _mm512_mask_mov_epi16(lower, _mm512_test_epi16_mask(bytes, _mm512_set1_epi16(128)), upper);
    const __mmask32 odd = _mm512_test_epi16_mask(bytes, _mm512_set1_epi16(1));
    return _mm512_mask_srli_epi16(found, odd, found, 8);
  }

  VecI32 words_[4];
};

// The largest of bytes ^ sign_bias.
inline uint8_t largest_byte(const uint8_t* from, uint32_t count, uint8_t sign_bias) {
  const VecI32 sign_biases = set_bytes(sign_bias);
  VecI32 most = _mm512_setzero_si512();
  for (uint64_t i = 0; i < count; i += kBytes) {
    const __mmask64 mask = mask64(static_cast<uint32_t>(count - i));
    const VecI32 bytes = bit_xor(_mm512_maskz_loadu_epi8(mask, from + i), sign_biases);
    most = _mm512_mask_max_epu8(most, mask, most, bytes);
  }
  const __m256i half = _mm256_max_epu8(_mm512_castsi512_si256(most), _mm512_extracti64x4_epi64(most, 1));
  __m128i v = _mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  v = _mm_max_epu8(v, _mm_srli_si128(v, 8));
  v = _mm_max_epu8(v, _mm_srli_si128(v, 4));
  v = _mm_max_epu8(v, _mm_srli_si128(v, 2));
  v = _mm_max_epu8(v, _mm_srli_si128(v, 1));
  return static_cast<uint8_t>(_mm_cvtsi128_si32(v));
}

// ---- requantisation ----

// Multipliers and shifts of 16 channels.
struct Requant {
  VecI32 multiplier;
  VecI32 left;
  VecI32 right;
  VecI32 mask;       // 2^right - 1
  VecI32 threshold;  // mask >> 1
};

inline Requant make_requant(VecI32 multiplier, VecI32 shift) {
  const VecI32 zero = _mm512_setzero_si512();
  Requant r;
  r.multiplier = multiplier;
  r.left = _mm512_max_epi32(shift, zero);
  r.right = _mm512_max_epi32(_mm512_sub_epi32(zero, shift), zero);
  const VecI32 one = _mm512_set1_epi32(1);
  r.mask = _mm512_sub_epi32(_mm512_sllv_epi32(one, r.right), one);
  r.threshold = _mm512_srli_epi32(r.mask, 1);
  return r;
}

inline Requant set_requant(int32_t multiplier, int32_t shift) {
  return make_requant(_mm512_set1_epi32(multiplier), _mm512_set1_epi32(shift));
}

// floor((a * multiplier + 2^30) / 2^31): even and odd lanes in 64 bits each, of which bits 31..62 are the
// result.
inline VecI32 doubling_high_mul(VecI32 a, VecI32 multiplier) {
  const VecI32 half = _mm512_set1_epi64(int64_t{1} << 30);
  const VecI32 even = _mm512_add_epi64(_mm512_mul_epi32(a, multiplier), half);
  const VecI32 odd =
      _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(multiplier, 32)), half);
  return _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 31), _mm512_slli_epi64(odd, 1));
}

// v / 2^right to nearest, ties away from zero.
inline VecI32 rounding_shift_right(VecI32 v, const Requant& r) {
  const VecI32 remainder = _mm512_and_si512(v, r.mask);
  const VecI32 threshold = _mm512_sub_epi32(r.threshold, _mm512_srai_epi32(v, 31));
  const __mmask16 up = _mm512_cmpgt_epi32_mask(remainder, threshold);
  const VecI32 floor = _mm512_srav_epi32(v, r.right);
  return _mm512_mask_add_epi32(floor, up, floor, _mm512_set1_epi32(1));
}

inline VecI32 requantize(VecI32 a, const Requant& r) {
  return rounding_shift_right(doubling_high_mul(_mm512_sllv_epi32(a, r.left), r.multiplier), r);
}

// TFL1 on the multiplier and shift as they are: bits right .. right + 31 of a * multiplier + half, which are
// the low half of even lanes and shifted into the high half of odd ones.
inline VecI32 requantize_tfl1(VecI32 a, VecI32 multiplier, VecI32 shift) {
  const VecI32 right = _mm512_sub_epi32(_mm512_set1_epi32(31), shift);
  const VecI32 low_half = _mm512_set1_epi64(UINT32_MAX);
  const VecI32 even_right = _mm512_and_si512(right, low_half), odd_right = _mm512_srli_epi64(right, 32);
  const VecI32 one = _mm512_set1_epi64(1);
  const VecI32 even_half = _mm512_srli_epi64(_mm512_sllv_epi64(one, even_right), 1);
  const VecI32 odd_half = _mm512_srli_epi64(_mm512_sllv_epi64(one, odd_right), 1);
  const VecI32 even = _mm512_add_epi64(_mm512_mul_epi32(a, multiplier), even_half);
  const VecI32 odd = _mm512_add_epi64(
      _mm512_mul_epi32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(multiplier, 32)), odd_half);
  return _mm512_mask_blend_epi32(0xAAAA, _mm512_srav_epi64(even, even_right),
                                 _mm512_slli_epi64(_mm512_srav_epi64(odd, odd_right), 32));
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

// The low byte of each lane.
inline LaneBytes low_bytes(VecI32 v) { return _mm512_cvtepi32_epi8(v); }

// Zero point and clamp of 64 outputs at once. The ends of the dtype are met by the saturation of what makes
// bytes. Where the zero point is the lower one, outputs saturate as uint8 and then lose what is below 0.
struct OutputBytes {
  VecI32 zero_point;            // int16
  VecI32 clamp_min, clamp_max;  // of the dtype
  VecI32 lowest;                // int8
  bool is_signed, clamps, from_lowest;
  template <typename Args>
  explicit OutputBytes(const Args& args) {
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
  __attribute__((always_inline)) VecI32 pack(VecI32 a, VecI32 b, VecI32 c, VecI32 d) const {
    const VecI32 order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, pack_lanes(a, b, c, d));
  }
  // Each 128 bits contain four bytes each of a, b, c and d. Intermediate results saturate.
  __attribute__((always_inline)) VecI32 pack_lanes(VecI32 a, VecI32 b, VecI32 c, VecI32 d) const {
    VecI32 ab = _mm512_packs_epi32(a, b), cd = _mm512_packs_epi32(c, d);
    VecI32 bytes;
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

struct EpilogueRounding {  // instructions say it themselves
  explicit EpilogueRounding(bool) {}
};

// FloatEpilogue::kPlain. Embedded rounding costs nothing.
struct PlainEpilogue {
  static constexpr bool kIsFloat = true;
  static constexpr int kTowardsZero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  VecF32 scale, offset;
  template <typename Args>
  PlainEpilogue(const Args& args, uint32_t channel)
      : scale(_mm512_loadu_ps(args.float_scale + channel)),
        offset(_mm512_loadu_ps(args.float_offset + channel)) {}
  PlainEpilogue(VecF32 scale_of_all, VecF32 offset_of_all) : scale(scale_of_all), offset(offset_of_all) {}
  VecI32 outputs(VecI32 sum) const { return _mm512_cvttps_epi32(reals(sum)); }
  // What outputs are the integer parts of.
  VecF32 reals(VecI32 sum) const {
    const VecF32 real = _mm512_cvt_roundepi32_ps(sum, kTowardsZero);
    return _mm512_fmadd_round_ps(real, scale, offset, kTowardsZero);
  }
};

// F32E where scales are_fractions: nothing has to be held back.
struct F32eFractionEpilogue {
  static constexpr bool kIsFloat = true;
  VecF32 scale;
  template <typename Args>
  F32eFractionEpilogue(const Args& args, uint32_t channel) : scale(_mm512_loadu_ps(args.scale + channel)) {}
  VecI32 outputs(VecI32 sum) const {
    return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale));
  }
};

// FloatEpilogue::kSigned.
struct SignedEpilogue {
  static constexpr bool kIsFloat = true;
  static constexpr int kTowardsZero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  VecF32 scale;
  VecI32 offset;
  template <typename Args>
  SignedEpilogue(const Args& args, uint32_t channel)
      : scale(_mm512_loadu_ps(args.float_scale + channel)),
        offset(_mm512_loadu_si512(args.float_offset + channel)) {}
  SignedEpilogue(VecF32 scale_of_all, VecF32 offset_of_all)
      : scale(scale_of_all), offset(_mm512_castps_si512(offset_of_all)) {}
  VecI32 outputs(VecI32 sum) const { return _mm512_cvttps_epi32(reals(sum)); }
  // What outputs are the integer parts of.
  VecF32 reals(VecI32 sum) const {
    const VecF32 real = _mm512_cvt_roundepi32_ps(sum, kTowardsZero);
    // offset ^ (sum & sign bit)
    const VecI32 with_sign = _mm512_ternarylogic_epi32(offset, sum, _mm512_set1_epi32(INT32_MIN), 0x78);
    return _mm512_fmadd_round_ps(real, scale, _mm512_castsi512_ps(with_sign), kTowardsZero);
  }
};

}  // namespace
}  // namespace qplan

#define QPLAN_SIMD_GEMM "kernels/simd/gemm_avx512vnni.h"
#define QPLAN_SIMD_ROWS "kernels/simd/rows_avx512vnni.h"
#define QPLAN_SIMD_FIRST_LAYERS "kernels/conv2d/conv2d_first_layers_avx512vnni.h"
#define QPLAN_SIMD_INTERLEAVED_LAYERS "kernels/conv2d/conv2d_interleaved_avx512vnni.h"

#include "kernels/simd/simd.h"  // what all have in common, over these names

#endif  // QPLAN_KERNELS_SIMD_AVX512VNNI_H_
