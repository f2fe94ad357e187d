// The vocabulary of kernels/simd/simd.h with SSE4.1: 4 int32 or float32, or 16 bytes. F32E relies on the
// floating point environment that programs start with: rounding to nearest even, subnormals kept. Internal
// linkage only.
#ifndef QPLAN_KERNELS_SIMD_SSE41_H_
#define QPLAN_KERNELS_SIMD_SSE41_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/simd/x86_bytes.h"

#if !defined(QPLAN_SIMD_ISA)
#define QPLAN_SIMD_ISA sse41
#define QPLAN_SIMD_VECTORS sse41
#endif

namespace qplan {
namespace {

// int32, or bits of any kind; float32; the bytes of kLanes elements, the first ones of it.
constexpr uint32_t kLanes = 4;
using VecI32 = __m128i;
using VecF32 = __m128;
using LaneBytes = __m128i;

inline VecI32 load_whole(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

inline VecI32 set_ints(int32_t v) { return _mm_set1_epi32(v); }
inline VecF32 set_reals(float v) { return _mm_set1_ps(v); }

// Integers wrap.
inline VecI32 add(VecI32 a, VecI32 b) { return _mm_add_epi32(a, b); }
inline VecI32 sub(VecI32 a, VecI32 b) { return _mm_sub_epi32(a, b); }
inline VecI32 mul(VecI32 a, VecI32 b) { return _mm_mullo_epi32(a, b); }
inline VecI32 max(VecI32 a, VecI32 b) { return _mm_max_epi32(a, b); }
inline VecI32 min(VecI32 a, VecI32 b) { return _mm_min_epi32(a, b); }
inline VecI32 bit_and(VecI32 a, VecI32 b) { return _mm_and_si128(a, b); }
inline VecI32 shift_left(VecI32 v, int32_t count) { return _mm_sll_epi32(v, _mm_cvtsi32_si128(count)); }
inline VecF32 add(VecF32 a, VecF32 b) { return _mm_add_ps(a, b); }
inline VecF32 sub(VecF32 a, VecF32 b) { return _mm_sub_ps(a, b); }
inline VecF32 mul(VecF32 a, VecF32 b) { return _mm_mul_ps(a, b); }
inline VecF32 div(VecF32 a, VecF32 b) { return _mm_div_ps(a, b); }
// SSE4.1 has no fused multiply-add: kernels use integer arithmetic where it would be needed.
constexpr bool kHasFma = false;
inline VecF32 fma(VecF32 a, VecF32, VecF32) { return a; }

inline VecF32 to_reals(VecI32 v) { return _mm_cvtepi32_ps(v); }
inline VecF32 max(VecF32 a, VecF32 b) { return _mm_max_ps(a, b); }
inline VecF32 min(VecF32 a, VecF32 b) { return _mm_min_ps(a, b); }
// Half to even.
inline VecI32 round(VecF32 v) { return _mm_cvtps_epi32(v); }
inline VecI32 truncate(VecF32 v) { return _mm_cvttps_epi32(v); }
// 0 where v is no number.
inline VecF32 zero_nans(VecF32 v) { return _mm_and_ps(v, _mm_cmpord_ps(v, v)); }
// Half away from zero, for |v| < 2^23: the largest float below 1/2, with the sign of v, is added. What was
// below a half stays below 1 then, and a half becomes 1 as the sum is rounded.
inline VecI32 round_away(VecF32 v) {
  const VecF32 sign = _mm_and_ps(v, _mm_set1_ps(-0.0f));
  return _mm_cvttps_epi32(_mm_add_ps(v, _mm_or_ps(sign, _mm_set1_ps(0.49999997f))));
}
// yes where v > 0, elsewhere no.
inline VecI32 if_positive(VecI32 v, VecI32 yes, VecI32 no) {
  return _mm_blendv_epi8(no, yes, _mm_cmpgt_epi32(v, _mm_setzero_si128()));
}

template <int kCount>
inline VecI32 shift_left(VecI32 v) {
  return _mm_slli_epi32(v, kCount);
}
template <int kCount>
inline VecI32 shift_right(VecI32 v) {
  return _mm_srai_epi32(v, kCount);
}
// With zeros from the left; from 32 on nothing is left.
inline VecI32 shift_right_zeros(VecI32 v, int32_t count) {
  return _mm_srl_epi32(v, _mm_cvtsi32_si128(count));
}
// yes where bit kBit of bits is set, elsewhere no: the bit goes where blending looks at it.
template <int kBit>
inline VecI32 select_bit(VecI32 bits, VecI32 yes, VecI32 no) {
  const VecF32 sign = _mm_castsi128_ps(_mm_slli_epi32(bits, 31 - kBit));
  return _mm_castps_si128(_mm_blendv_ps(_mm_castsi128_ps(no), _mm_castsi128_ps(yes), sign));
}
// yes where v is 0, elsewhere no.
inline VecI32 select_zero(VecI32 v, VecI32 yes, VecI32 no) {
  return _mm_blendv_epi8(no, yes, _mm_cmpeq_epi32(v, _mm_setzero_si128()));
}
// value, but 0 where v > limit.
inline VecI32 zero_above(VecI32 v, int32_t limit, VecI32 value) {
  return _mm_andnot_si128(_mm_cmpgt_epi32(v, set_ints(limit)), value);
}
inline VecF32 as_reals(VecI32 v) { return _mm_castsi128_ps(v); }
inline VecI32 as_ints(VecF32 v) { return _mm_castps_si128(v); }
// yes where a < b, which no NaN is, elsewhere no.
inline VecF32 if_less(VecF32 a, VecF32 b, VecF32 yes, VecF32 no) {
  return _mm_blendv_ps(no, yes, _mm_cmplt_ps(a, b));
}

// The first count (1 .. kLanes) elements; nothing after them is read or written.
inline LaneBytes load_bytes(const uint8_t* from, uint32_t count) {
  if (count != 4) return load_low_bytes(from, count);
  int32_t four;
  __builtin_memcpy(&four, from, 4);
  return _mm_cvtsi32_si128(four);
}
inline LaneBytes set_lane_bytes(uint8_t v) { return _mm_set1_epi8(static_cast<char>(v)); }
inline LaneBytes add_lane_bytes(LaneBytes a, LaneBytes b) { return _mm_add_epi8(a, b); }
inline void store_bytes(uint8_t* to, LaneBytes bytes, uint32_t count) { store_low_bytes(to, bytes, count); }
inline void store_ints(void* to, VecI32 v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), v); }
inline VecI32 load_ints(const void* from) { return load_whole(from); }
inline VecF32 load_reals(const float* from) { return _mm_loadu_ps(from); }
inline VecI32 load_ints(const int32_t* from, uint32_t count) {
  if (count == 4) return load_whole(from);
  int32_t some[4] = {from[0], count > 1 ? from[1] : 0, count > 2 ? from[2] : 0, 0};
  return load_whole(some);
}
inline VecF32 load_reals(const float* from, uint32_t count) {
  if (count == 4) return _mm_loadu_ps(from);
  return _mm_setr_ps(from[0], count > 1 ? from[1] : 0.0f, count > 2 ? from[2] : 0.0f, 0.0f);
}
inline void store_reals(float* to, VecF32 v, uint32_t count) {
  if (count == 4) return _mm_storeu_ps(to, v);
  float all[4];
  _mm_storeu_ps(all, v);
  for (uint32_t i = 0; i < count; ++i) to[i] = all[i];
}
// kLanes bytes without a sign.
inline VecI32 widen(const uint8_t* bytes) {
  int32_t four;
  __builtin_memcpy(&four, bytes, 4);
  return _mm_cvtepu8_epi32(_mm_cvtsi32_si128(four));
}
inline VecI32 widen(LaneBytes bytes, Dtype dtype) {
  return dtype == Dtype::kS8 ? _mm_cvtepi8_epi32(bytes) : _mm_cvtepu8_epi32(bytes);
}

// ---- bytes ----

constexpr uint32_t kBytes = 16;

inline VecI32 set_bytes(uint8_t v) { return _mm_set1_epi8(static_cast<char>(v)); }
inline VecI32 bit_xor(VecI32 a, VecI32 b) { return _mm_xor_si128(a, b); }
inline VecI32 max_bytes(VecI32 a, VecI32 b) { return _mm_max_epu8(a, b); }
inline VecI32 min_bytes(VecI32 a, VecI32 b) { return _mm_min_epu8(a, b); }
inline VecI32 interleave_low_bytes(VecI32 a, VecI32 b) { return _mm_unpacklo_epi8(a, b); }
inline VecI32 interleave_high_bytes(VecI32 a, VecI32 b) { return _mm_unpackhi_epi8(a, b); }
inline VecI32 interleave_low_words(VecI32 a, VecI32 b) { return _mm_unpacklo_epi16(a, b); }
inline VecI32 interleave_high_words(VecI32 a, VecI32 b) { return _mm_unpackhi_epi16(a, b); }
// Saturating: int32 to int16, int16 to uint8.
inline VecI32 pack_ints(VecI32 a, VecI32 b) { return _mm_packs_epi32(a, b); }
inline VecI32 pack_words(VecI32 a, VecI32 b) { return _mm_packus_epi16(a, b); }

inline VecI32 set_words(int16_t v) { return _mm_set1_epi16(v); }
inline VecI32 add_words(VecI32 a, VecI32 b) { return _mm_add_epi16(a, b); }
inline VecI32 add_words_saturating(VecI32 a, VecI32 b) { return _mm_adds_epi16(a, b); }

// 16 bits, kBytes / 2 of them.
template <bool kSigned>
inline VecI32 load_words(const uint8_t* bytes) {
  const __m128i v = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
  return kSigned ? _mm_cvtepi8_epi16(v) : _mm_cvtepu8_epi16(v);
}
inline VecI32 sub_words(VecI32 a, VecI32 b) { return _mm_sub_epi16(a, b); }
inline VecI32 mul_words(VecI32 a, VecI32 b) { return _mm_mullo_epi16(a, b); }
template <int kCount>
inline VecI32 shift_left_words(VecI32 v) {
  return _mm_slli_epi16(v, kCount);
}
template <int kCount>
inline VecI32 shift_right_words(VecI32 v) {
  return _mm_srai_epi16(v, kCount);
}
template <int kCount>
inline VecI32 shift_right_zeros_words(VecI32 v) {
  return _mm_srli_epi16(v, kCount);
}
// The first count words, which are values of int8 or of uint8, as bytes.
template <bool kSigned>
inline void store_words_as_bytes(uint8_t* to, VecI32 v, uint32_t count) {
  store_low_bytes(to, kSigned ? _mm_packs_epi16(v, v) : _mm_packus_epi16(v, v), count);
}

// Pairs of int16: a0 * b0 + a1 * b1.
inline VecI32 multiply_pairs(VecI32 a, VecI32 b) { return _mm_madd_epi16(a, b); }
inline VecI32 min_unsigned(VecI32 a, VecI32 b) { return _mm_min_epu32(a, b); }
inline VecI32 shift_right(VecI32 v, int32_t count) { return _mm_sra_epi32(v, _mm_cvtsi32_si128(count)); }
// Whether a lane of a is below that of b, both without a sign.
inline bool any_below(VecI32 a, VecI32 b) {
  return _mm_movemask_epi8(_mm_cmpeq_epi32(_mm_max_epu32(a, b), a)) != 0xffff;
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
  store_low_bytes(to, bytes, count < kBytes ? count : kBytes);
}

// v, with 0 after its first count bytes.
inline VecI32 first_bytes(VecI32 v, uint32_t count) {
  const __m128i index = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm_and_si128(v, _mm_cmpgt_epi8(_mm_set1_epi8(static_cast<char>(count)), index));
}
// The largest byte of v, in each byte.
inline VecI32 largest_in_all(VecI32 v) { return largest_byte_in_all(v); }
// The index of the first byte in which a and b are equal; kBytes if they differ in all.
inline uint32_t first_equal(VecI32 a, VecI32 b) {
  const auto found = static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(a, b)));
  return found == 0 ? kBytes : static_cast<uint32_t>(__builtin_ctz(found));
}

