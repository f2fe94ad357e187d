// The vocabulary of kernels/simd/simd.h in plain C++ with the vector types of GCC and Clang, which make of
// them what the processor has: 4 int32 or float32, or 16 bytes. For processors without kernels of their own,
// and what an editor sees where it opens a kernel alone. Needs little-endian memory and rounding to nearest
// even, as all kernels do. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_GENERIC_H_
#define QPLAN_KERNELS_SIMD_GENERIC_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"

#if !defined(QPLAN_SIMD_ISA)
#define QPLAN_SIMD_ISA generic
#define QPLAN_SIMD_VECTORS generic
#endif

// Lanes of a and b by their numbers, as many as a has. Mask: integers of the lanes' size; GCC has the
// function of Clang since 12.
#if defined(__clang__) || __GNUC__ >= 12
#define QPLAN_SHUFFLE(Mask, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define QPLAN_SHUFFLE(Mask, a, b, ...) __builtin_shuffle(a, b, Mask{__VA_ARGS__})
#endif

namespace qplan {
namespace {

constexpr uint32_t kLanes = 4;
typedef int32_t VecI32 __attribute__((vector_size(16)));
typedef float VecF32 __attribute__((vector_size(16)));
typedef uint8_t LaneBytes __attribute__((vector_size(4)));

typedef uint32_t VecU32 __attribute__((vector_size(16)));
typedef int16_t VecI16 __attribute__((vector_size(16)));
typedef uint16_t VecU16 __attribute__((vector_size(16)));
typedef uint8_t VecU8 __attribute__((vector_size(16)));
typedef int64_t VecWide __attribute__((vector_size(32)));
typedef uint8_t HalfU8 __attribute__((vector_size(8)));
typedef int8_t HalfI8 __attribute__((vector_size(8)));

template <typename To, typename From>
inline To bits_of(From v) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To to;
  __builtin_memcpy(&to, &v, sizeof(to));
  return to;
}
inline VecI32 wrapped(VecU32 v) { return bits_of<VecI32>(v); }
inline VecU32 unwrapped(VecI32 v) { return bits_of<VecU32>(v); }

inline VecI32 load_whole(const void* p) {
  VecI32 v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

inline VecI32 set_ints(int32_t v) { return VecI32{v, v, v, v}; }
inline VecF32 set_reals(float v) { return VecF32{v, v, v, v}; }

// Integers wrap.
inline VecI32 add(VecI32 a, VecI32 b) { return wrapped(unwrapped(a) + unwrapped(b)); }
inline VecI32 sub(VecI32 a, VecI32 b) { return wrapped(unwrapped(a) - unwrapped(b)); }
inline VecI32 mul(VecI32 a, VecI32 b) { return wrapped(unwrapped(a) * unwrapped(b)); }
inline VecI32 max(VecI32 a, VecI32 b) { return a > b ? a : b; }
inline VecI32 min(VecI32 a, VecI32 b) { return a < b ? a : b; }
inline VecI32 bit_and(VecI32 a, VecI32 b) { return a & b; }
inline VecI32 shift_left(VecI32 v, int32_t count) {
  return wrapped(unwrapped(v) << static_cast<uint32_t>(count));
}
inline VecF32 add(VecF32 a, VecF32 b) { return a + b; }
inline VecF32 sub(VecF32 a, VecF32 b) { return a - b; }
inline VecF32 mul(VecF32 a, VecF32 b) { return a * b; }
inline VecF32 div(VecF32 a, VecF32 b) { return a / b; }
inline VecF32 to_reals(VecI32 v) { return __builtin_convertvector(v, VecF32); }
inline VecF32 max(VecF32 a, VecF32 b) { return a > b ? a : b; }
inline VecF32 min(VecF32 a, VecF32 b) { return a < b ? a : b; }
#if defined(QPLAN_SIMD_OWN_CONVERSION)
inline VecI32 truncate_inside(VecF32 v) {
  VecI32 result;
  QPLAN_SIMD_OWN_CONVERSION(&v, &result);
  return result;
}
#endif
// What is beyond int32, and what is no number, becomes its minimum.
inline VecI32 truncate(VecF32 v) {
  const VecI32 inside = (v >= set_reals(-2147483648.0f)) & (v < set_reals(2147483648.0f));
  const VecF32 limited = inside ? v : set_reals(0.0f);
#if defined(QPLAN_SIMD_OWN_CONVERSION)
  return inside ? truncate_inside(limited) : set_ints(INT32_MIN);
#else
  return inside ? __builtin_convertvector(limited, VecI32) : set_ints(INT32_MIN);
#endif
}
// Half to even: what is below 2^23 loses its fraction where 2^23 of its sign is added; what is above has
// none.
inline VecI32 round(VecF32 v) {
  const VecI32 bits = bits_of<VecI32>(v);
  const VecF32 magic = bits_of<VecF32>(bits_of<VecI32>(set_reals(8388608.0f)) | (bits & set_ints(INT32_MIN)));
  const VecF32 magnitude = bits_of<VecF32>(bits & set_ints(INT32_MAX));
  const VecF32 rounded = (v + magic) - magic;
  return truncate(magnitude < set_reals(8388608.0f) ? rounded : v);
}
// 0 where v is no number.
inline VecF32 zero_nans(VecF32 v) { return v == v ? v : set_reals(0.0f); }
// Half away from zero, for |v| < 2^23: the largest float below 1/2, with the sign of v, is added. What was
// below a half stays below 1 then, and a half becomes 1 as the sum is rounded.
inline VecI32 round_away(VecF32 v) {
  const VecI32 sign = bits_of<VecI32>(v) & set_ints(INT32_MIN);
  return truncate(v + bits_of<VecF32>(sign | bits_of<VecI32>(set_reals(0.49999997f))));
}
// yes where v > 0, elsewhere no.
inline VecI32 if_positive(VecI32 v, VecI32 yes, VecI32 no) { return v > set_ints(0) ? yes : no; }

template <int kCount>
inline VecI32 shift_left(VecI32 v) {
  return shift_left(v, kCount);
}
template <int kCount>
inline VecI32 shift_right(VecI32 v) {
  return v >> kCount;
}
// With zeros from the left; from 32 on nothing is left.
inline VecI32 shift_right_zeros(VecI32 v, int32_t count) {
  return count > 31 ? set_ints(0) : wrapped(unwrapped(v) >> static_cast<uint32_t>(count));
}
// yes where bit kBit of bits is set, elsewhere no.
template <int kBit>
inline VecI32 select_bit(VecI32 bits, VecI32 yes, VecI32 no) {
  return (bits & set_ints(1 << kBit)) != set_ints(0) ? yes : no;
}
// yes where v is 0, elsewhere no.
inline VecI32 select_zero(VecI32 v, VecI32 yes, VecI32 no) { return v == set_ints(0) ? yes : no; }
// value, but 0 where v > limit.
inline VecI32 zero_above(VecI32 v, int32_t limit, VecI32 value) {
  return v > set_ints(limit) ? set_ints(0) : value;
}
inline VecF32 as_reals(VecI32 v) { return bits_of<VecF32>(v); }
// yes where a < b, which no NaN is, elsewhere no.
inline VecF32 if_less(VecF32 a, VecF32 b, VecF32 yes, VecF32 no) { return a < b ? yes : no; }

// The first count (1 .. kLanes) elements; nothing after them is read or written.
template <typename Vec>
inline Vec load_first(const void* from, size_t bytes) {
  Vec v = {};
  if (bytes == sizeof(v)) {
    __builtin_memcpy(&v, from, sizeof(v));
  } else {
    __builtin_memcpy(&v, from, bytes);
  }
  return v;
}
template <typename Vec>
inline void store_first(void* to, Vec v, size_t bytes) {
  if (bytes == sizeof(v)) {
    __builtin_memcpy(to, &v, sizeof(v));
  } else {
    __builtin_memcpy(to, &v, bytes);
  }
}
inline LaneBytes load_bytes(const uint8_t* from, uint32_t count) {
  return load_first<LaneBytes>(from, count);
}
inline LaneBytes set_lane_bytes(uint8_t v) { return LaneBytes{v, v, v, v}; }
inline LaneBytes add_lane_bytes(LaneBytes a, LaneBytes b) { return a + b; }
inline void store_bytes(uint8_t* to, LaneBytes bytes, uint32_t count) { store_first(to, bytes, count); }
inline void store_ints(void* to, VecI32 v) { store_first(to, v, sizeof(v)); }
inline VecI32 load_ints(const void* from) { return load_whole(from); }
inline VecF32 load_reals(const float* from) { return load_first<VecF32>(from, sizeof(VecF32)); }
inline VecI32 load_ints(const int32_t* from, uint32_t count) {
  return load_first<VecI32>(from, count * sizeof(int32_t));
}
inline VecF32 load_reals(const float* from, uint32_t count) {
  return load_first<VecF32>(from, count * sizeof(float));
}
inline void store_reals(float* to, VecF32 v, uint32_t count) { store_first(to, v, count * sizeof(float)); }
inline VecI32 widen(LaneBytes bytes, Dtype dtype) {
  const VecI32 v = __builtin_convertvector(bytes, VecI32);
  return dtype == Dtype::kS8 ? (v ^ set_ints(128)) - set_ints(128) : v;
}
// kLanes bytes without a sign.
inline VecI32 widen(const uint8_t* bytes) { return widen(load_bytes(bytes, kLanes), Dtype::kU8); }

// ---- bytes ----

constexpr uint32_t kBytes = 16;

inline VecU8 as_bytes(VecI32 v) { return bits_of<VecU8>(v); }
inline VecI16 as_words(VecI32 v) { return bits_of<VecI16>(v); }
template <typename Vec>
inline VecI32 as_ints(Vec v) {
  return bits_of<VecI32>(v);
}

inline VecI32 set_bytes(uint8_t v) { return set_ints(static_cast<int32_t>(v * 0x01010101u)); }
inline VecI32 bit_xor(VecI32 a, VecI32 b) { return a ^ b; }
inline VecI32 max_bytes(VecI32 a, VecI32 b) {
  return as_ints(as_bytes(a) > as_bytes(b) ? as_bytes(a) : as_bytes(b));
}
inline VecI32 min_bytes(VecI32 a, VecI32 b) {
  return as_ints(as_bytes(a) < as_bytes(b) ? as_bytes(a) : as_bytes(b));
}
inline VecI32 interleave_low_bytes(VecI32 a, VecI32 b) {
  return as_ints(
      QPLAN_SHUFFLE(VecU8, as_bytes(a), as_bytes(b), 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
}
inline VecI32 interleave_high_bytes(VecI32 a, VecI32 b) {
  return as_ints(QPLAN_SHUFFLE(VecU8, as_bytes(a), as_bytes(b), 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                               14, 30, 15, 31));
}
inline VecI32 interleave_low_words(VecI32 a, VecI32 b) {
  return as_ints(QPLAN_SHUFFLE(VecI16, as_words(a), as_words(b), 0, 8, 1, 9, 2, 10, 3, 11));
}
inline VecI32 interleave_high_words(VecI32 a, VecI32 b) {
  return as_ints(QPLAN_SHUFFLE(VecI16, as_words(a), as_words(b), 4, 12, 5, 13, 6, 14, 7, 15));
}
// Saturating: int32 to int16, int16 to uint8.
inline VecI32 pack_ints(VecI32 a, VecI32 b) {
  const VecI32 low = set_ints(INT16_MIN), high = set_ints(INT16_MAX);
  const VecI16 first = as_words(min(max(a, low), high)), second = as_words(min(max(b, low), high));
  return as_ints(QPLAN_SHUFFLE(VecI16, first, second, 0, 2, 4, 6, 8, 10, 12, 14));
}
inline VecU8 limited_to_bytes(VecI32 v) {
  const VecI16 low = {}, high = low + int16_t{255};
  VecI16 words = as_words(v);
  words = words < low ? low : words;
  return bits_of<VecU8>(words > high ? high : words);
}
inline VecI32 pack_words(VecI32 a, VecI32 b) {
  return as_ints(QPLAN_SHUFFLE(VecU8, limited_to_bytes(a), limited_to_bytes(b), 0, 2, 4, 6, 8, 10, 12, 14, 16,
                               18, 20, 22, 24, 26, 28, 30));
}

inline VecI32 set_words(int16_t v) { return as_ints(VecI16{v, v, v, v, v, v, v, v}); }
inline VecI32 add_words(VecI32 a, VecI32 b) { return as_ints(bits_of<VecU16>(a) + bits_of<VecU16>(b)); }
inline VecI32 add_words_saturating(VecI32 a, VecI32 b) {
  const VecI16 x = as_words(a), y = as_words(b), sum = as_words(add_words(a, b));
  // Where both have a sign that the sum has not, it is the end on their side.
  const VecI16 beyond = ((x ^ sum) & (y ^ sum)) < VecI16{};
  return as_ints(beyond ? (x >> 15) ^ as_words(set_words(INT16_MAX)) : sum);
}

// 16 bits, kBytes / 2 of them.
template <bool kSigned>
inline VecI32 load_words(const uint8_t* bytes) {
  if (kSigned) return as_ints(__builtin_convertvector(load_first<HalfI8>(bytes, sizeof(HalfI8)), VecI16));
  return as_ints(__builtin_convertvector(load_first<HalfU8>(bytes, sizeof(HalfU8)), VecI16));
}
inline VecI32 sub_words(VecI32 a, VecI32 b) { return as_ints(bits_of<VecU16>(a) - bits_of<VecU16>(b)); }
inline VecI32 mul_words(VecI32 a, VecI32 b) { return as_ints(bits_of<VecU16>(a) * bits_of<VecU16>(b)); }
template <int kCount>
inline VecI32 shift_left_words(VecI32 v) {
  return as_ints(bits_of<VecU16>(v) << kCount);
}
template <int kCount>
inline VecI32 shift_right_words(VecI32 v) {
  return as_ints(as_words(v) >> kCount);
}
template <int kCount>
inline VecI32 shift_right_zeros_words(VecI32 v) {
  return as_ints(bits_of<VecU16>(v) >> kCount);
}
// The first count words, which are values of int8 or of uint8, as bytes.
template <bool kSigned>
inline void store_words_as_bytes(uint8_t* to, VecI32 v, uint32_t count) {
  store_first(to, __builtin_convertvector(as_words(v), HalfU8), count);
}

// Pairs of int16: a0 * b0 + a1 * b1.
inline VecI32 low_words(VecI32 v) { return shift_left(v, 16) >> 16; }
inline VecI32 multiply_pairs(VecI32 a, VecI32 b) {
  return add(low_words(a) * low_words(b), (a >> 16) * (b >> 16));
}
inline VecI32 min_unsigned(VecI32 a, VecI32 b) { return unwrapped(a) < unwrapped(b) ? a : b; }
inline VecI32 shift_right(VecI32 v, int32_t count) { return v >> count; }
// Whether a lane of a is below that of b, both without a sign.
inline bool any_below(VecI32 a, VecI32 b) {
  const VecI32 below = unwrapped(a) < unwrapped(b);
  return (below[0] | below[1] | below[2] | below[3]) != 0;
}

// The first count (1 .. kBytes) bytes; nothing after them is read or written. kLoadsFewBytes: it takes about
// as long as kBytes do.
constexpr bool kLoadsFewBytes = false;
inline VecI32 load_vector(const uint8_t* from, uint32_t count) {
  return load_first<VecI32>(from, count < kBytes ? count : kBytes);
}
inline void store_vector(uint8_t* to, VecI32 bytes, uint32_t count) {
  store_first(to, bytes, count < kBytes ? count : kBytes);
}

// v, with 0 after its first count bytes.
inline VecI32 first_bytes(VecI32 v, uint32_t count) {
  for (uint32_t k = count; k < kBytes; ++k) {
    VecU8 bytes = as_bytes(v);
    bytes[k] = 0;
    v = as_ints(bytes);
  }
  return v;
}
// The largest byte of v, in each byte.
inline VecI32 largest_in_all(VecI32 v) {
  uint8_t most = 0;
  for (uint32_t k = 0; k < kBytes; ++k) most = as_bytes(v)[k] > most ? as_bytes(v)[k] : most;
  return set_bytes(most);
}
// The index of the first byte in which a and b are equal; kBytes if they differ in all.
inline uint32_t first_equal(VecI32 a, VecI32 b) {
  for (uint32_t k = 0; k < kBytes; ++k) {
    if (as_bytes(a)[k] == as_bytes(b)[k]) return k;
  }
  return kBytes;
}

// A table of 256 bytes.
class ByteTable {
 public:
  explicit ByteTable(const uint8_t* table) : table_(table) {}
  VecI32 look_up(VecI32 x) const {
    VecU8 found = {};
    for (uint32_t k = 0; k < kBytes; ++k) found[k] = table_[as_bytes(x)[k]];
    return as_ints(found);
  }

 private:
  const uint8_t* table_;
};

// 16 pixels of 2 to 4 channels of a byte, between planes `stride` bytes apart and pixels side by side.
template <int kChannels, bool kToPixels>
struct PixelMover {
  static constexpr uint32_t kPixels = 16;
  void move(const uint8_t* from, uint8_t* to, uint64_t stride) const {
    for (uint32_t p = 0; p < kPixels; ++p) {
      for (uint32_t c = 0; c < kChannels; ++c) {
        const uint64_t pixel = p * kChannels + c, plane = c * stride + p;
        to[kToPixels ? pixel : plane] = from[kToPixels ? plane : pixel];
      }
    }
  }
};

// The largest of bytes ^ sign_bias.
inline uint8_t largest_byte(const uint8_t* from, uint32_t count, uint8_t sign_bias) {
  uint8_t most = 0;
  uint64_t i = 0;
  if (count >= kBytes) {
    const VecI32 sign_biases = set_bytes(sign_bias);
    VecI32 bytes = {};
    for (; i + kBytes <= count; i += kBytes)
      bytes = max_bytes(bytes, bit_xor(load_whole(from + i), sign_biases));
    for (uint32_t k = 0; k < kBytes; ++k) most = as_bytes(bytes)[k] > most ? as_bytes(bytes)[k] : most;
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
  const VecI32 pairs =
      bit_xor(interleave_low_bytes(load_vector(a, count), load_vector(b, count)), set_bytes(sign_bias[0]));
  return {interleave_low_bytes(pairs, set_ints(0)), interleave_high_bytes(pairs, set_ints(0))};
}

// ---- requantisation ----

// floor((a * b + 2^30) / 2^31).
inline VecI32 doubling_high_mul(VecI32 a, VecI32 b) {
  const VecWide product = __builtin_convertvector(a, VecWide) * __builtin_convertvector(b, VecWide);
  return __builtin_convertvector((product + (int64_t{1} << 30)) >> 31, VecI32);
}

// Multipliers and shifts of 4 channels.
struct Requant {
  VecI32 multiplier;
  VecI32 left;
  VecI32 right;
  VecI32 mask;       // 2^right - 1
  VecI32 threshold;  // mask >> 1
};

inline Requant make_requant(VecI32 multiplier, VecI32 shift) {
  const VecI32 zero = set_ints(0);
  Requant r;
  r.multiplier = multiplier;
  r.left = max(shift, zero);
  r.right = max(sub(zero, shift), zero);
  r.mask = wrapped((unwrapped(set_ints(1)) << unwrapped(r.right)) - 1u);
  r.threshold = r.mask >> 1;
  return r;
}
inline Requant set_requant(int32_t multiplier, int32_t shift) {
  return make_requant(set_ints(multiplier), set_ints(shift));
}

// v / 2^right to nearest, ties away from zero.
inline VecI32 rounding_shift_right(VecI32 v, const Requant& r) {
  const VecI32 remainder = v & r.mask;
  const VecI32 threshold = sub(r.threshold, v >> 31);
  // A comparison that holds is -1.
  return sub(v >> r.right, remainder > threshold);
}

inline VecI32 requantize(VecI32 a, const Requant& r) {
  const VecI32 shifted = wrapped(unwrapped(a) << unwrapped(r.left));
  return rounding_shift_right(doubling_high_mul(shifted, r.multiplier), r);
}

// TFL1.
struct RequantOnce {
  VecI32 multiplier, shift;
};
inline RequantOnce set_requant_once(int32_t multiplier, int32_t shift) {
  return {set_ints(multiplier), set_ints(shift)};
}
inline VecI32 requantize(VecI32 v, const RequantOnce& r) {
  VecI32 result = {};
  for (uint32_t i = 0; i < kLanes; ++i) result[i] = requantize_tfl1(v[i], r.multiplier[i], r.shift[i]);
  return result;
}

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
inline LaneBytes low_bytes(VecI32 v) { return __builtin_convertvector(v, LaneBytes); }

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

}  // namespace
}  // namespace qplan

#if defined(QPLAN_SIMD_FLOAT_EPILOGUES)
#include QPLAN_SIMD_FLOAT_EPILOGUES
#else

namespace qplan {
namespace {

// There may be none, and rounding towards zero wants the processor's own words: forms that need them are
// passed over.
constexpr bool kHasFma = false;
inline VecF32 fma(VecF32 a, VecF32, VecF32) { return a; }

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

}  // namespace
}  // namespace qplan

#endif  // QPLAN_SIMD_FLOAT_EPILOGUES

namespace qplan {
namespace {

// ---- dot products (kernels/simd/gemm.h) ----
// Products of a uint8 and an int8 fit 16 bits; neighbours are added up in 32. Vector q has two partial sums
// for each of the channels 2q and 2q + 1.

constexpr uint32_t kDotVectors = 4;
#if defined(__aarch64__)
constexpr uint32_t kDotRows = 4;  // of 32 registers
#else
constexpr uint32_t kDotRows = 2;
#endif
constexpr bool kDotKeepsLanes = false;
using DotSignBias = uint32_t;
using DotRow = VecI16;
using DotWeights = VecI16;

inline DotSignBias dot_sign_bias(uint8_t sign_bias) { return sign_bias * 0x01010101u; }
// Four bytes, twice, as 16 bits each.
inline DotRow dot_row(const uint8_t* from, DotSignBias sign_bias) {
  uint32_t four;
  __builtin_memcpy(&four, from, 4);
  const uint64_t twice = (four ^ sign_bias) * uint64_t{0x100000001};
  return __builtin_convertvector(bits_of<HalfU8>(twice), VecI16);
}
inline DotWeights dot_weights(const int8_t* from) {
  return __builtin_convertvector(load_first<HalfI8>(from, sizeof(HalfI8)), VecI16);
}
inline void dot_add(VecI32& sums, DotRow row, DotWeights weights) {
  const VecI32 products = bits_of<VecI32>(row * weights);
  sums = add(sums, add(low_words(products), products >> 16));
}
inline VecI32 dot_sums(const VecI32 (&sums)[kDotVectors], uint32_t half) {
  const VecI32 a = sums[2 * half], b = sums[2 * half + 1];
  return add(QPLAN_SHUFFLE(VecI32, a, b, 0, 2, 4, 6), QPLAN_SHUFFLE(VecI32, a, b, 1, 3, 5, 7));
}

inline VecI32 add_byte_sums(VecI32 sums, VecI32 bytes) {
  const VecU16 words = bits_of<VecU16>(bytes);
  const VecU32 pairs = bits_of<VecU32>((words & uint16_t{255}) + (words >> 8));
  return wrapped(unwrapped(sums) + (pairs & 0xffffu) + (pairs >> 16));
}
inline uint32_t total_byte_sums(VecI32 sums) {
  const VecU32 v = unwrapped(sums);
  return v[0] + v[1] + v[2] + v[3];
}
inline void store_halves(uint8_t* to, size_t stride, VecI32 bytes, uint32_t count, uint32_t rows) {
  uint64_t halves[2];
  __builtin_memcpy(halves, &bytes, sizeof(halves));
  store_first(to, halves[0], count);
  if (rows == 2) store_first(to + stride, halves[1], count);
}

}  // namespace
}  // namespace qplan

#include "kernels/simd/simd.h"  // what all have in common, over these names

#endif  // QPLAN_KERNELS_SIMD_GENERIC_H_
