// The vocabulary of kernels/simd/simd.h with the Advanced SIMD that every AArch64 has: 4 int32 or float32, or
// 16 bytes. F32E relies on the floating point environment that programs start with: rounding to nearest even,
// subnormals kept. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_NEON_H_
#define QPLAN_KERNELS_SIMD_NEON_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"

#if !defined(QPLAN_SIMD_ISA)
#define QPLAN_SIMD_ISA neon
#define QPLAN_SIMD_VECTORS neon
#endif

namespace qplan {
namespace {

// int32, or bits of any kind; float32; the bytes of kLanes elements, the first ones of it.
constexpr uint32_t kLanes = 4;
using VecI32 = int32x4_t;
using VecF32 = float32x4_t;
using LaneBytes = uint8x8_t;

inline uint8x16_t as_bytes(VecI32 v) { return vreinterpretq_u8_s32(v); }
inline int16x8_t as_words(VecI32 v) { return vreinterpretq_s16_s32(v); }
inline uint32x4_t as_unsigned(VecI32 v) { return vreinterpretq_u32_s32(v); }
inline VecI32 as_ints(uint8x16_t v) { return vreinterpretq_s32_u8(v); }
inline VecI32 as_ints(int16x8_t v) { return vreinterpretq_s32_s16(v); }
inline VecI32 as_ints(uint32x4_t v) { return vreinterpretq_s32_u32(v); }

inline VecI32 load_whole(const void* p) { return as_ints(vld1q_u8(static_cast<const uint8_t*>(p))); }

inline VecI32 set_ints(int32_t v) { return vdupq_n_s32(v); }
inline VecF32 set_reals(float v) { return vdupq_n_f32(v); }

// Integers wrap.
inline VecI32 add(VecI32 a, VecI32 b) { return vaddq_s32(a, b); }
inline VecI32 sub(VecI32 a, VecI32 b) { return vsubq_s32(a, b); }
inline VecI32 mul(VecI32 a, VecI32 b) { return vmulq_s32(a, b); }
inline VecI32 max(VecI32 a, VecI32 b) { return vmaxq_s32(a, b); }
inline VecI32 min(VecI32 a, VecI32 b) { return vminq_s32(a, b); }
inline VecI32 bit_and(VecI32 a, VecI32 b) { return vandq_s32(a, b); }
inline VecI32 shift_left(VecI32 v, int32_t count) { return vshlq_s32(v, set_ints(count)); }
inline VecF32 add(VecF32 a, VecF32 b) { return vaddq_f32(a, b); }
inline VecF32 sub(VecF32 a, VecF32 b) { return vsubq_f32(a, b); }
inline VecF32 mul(VecF32 a, VecF32 b) { return vmulq_f32(a, b); }
inline VecF32 div(VecF32 a, VecF32 b) { return vdivq_f32(a, b); }
// a * b + c, rounded once.
constexpr bool kHasFma = true;
inline VecF32 fma(VecF32 a, VecF32 b, VecF32 c) { return vfmaq_f32(c, a, b); }

inline VecF32 to_reals(VecI32 v) { return vcvtq_f32_s32(v); }
inline VecF32 max(VecF32 a, VecF32 b) { return vmaxq_f32(a, b); }
inline VecF32 min(VecF32 a, VecF32 b) { return vminq_f32(a, b); }
// Half to even.
inline VecI32 round(VecF32 v) { return vcvtnq_s32_f32(v); }
inline VecI32 truncate(VecF32 v) { return vcvtq_s32_f32(v); }
inline VecF32 as_reals(VecI32 v) { return vreinterpretq_f32_s32(v); }
inline VecI32 as_ints(VecF32 v) { return vreinterpretq_s32_f32(v); }
// yes where a < b, which no NaN is, elsewhere no.
inline VecF32 if_less(VecF32 a, VecF32 b, VecF32 yes, VecF32 no) {
  return vbslq_f32(vcltq_f32(a, b), yes, no);
}
// 0 where v is no number.
inline VecF32 zero_nans(VecF32 v) {
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v), vceqq_f32(v, v)));
}
// Half away from zero.
inline VecI32 round_away(VecF32 v) { return vcvtaq_s32_f32(v); }
// yes where v > 0, elsewhere no.
inline VecI32 if_positive(VecI32 v, VecI32 yes, VecI32 no) { return vbslq_s32(vcgtzq_s32(v), yes, no); }