// A table of 256 bytes.
struct TableRow {
  using Vec = VecI32;
  static VecI32 load(const uint8_t* from) { return load_whole(from); }
  static VecI32 low_bits(VecI32 x) { return _mm_and_si128(x, _mm_set1_epi8(15)); }
  static VecI32 shuffle(VecI32 row, VecI32 low) { return _mm_shuffle_epi8(row, low); }
  template <int kBit>
  static VecI32 choose(VecI32 lower, VecI32 upper, VecI32 x) {
    return _mm_blendv_epi8(lower, upper, _mm_slli_epi16(x, 7 - kBit));
  }
};
using ByteTable = RowTable<TableRow>;

// The largest of bytes ^ sign_bias.
inline uint8_t largest_byte(const uint8_t* from, uint32_t count, uint8_t sign_bias) {
  uint8_t most = 0;
  uint64_t i = 0;
  if (count >= kBytes) {
    const VecI32 sign_biases = set_bytes(sign_bias);
    VecI32 bytes = _mm_setzero_si128();
    for (; i + kBytes <= count; i += kBytes)
      bytes = max_bytes(bytes, bit_xor(load_whole(from + i), sign_biases));
    __m128i v = bytes;
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
inline BytePairs load_pairs(const uint8_t* a, const uint8_t* b, uint32_t count, LaneBytes sign_bias) {
  const __m128i pairs =
      _mm_xor_si128(_mm_unpacklo_epi8(load_low_bytes(a, count), load_low_bytes(b, count)), sign_bias);
  return {_mm_cvtepu8_epi16(pairs), _mm_unpackhi_epi8(pairs, _mm_setzero_si128())};
}

// ---- requantisation ----

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
struct Requant {
  VecI32 multiplier;
  VecI32 left;         // 2^max(shift, 0), or 1
  VecI32 even_addend;  // with 2^63; of channels 0 and 2
  VecI32 odd_addend;   // of channels 1 and 3
  VecI32 lowers;       // INT32_MIN where negative x are lowered
  VecI32 offset;       // 2^(63 - count) modulo 2^32
  VecI32 count[4];
  bool shifts_left;
};

// multiplier and shift have 4 entries; contract is kTfl2 or kTfl1.
inline Requant make_requant(const int32_t* multiplier, const int32_t* shift, Contract contract) {
  Requant r;
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
  r.multiplier = load_whole(multiplier);
  r.left = load_whole(left);
  r.even_addend = _mm_set_epi64x(static_cast<int64_t>(addend[2]), static_cast<int64_t>(addend[0]));
  r.odd_addend = _mm_set_epi64x(static_cast<int64_t>(addend[3]), static_cast<int64_t>(addend[1]));
  r.lowers = load_whole(lowers);
  r.offset = load_whole(offset);
  return r;
}

inline Requant set_requant(int32_t multiplier, int32_t shift, Contract contract) {
  const int32_t multipliers[4] = {multiplier, multiplier, multiplier, multiplier};
  const int32_t shifts[4] = {shift, shift, shift, shift};
  return make_requant(multipliers, shifts, contract);
}

// TFL2.
inline Requant set_requant(int32_t multiplier, int32_t shift) {
  return set_requant(multiplier, shift, Contract::kTfl2);
}

inline VecI32 requantize(VecI32 a, const Requant& r) {
  const VecI32 x = r.shifts_left ? _mm_mullo_epi32(a, r.left) : a;
  const VecI32 lowered = _mm_and_si128(x, r.lowers);
  const VecI32 even = _mm_sub_epi64(_mm_add_epi64(_mm_mul_epi32(x, r.multiplier), r.even_addend),
                                    _mm_blend_epi16(lowered, _mm_setzero_si128(), 0xCC));
  const VecI32 odd = _mm_sub_epi64(
      _mm_add_epi64(_mm_mul_epi32(_mm_srli_epi64(x, 32), _mm_srli_epi64(r.multiplier, 32)), r.odd_addend),
      _mm_srli_epi64(lowered, 32));
  const VecI32 even_quotient =
      _mm_blend_epi16(_mm_srl_epi64(even, r.count[0]), _mm_srl_epi64(even, r.count[2]), 0xF0);
  const VecI32 odd_quotient =
      _mm_blend_epi16(_mm_srl_epi64(odd, r.count[1]), _mm_srl_epi64(odd, r.count[3]), 0xF0);
  return _mm_sub_epi32(_mm_blend_epi16(even_quotient, _mm_slli_epi64(odd_quotient, 32), 0xCC), r.offset);
}

// TFL1.
struct RequantOnce {
  Requant requant;
};
inline RequantOnce set_requant_once(int32_t multiplier, int32_t shift) {
  return {set_requant(multiplier, shift, Contract::kTfl1)};
}
inline VecI32 requantize(VecI32 v, const RequantOnce& r) { return requantize(v, r.requant); }

// The constants of kLanes channels, or of the first `count` of them.
inline Requant load_requant(const int32_t* multiplier, const int32_t* shift) {
  return make_requant(multiplier, shift, Contract::kTfl2);
}
inline RequantOnce load_requant_once(const int32_t* multiplier, const int32_t* shift) {
  return {make_requant(multiplier, shift, Contract::kTfl1)};
}
inline Requant load_requant_of(Contract contract, const int32_t* multiplier, const int32_t* shift,
                               uint32_t count) {
  if (count == 4) return make_requant(multiplier, shift, contract);
  int32_t multipliers[4], shifts[4];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(multipliers), load_ints(multiplier, count));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(shifts), load_ints(shift, count));
  return make_requant(multipliers, shifts, contract);
}
inline Requant load_requant(const int32_t* multiplier, const int32_t* shift, uint32_t count) {
  return load_requant_of(Contract::kTfl2, multiplier, shift, count);
}
inline RequantOnce load_requant_once(const int32_t* multiplier, const int32_t* shift, uint32_t count) {
  return {load_requant_of(Contract::kTfl1, multiplier, shift, count)};
}