template <int kCount>
inline VecI32 shift_left(VecI32 v) {
  return vshlq_n_s32(v, kCount);
}
template <int kCount>
inline VecI32 shift_right(VecI32 v) {
  return vshrq_n_s32(v, kCount);
}
// With zeros from the left; from 32 on nothing is left.
inline VecI32 shift_right_zeros(VecI32 v, int32_t count) {
  return as_ints(vshlq_u32(as_unsigned(v), set_ints(-(count < 32 ? count : 32))));
}
// yes where bit kBit of bits is set, elsewhere no.
template <int kBit>
inline VecI32 select_bit(VecI32 bits, VecI32 yes, VecI32 no) {
  return vbslq_s32(vtstq_s32(bits, set_ints(static_cast<int32_t>(1u << kBit))), yes, no);
}
// yes where v is 0, elsewhere no.
inline VecI32 select_zero(VecI32 v, VecI32 yes, VecI32 no) { return vbslq_s32(vceqzq_s32(v), yes, no); }
// value, but 0 where v > limit.
inline VecI32 zero_above(VecI32 v, int32_t limit, VecI32 value) {
  return vbicq_s32(value, vreinterpretq_s32_u32(vcgtq_s32(v, set_ints(limit))));
}

inline uint32_t load_four(const uint8_t* from) {
  uint32_t four;
  __builtin_memcpy(&four, from, 4);
  return four;
}
// The first count (1 .. 8) bytes of `from`, by loads that overlap; nothing after them is read.
inline uint64_t load_eight(const uint8_t* from, uint32_t count) {
  uint64_t bytes = 0;
  if (count == 8) {
    __builtin_memcpy(&bytes, from, 8);
  } else if (count >= 4) {
    bytes = load_four(from) | uint64_t{load_four(from + count - 4)} << (8 * (count - 4));
  } else {
    for (uint32_t i = count; i-- > 0;) bytes = bytes << 8 | from[i];
  }
  return bytes;
}
inline void store_eight(uint8_t* to, uint64_t bytes, uint32_t count) {
  if (count == 8) {
    __builtin_memcpy(to, &bytes, 8);
    return;
  }
  if ((count & 4) != 0) {
    __builtin_memcpy(to, &bytes, 4);
    bytes >>= 32;
    to += 4;
  }
  if ((count & 2) != 0) {
    __builtin_memcpy(to, &bytes, 2);
    bytes >>= 16;
    to += 2;
  }
  if ((count & 1) != 0) *to = static_cast<uint8_t>(bytes);
}

// The first count (1 .. kLanes) elements; nothing after them is read or written.
inline LaneBytes load_bytes(const uint8_t* from, uint32_t count) {
  return vcreate_u8(load_eight(from, count));
}
inline LaneBytes set_lane_bytes(uint8_t v) { return vdup_n_u8(v); }
inline LaneBytes add_lane_bytes(LaneBytes a, LaneBytes b) { return vadd_u8(a, b); }
inline void store_bytes(uint8_t* to, LaneBytes bytes, uint32_t count) {
  if (count == 4) {
    const uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
    __builtin_memcpy(to, &four, 4);
  } else {
    store_eight(to, vget_lane_u64(vreinterpret_u64_u8(bytes), 0), count);
  }
}
inline void store_ints(void* to, VecI32 v) { vst1q_u8(static_cast<uint8_t*>(to), as_bytes(v)); }
inline VecI32 load_ints(const void* from) { return load_whole(from); }
inline VecF32 load_reals(const float* from) { return vld1q_f32(from); }
// Two vectors of `from`, by one instruction: GCC 12 makes it of two loads only where they stay neighbours.
template <typename Element, typename Vector>
__attribute__((always_inline)) inline void load_two(const Element* from, Vector& first, Vector& second) {
  const auto* vectors = reinterpret_cast<const Vector*>(from);
#if defined(__clang__)
  first = vectors[0];
  second = vectors[1];
#else
  __asm__("ldp %q0, %q1, %2" : "=w"(first), "=w"(second) : "Ump"(vectors[0]), "m"(vectors[1]));
#endif
}

inline VecI32 load_ints(const int32_t* from, uint32_t count) {
  if (count == 4) return load_whole(from);
  const int32_t some[4] = {from[0], count > 1 ? from[1] : 0, count > 2 ? from[2] : 0, 0};
  return load_whole(some);
}
inline VecF32 load_reals(const float* from, uint32_t count) {
  if (count == 4) return vld1q_f32(from);
  const float some[4] = {from[0], count > 1 ? from[1] : 0.0f, count > 2 ? from[2] : 0.0f, 0.0f};
  return vld1q_f32(some);
}
inline void store_reals(float* to, VecF32 v, uint32_t count) {
  if (count == 4) return vst1q_f32(to, v);
  float all[4];
  vst1q_f32(all, v);
  for (uint32_t i = 0; i < count; ++i) to[i] = all[i];
}
inline VecI32 widen(LaneBytes bytes, Dtype dtype) {
  if (dtype == Dtype::kS8) return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(bytes))));
  return as_ints(vmovl_u16(vget_low_u16(vmovl_u8(bytes))));
}
// kLanes bytes without a sign.
inline VecI32 widen(const uint8_t* bytes) { return widen(load_bytes(bytes, kLanes), Dtype::kU8); }

// ---- bytes ----

constexpr uint32_t kBytes = 16;

inline VecI32 set_bytes(uint8_t v) { return as_ints(vdupq_n_u8(v)); }
inline VecI32 bit_xor(VecI32 a, VecI32 b) { return veorq_s32(a, b); }
inline VecI32 max_bytes(VecI32 a, VecI32 b) { return as_ints(vmaxq_u8(as_bytes(a), as_bytes(b))); }
inline VecI32 min_bytes(VecI32 a, VecI32 b) { return as_ints(vminq_u8(as_bytes(a), as_bytes(b))); }
inline VecI32 interleave_low_bytes(VecI32 a, VecI32 b) {
  return as_ints(vzip1q_u8(as_bytes(a), as_bytes(b)));
}
inline VecI32 interleave_high_bytes(VecI32 a, VecI32 b) {
  return as_ints(vzip2q_u8(as_bytes(a), as_bytes(b)));
}
inline VecI32 interleave_low_words(VecI32 a, VecI32 b) {
  return as_ints(vzip1q_s16(as_words(a), as_words(b)));
}
inline VecI32 interleave_high_words(VecI32 a, VecI32 b) {
  return as_ints(vzip2q_s16(as_words(a), as_words(b)));
}
// Saturating: int32 to int16, int16 to uint8.
inline VecI32 pack_ints(VecI32 a, VecI32 b) { return as_ints(vqmovn_high_s32(vqmovn_s32(a), b)); }
inline VecI32 pack_words(VecI32 a, VecI32 b) {
  return as_ints(vqmovun_high_s16(vqmovun_s16(as_words(a)), as_words(b)));
}

inline VecI32 set_words(int16_t v) { return as_ints(vdupq_n_s16(v)); }
inline VecI32 add_words(VecI32 a, VecI32 b) { return as_ints(vaddq_s16(as_words(a), as_words(b))); }
inline VecI32 add_words_saturating(VecI32 a, VecI32 b) {
  return as_ints(vqaddq_s16(as_words(a), as_words(b)));
}
// 16 bits, kBytes / 2 of them.
template <bool kSigned>
inline VecI32 load_words(const uint8_t* bytes) {
  const uint8x8_t v = vld1_u8(bytes);
  return as_ints(kSigned ? vmovl_s8(vreinterpret_s8_u8(v)) : vreinterpretq_s16_u16(vmovl_u8(v)));
}
inline VecI32 sub_words(VecI32 a, VecI32 b) { return as_ints(vsubq_s16(as_words(a), as_words(b))); }
inline VecI32 mul_words(VecI32 a, VecI32 b) { return as_ints(vmulq_s16(as_words(a), as_words(b))); }
template <int kCount>
inline VecI32 shift_left_words(VecI32 v) {
  return as_ints(vshlq_n_s16(as_words(v), kCount));
}
template <int kCount>
inline VecI32 shift_right_words(VecI32 v) {
  return as_ints(vshrq_n_s16(as_words(v), kCount));
}
template <int kCount>
inline VecI32 shift_right_zeros_words(VecI32 v) {
  return as_ints(vreinterpretq_s16_u16(vshrq_n_u16(vreinterpretq_u16_s32(v), kCount)));
}
// The first count words, which are values of int8 or of uint8, as bytes.
template <bool kSigned>
inline void store_words_as_bytes(uint8_t* to, VecI32 v, uint32_t count) {
  const uint8x8_t bytes = vmovn_u16(vreinterpretq_u16_s32(v));
  if (count == 8) return vst1_u8(to, bytes);
  store_eight(to, vget_lane_u64(vreinterpret_u64_u8(bytes), 0), count);
}