// floor((a * b + 2^30) / 2^31): even and odd lanes in 64 bits each, of which bits 31..62 are the result.
inline VecI32 doubling_high_mul(VecI32 a, VecI32 b) {
  const VecI32 half = _mm_set1_epi64x(int64_t{1} << 30);
  const VecI32 even = _mm_add_epi64(_mm_mul_epi32(a, b), half);
  const VecI32 odd = _mm_add_epi64(_mm_mul_epi32(_mm_srli_epi64(a, 32), _mm_srli_epi64(b, 32)), half);
  return _mm_blend_epi16(_mm_srli_epi64(even, 31), _mm_slli_epi64(odd, 1), 0xCC);
}

// The low byte of each lane, in the low 4 bytes.
inline LaneBytes low_bytes(VecI32 v) {
  return _mm_shuffle_epi8(v, _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
}

// Zero point and clamp of 16 outputs at once, as uint8; 128 is added to int8 on the way.
struct OutputBytes {
  VecI32 zero_point;  // int16
  VecI32 clamp_min, clamp_max, sign_bias;
  template <typename Args>
  explicit OutputBytes(const Args& args) {
    const bool is_signed = args.output_zero_point < 0 || args.clamp_min < 0;
    const int32_t to_unsigned = is_signed ? 128 : 0;
    zero_point = _mm_set1_epi16(static_cast<int16_t>(args.output_zero_point + to_unsigned));
    clamp_min = _mm_set1_epi8(static_cast<char>(args.clamp_min + to_unsigned));
    clamp_max = _mm_set1_epi8(static_cast<char>(args.clamp_max + to_unsigned));
    sign_bias = _mm_set1_epi8(static_cast<char>(to_unsigned));
  }
  // The bytes of a, then those of b, c, d. Everything on the way saturates.
  VecI32 pack(VecI32 a, VecI32 b, VecI32 c, VecI32 d) const {
    const VecI32 ab = _mm_adds_epi16(_mm_packs_epi32(a, b), zero_point);
    const VecI32 cd = _mm_adds_epi16(_mm_packs_epi32(c, d), zero_point);
    const VecI32 bytes = _mm_packus_epi16(ab, cd);
    return _mm_xor_si128(_mm_min_epu8(_mm_max_epu8(bytes, clamp_min), clamp_max), sign_bias);
  }
};

// Float epilogues are passed over (kHasFma).
struct PlainEpilogue {
  static constexpr bool kIsFloat = true;
  template <typename Args>
  PlainEpilogue(const Args&, uint32_t) {}
  PlainEpilogue(VecF32, VecF32) {}
  VecI32 outputs(VecI32 v) const { return v; }
};
using SignedEpilogue = PlainEpilogue;
struct EpilogueRounding {
  explicit EpilogueRounding(bool) {}
};

// ---- dot products (kernels/simd/gemm.h) ----
// Products are formed in 16 bits and summed in 32 (pmaddwd), where nothing can saturate. 16 registers hold
// the sums of 8 channels and two rows: vector q has two partial sums for each of the channels 2q and 2q + 1.

constexpr uint32_t kDotVectors = 4;
constexpr uint32_t kDotRows = 2;
constexpr bool kDotKeepsLanes = false;
using DotSignBias = __m128i;
using DotRow = __m128i;
using DotWeights = __m128i;

inline DotSignBias dot_sign_bias(uint8_t sign_bias) { return _mm_set1_epi8(static_cast<char>(sign_bias)); }
// Four bytes, twice, as 16 bits each.
inline DotRow dot_row(const uint8_t* from, DotSignBias sign_bias) {
  int32_t four;
  __builtin_memcpy(&four, from, 4);
  return _mm_cvtepu8_epi16(_mm_xor_si128(_mm_set1_epi32(four), sign_bias));
}
inline DotWeights dot_weights(const int8_t* from) {
  return _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}
inline void dot_add(VecI32& sums, DotRow row, DotWeights weights) {
  sums = _mm_add_epi32(sums, _mm_madd_epi16(row, weights));
}
inline VecI32 dot_sums(const VecI32 (&sums)[kDotVectors], uint32_t half) {
  return _mm_hadd_epi32(sums[2 * half], sums[2 * half + 1]);
}

inline VecI32 add_byte_sums(VecI32 sums, VecI32 bytes) {
  return _mm_add_epi64(sums, _mm_sad_epu8(bytes, _mm_setzero_si128()));
}
inline uint32_t total_byte_sums(VecI32 sums) {
  return static_cast<uint32_t>(_mm_cvtsi128_si64(sums)) + static_cast<uint32_t>(_mm_extract_epi64(sums, 1));
}
inline void store_halves(uint8_t* to, size_t stride, VecI32 bytes, uint32_t count, uint32_t rows) {
  store_low_bytes(to, bytes, count);
  if (rows == 2) store_low_bytes(to + stride, _mm_srli_si128(bytes, 8), count);
}

}  // namespace
}  // namespace qplan

#include "kernels/simd/simd.h"  // what all have in common, over these names

#endif  // QPLAN_KERNELS_SIMD_SSE41_H_