// A header of its own for the float epilogue of add and sub.
#define QPLAN_SIMD_FLOAT_ADD "kernels/simd/float_add_neon.h"

// Pairs of int16: a0 * b0 + a1 * b1.
inline VecI32 multiply_pairs(VecI32 a, VecI32 b) {
  return vpaddq_s32(vmull_s16(vget_low_s16(as_words(a)), vget_low_s16(as_words(b))),
                    vmull_high_s16(as_words(a), as_words(b)));
}
inline VecI32 min_unsigned(VecI32 a, VecI32 b) { return as_ints(vminq_u32(as_unsigned(a), as_unsigned(b))); }
inline VecI32 shift_right(VecI32 v, int32_t count) { return vshlq_s32(v, set_ints(-count)); }
// Whether a lane of a is below that of b, both without a sign.
inline bool any_below(VecI32 a, VecI32 b) {
  return vmaxvq_u32(vcltq_u32(as_unsigned(a), as_unsigned(b))) != 0;
}

// The first count (1 .. kBytes) bytes; nothing after them is read or written. kLoadsFewBytes: it takes about
// as long as kBytes do.
constexpr bool kLoadsFewBytes = true;
inline VecI32 load_vector(const uint8_t* from, uint32_t count) {
  if (count >= kBytes) return load_whole(from);
  const uint64_t low = load_eight(from, count < 8 ? count : 8);
  const uint64_t high = count > 8 ? load_eight(from + 8, count - 8) : 0;
  return vreinterpretq_s32_u64(vcombine_u64(vcreate_u64(low), vcreate_u64(high)));
}
inline void store_vector(uint8_t* to, VecI32 bytes, uint32_t count) {
  if (count >= kBytes) return store_ints(to, bytes);
  const uint64x2_t halves = vreinterpretq_u64_s32(bytes);
  store_eight(to, vgetq_lane_u64(halves, 0), count < 8 ? count : 8);
  if (count > 8) store_eight(to + 8, vgetq_lane_u64(halves, 1), count - 8);
}

// v, with 0 after its first count bytes.
inline VecI32 first_bytes(VecI32 v, uint32_t count) {
  const uint8x16_t index = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return as_ints(vandq_u8(as_bytes(v), vcltq_u8(index, vdupq_n_u8(static_cast<uint8_t>(count)))));
}
// The largest byte of v, in each byte.
inline VecI32 largest_in_all(VecI32 v) { return as_ints(vdupq_n_u8(vmaxvq_u8(as_bytes(v)))); }
// The index of the first byte in which a and b are equal; kBytes if they differ in all.
inline uint32_t first_equal(VecI32 a, VecI32 b) {
  const uint8x16_t equal = vceqq_u8(as_bytes(a), as_bytes(b));
  // Four bits of each byte.
  const uint64_t found = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(equal), 4)), 0);
  return found == 0 ? kBytes : static_cast<uint32_t>(__builtin_ctzll(found)) / 4;
}

// A table of 256 bytes: sixteen registers, of which four are looked into at a time.
class ByteTable {
 public:
  explicit ByteTable(const uint8_t* table) {
    for (int i = 0; i < 4; ++i) {
      rows_[i] = {vld1q_u8(table + 64 * i), vld1q_u8(table + 64 * i + 16), vld1q_u8(table + 64 * i + 32),
                  vld1q_u8(table + 64 * i + 48)};
    }
  }
  VecI32 look_up(VecI32 x) const {
    const uint8x16_t next = vdupq_n_u8(64);
    uint8x16_t index = as_bytes(x);
    uint8x16_t found = vqtbl4q_u8(rows_[0], index);
    for (int i = 1; i < 4; ++i) {
      index = vsubq_u8(index, next);
      found = vqtbx4q_u8(found, rows_[i], index);
    }
    return as_ints(found);
  }

 private:
  uint8x16x4_t rows_[4];
};

// 16 pixels of 2 to 4 channels of a byte, between planes `stride` bytes apart and pixels side by side.
template <int kChannels, bool kToPixels>
struct PixelMover {
  static constexpr uint32_t kPixels = 16;
  void move(const uint8_t* from, uint8_t* to, uint64_t stride) const {
    if constexpr (kToPixels) {
      const uint8x16_t first = vld1q_u8(from), second = vld1q_u8(from + stride);
      // By name, since stores are macros in clang, which would take braces apart.
      if constexpr (kChannels == 2) {
        const uint8x16x2_t pixels = {{first, second}};
        vst2q_u8(to, pixels);
      } else if constexpr (kChannels == 3) {
        const uint8x16x3_t pixels = {{first, second, vld1q_u8(from + 2 * stride)}};
        vst3q_u8(to, pixels);
      } else {
        const uint8x16x4_t pixels = {
            {first, second, vld1q_u8(from + 2 * stride), vld1q_u8(from + 3 * stride)}};
        vst4q_u8(to, pixels);
      }
    } else if constexpr (kChannels == 2) {
      store_planes<2>(vld2q_u8(from).val, to, stride);
    } else if constexpr (kChannels == 3) {
      store_planes<3>(vld3q_u8(from).val, to, stride);
    } else {
      store_planes<4>(vld4q_u8(from).val, to, stride);
    }
  }

 private:
  template <int kPlanes>
  static void store_planes(const uint8x16_t (&planes)[kPlanes], uint8_t* to, uint64_t stride) {
    for (int c = 0; c < kPlanes; ++c) vst1q_u8(to + static_cast<uint64_t>(c) * stride, planes[c]);
  }
};

// The largest of bytes ^ sign_bias.
inline uint8_t largest_byte(const uint8_t* from, uint32_t count, uint8_t sign_bias) {
  uint8_t most = 0;
  uint64_t i = 0;
  if (count >= kBytes) {
    const VecI32 sign_biases = set_bytes(sign_bias);
    VecI32 bytes = set_ints(0);
    for (; i + kBytes <= count; i += kBytes)
      bytes = max_bytes(bytes, bit_xor(load_whole(from + i), sign_biases));
    most = vmaxvq_u8(as_bytes(bytes));
  }
  for (; i < count; ++i) {
    const uint8_t byte = static_cast<uint8_t>(from[i] ^ sign_bias);
    most = byte > most ? byte : most;
  }
  return most;
}

// ---- requantisation ----

// floor((a * b + 2^30) / 2^31); one of a and b is above -2^31.
inline VecI32 doubling_high_mul(VecI32 a, VecI32 b) { return vqrdmulhq_s32(a, b); }

// Multipliers and shifts of 4 channels: to the left, and negative ones to the right.
struct Requant {
  VecI32 multiplier, left, right;
};
inline Requant make_requant(VecI32 multiplier, VecI32 shift) {
  return {multiplier, max(shift, set_ints(0)), min(shift, set_ints(0))};
}
inline Requant set_requant(int32_t multiplier, int32_t shift) {
  return make_requant(set_ints(multiplier), set_ints(shift));
}
// The rounding shift takes ties upwards; one less for what is negative takes them away from zero.
inline VecI32 requantize(VecI32 a, const Requant& r) {
  const VecI32 v = doubling_high_mul(vshlq_s32(a, r.left), r.multiplier);
  const VecI32 lowered = vqaddq_s32(v, vshrq_n_s32(vandq_s32(v, r.right), 31));
  return vrshlq_s32(lowered, r.right);
}

// TFL1.
struct RequantOnce {
  VecI32 multiplier;
  int64x2_t low_right, high_right;  // shift - 31
};
inline RequantOnce make_requant_once(VecI32 multiplier, VecI32 shift) {
  const VecI32 right = sub(shift, set_ints(31));
  return {multiplier, vmovl_s32(vget_low_s32(right)), vmovl_high_s32(right)};
}
inline RequantOnce set_requant_once(int32_t multiplier, int32_t shift) {
  return make_requant_once(set_ints(multiplier), set_ints(shift));
}
inline VecI32 requantize(VecI32 v, const RequantOnce& r) {
  const int64x2_t low = vmull_s32(vget_low_s32(v), vget_low_s32(r.multiplier));
  const int64x2_t high = vmull_high_s32(v, r.multiplier);
  return vmovn_high_s64(vmovn_s64(vrshlq_s64(low, r.low_right)), vrshlq_s64(high, r.high_right));
}

// The constants of kLanes channels, or of the first `count` of them.
inline Requant load_requant(const int32_t* multiplier, const int32_t* shift) {
  return make_requant(load_ints(multiplier), load_ints(shift));
}
inline RequantOnce load_requant_once(const int32_t* multiplier, const int32_t* shift) {
  return make_requant_once(load_ints(multiplier), load_ints(shift));
}
inline Requant load_requant(const int32_t* multiplier, const int32_t* shift, uint32_t count) {
  return make_requant(load_ints(multiplier, count), load_ints(shift, count));
}
inline RequantOnce load_requant_once(const int32_t* multiplier, const int32_t* shift, uint32_t count) {
  return make_requant_once(load_ints(multiplier, count), load_ints(shift, count));
}

// The low byte of each lane.
inline LaneBytes low_bytes(VecI32 v) {
  const uint16x4_t words = vmovn_u32(as_unsigned(v));
  return vmovn_u16(vcombine_u16(words, words));
}

// Zero point and clamp of 16 outputs at once, as uint8; 128 is added to int8 on the way.
struct OutputBytes {
  VecI32 zero_point;  // int16
  VecI32 clamp_min, clamp_max, sign_bias;
  template <typename Args>
  explicit OutputBytes(const Args& args) {
    const bool is_signed = args.output_zero_point < 0 || args.clamp_min < 0;
    const int32_t to_unsigned = is_signed ? 128 : 0;
    zero_point = set_words(static_cast<int16_t>(args.output_zero_point + to_unsigned));
    clamp_min = set_bytes(static_cast<uint8_t>(args.clamp_min + to_unsigned));
    clamp_max = set_bytes(static_cast<uint8_t>(args.clamp_max + to_unsigned));
    sign_bias = set_bytes(static_cast<uint8_t>(to_unsigned));
  }
  // The bytes of a, then those of b, c, d. Everything on the way saturates.
  VecI32 pack(VecI32 a, VecI32 b, VecI32 c, VecI32 d) const {
    const VecI32 ab = add_words_saturating(pack_ints(a, b), zero_point);
    const VecI32 cd = add_words_saturating(pack_ints(c, d), zero_point);
    return bit_xor(min_bytes(max_bytes(pack_words(ab, cd), clamp_min), clamp_max), sign_bias);
  }
};

// For the time of its life floats are rounded towards zero, as float epilogues want it: FPCR's field, since
// instructions cannot say it themselves. What computes is to be a function of its own.
class EpilogueRounding {
 public:
  explicit EpilogueRounding(bool wanted) : before_(0) {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
    if (wanted) set(before_ | kTowardsZero);
  }
  ~EpilogueRounding() { set(before_); }
  EpilogueRounding(const EpilogueRounding&) = delete;
  EpilogueRounding& operator=(const EpilogueRounding&) = delete;

 private:
  static constexpr uint64_t kTowardsZero = uint64_t{3} << 22;
  static void set(uint64_t fpcr) { __asm__ volatile("msr fpcr, %0" : : "r"(fpcr)); }
  uint64_t before_;
};

// FloatEpilogue::kPlain, under EpilogueRounding.
struct PlainEpilogue {
  static constexpr bool kIsFloat = true;
  VecF32 scale, offset;
  template <typename Args>
  PlainEpilogue(const Args& args, uint32_t channel)
      : scale(load_reals(args.float_scale + channel)), offset(load_reals(args.float_offset + channel)) {}
  PlainEpilogue(VecF32 scale_of_all, VecF32 offset_of_all) : scale(scale_of_all), offset(offset_of_all) {}
  VecI32 outputs(VecI32 sum) const { return truncate(fma(to_reals(sum), scale, offset)); }
};

// FloatEpilogue::kSigned, under EpilogueRounding.
struct SignedEpilogue {
  static constexpr bool kIsFloat = true;
  VecF32 scale, offset;
  template <typename Args>
  SignedEpilogue(const Args& args, uint32_t channel)
      : scale(load_reals(args.float_scale + channel)), offset(load_reals(args.float_offset + channel)) {}
  SignedEpilogue(VecF32 scale_of_all, VecF32 offset_of_all) : scale(scale_of_all), offset(offset_of_all) {}
  VecI32 outputs(VecI32 sum) const {
    // The sign of the sum, the rest of the offset, which is not negative.
    const VecF32 signed_offset = vbslq_f32(vdupq_n_u32(0x80000000u), as_reals(sum), offset);
    return truncate(fma(to_reals(sum), scale, signed_offset));
  }
};

// ---- layers ----

// Signed products need no sums of weights where the origin is 128. USMMLA (QPLAN_SIMD_EIGHTS) multiplies
// uint8 whose zero point is 0 without them, too, so that int8 alone is centred there.
#define QPLAN_SIMD_OWN_CENTRED 1
inline bool takes_centred(Dtype dtype) {
#if defined(QPLAN_SIMD_EIGHTS)
  return dtype == Dtype::kS8;
#else
  return dtype == Dtype::kS8 || dtype == Dtype::kU8;
#endif
}

// ---- dot products (kernels/simd/gemm.h) ----

#define QPLAN_SIMD_ROWS "kernels/simd/rows_neon.h"

inline void store_halves(uint8_t* to, size_t stride, VecI32 bytes, uint32_t count, uint32_t rows) {
  const uint8x16_t all = as_bytes(bytes);
  if (count == 8) {
    vst1_u8(to, vget_low_u8(all));
    if (rows == 2) vst1_u8(to + stride, vget_high_u8(all));
    return;
  }
  store_eight(to, vgetq_lane_u64(vreinterpretq_u64_u8(all), 0), count);
  if (rows == 2) store_eight(to + stride, vgetq_lane_u64(vreinterpretq_u64_u8(all), 1), count);
}

// ---- taps of depthwise convolutions ----

// Two taps of 2 * kLanes channels: their weights stay in registers. Bytes are seen as uint8, from which their
// origin is taken.
#define QPLAN_SIMD_OWN_TAPS 1
struct TapBytes {
  uint8x8_t sign_bias, origin;
};
template <typename Args>
inline TapBytes tap_bytes(const Args& a) {
  return {vdup_n_u8(a.input_dtype == Dtype::kS8 ? 0x80 : 0),
          vdup_n_u8(a.input_zero_point == dtype_min(a.input_dtype) ? 0 : 0x80)};
}
using TapWeights = int16x8x2_t;
inline TapWeights tap_weights(const int32_t* pairs) {
  return vld2q_s16(reinterpret_cast<const int16_t*>(pairs));
}
inline int16x8_t tap_words(const uint8_t* from, uint32_t count, const TapBytes& kind) {
  const uint8x8_t bytes = count == 8 ? vld1_u8(from) : load_bytes(from, count);
  return vreinterpretq_s16_u16(vsubl_u8(veor_u8(bytes, kind.sign_bias), kind.origin));
}
inline void add_taps(VecI32& low, VecI32& high, const uint8_t* a, const uint8_t* b, uint32_t count,
                     const TapBytes& kind, const TapWeights& weights) {
  const int16x8_t first = tap_words(a, count, kind), second = tap_words(b, count, kind);
  low = vmlal_s16(low, vget_low_s16(first), vget_low_s16(weights.val[0]));
  low = vmlal_s16(low, vget_low_s16(second), vget_low_s16(weights.val[1]));
  high = vmlal_high_s16(high, first, weights.val[0]);
  high = vmlal_high_s16(high, second, weights.val[1]);
}

}  // namespace
}  // namespace qplan

#if !defined(QPLAN_SIMD_TILES)
#define QPLAN_SIMD_TILES "kernels/simd/tiles_neon.h"
#endif
#include "kernels/simd/simd.h"  // what all have in common, over these names

#endif  // QPLAN_KERNELS_SIMD_NEON_H_
