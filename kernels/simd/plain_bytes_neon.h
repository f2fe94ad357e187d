// Outputs as bytes on 64-bit Arm, for kernels whose epilogue is a large part of their time: by the float
// epilogues of kernels/simd/neon.h, and by TFL2 in integers. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_PLAIN_BYTES_NEON_H_
#define QPLAN_KERNELS_SIMD_PLAIN_BYTES_NEON_H_

#include <arm_neon.h>
#include <stdint.h>

#include "kernels/numeric/requantize.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// PlainEpilogue where no clamp is below the zero point (has_plain_bytes): outputs with 24 bits after the
// point, less than 0 as 0, which no clamp is below, and from 256 on just below it. The highest byte of each
// counts, so that three instructions make 16 bytes, where saturating twice takes six.
struct FixedPlainEpilogue : PlainEpilogue {
  using PlainEpilogue::PlainEpilogue;
  VecI32 outputs(VecI32 sum) const { return as_ints(vcvtq_n_u32_f32(fma(to_reals(sum), scale, offset), 24)); }
};
template <typename Args>
inline bool has_plain_bytes(const Args& args) {
  return args.clamp_min >= args.output_zero_point;
}

// The highest bytes of a, then those of b, c, d.
inline uint8x16_t highest_bytes(VecI32 a, VecI32 b, VecI32 c, VecI32 d) {
  const auto halves = [](VecI32 low, VecI32 high) {
    return vreinterpretq_u8_s16(vuzp2q_s16(as_words(low), as_words(high)));
  };
  return vuzp2q_u8(halves(a, b), halves(c, d));
}

// What makes bytes of an epilogue's outputs: pack, then finish for all of a tile at once. Everything on the
// way saturates, as int8 in the end, from which uint8 is 128 away.
template <typename Epilogue>
struct EpilogueBytes {
  int16x8_t zero_point;
  int8x16_t lowest, highest;
  uint8x16_t sign_bias;
  bool is_whole;  // the outputs are int8, and no clamp is within the range
  template <typename Args>
  explicit EpilogueBytes(const Args& args) {
    const int32_t to_signed = args.output_zero_point < 0 || args.clamp_min < 0 ? 0 : -128;
    zero_point = vdupq_n_s16(static_cast<int16_t>(args.output_zero_point + to_signed));
    lowest = vdupq_n_s8(static_cast<int8_t>(args.clamp_min + to_signed));
    highest = vdupq_n_s8(static_cast<int8_t>(args.clamp_max + to_signed));
    sign_bias = vdupq_n_u8(static_cast<uint8_t>(to_signed));
    is_whole = args.clamp_min == -128 && args.clamp_max == 127;
  }
  // Whether `finish` leaves bytes as they are.
  bool is_finished() const { return is_whole; }
  // The bytes of a, then those of b, c, d.
  VecI32 pack(VecI32 a, VecI32 b, VecI32 c, VecI32 d) const {
    const int16x8_t ab = vqaddq_s16(as_words(pack_ints(a, b)), zero_point);
    const int16x8_t cd = vqaddq_s16(as_words(pack_ints(c, d)), zero_point);
    return vreinterpretq_s32_s8(vqmovn_high_s16(vqmovn_s16(ab), cd));
  }
  template <uint32_t kCount>
  __attribute__((always_inline)) void finish(VecI32 (&bytes)[kCount]) const {
    if (is_whole) return;
#pragma GCC unroll 8
    for (VecI32& v : bytes) {
      const int8x16_t clamped = vminq_s8(vmaxq_s8(vreinterpretq_s8_s32(v), lowest), highest);
      v = as_ints(veorq_u8(vreinterpretq_u8_s8(clamped), sign_bias));
    }
  }
};
template <>
struct EpilogueBytes<FixedPlainEpilogue> {
  uint8x16_t lowest, highest, zero_point;
  bool is_whole;  // no clamp is within the range
  template <typename Args>
  explicit EpilogueBytes(const Args& args) {
    const auto low = static_cast<uint8_t>(args.clamp_min - args.output_zero_point);
    const auto high = static_cast<uint8_t>(args.clamp_max - args.output_zero_point);
    lowest = vdupq_n_u8(low);
    highest = vdupq_n_u8(high);
    zero_point = vdupq_n_u8(static_cast<uint8_t>(args.output_zero_point));
    is_whole = low == 0 && high == 255;
  }
  static bool is_finished() { return false; }
  VecI32 pack(VecI32 a, VecI32 b, VecI32 c, VecI32 d) const { return as_ints(highest_bytes(a, b, c, d)); }
  template <uint32_t kCount>
  __attribute__((always_inline)) void finish(VecI32 (&bytes)[kCount]) const {
    if (!is_whole) {
#pragma GCC unroll 8
      for (VecI32& v : bytes) v = as_ints(vminq_u8(vmaxq_u8(as_bytes(v), lowest), highest));
    }
#pragma GCC unroll 8
    for (VecI32& v : bytes) v = as_ints(vaddq_u8(as_bytes(v), zero_point));
  }
};

// with_epilogue, with FixedPlainEpilogue where it serves.
template <typename Args, typename Run>
inline void with_epilogue_of_bytes(const Args& args, uint32_t channel, const Run& run) {
  if (args.contract != Contract::kF32e && args.float_epilogue == FloatEpilogue::kPlain &&
      has_plain_bytes(args) && groups_have_form(args, channel / 16, 1)) {
    run(EpilogueKind<FixedPlainEpilogue>());
  } else {
    with_epilogue(args, channel, run);
  }
}

// Whether it is a scale and an offset. The product overwrites the offset: loading that anew, two vectors at a
// time, takes fewer instructions than copies.
template <typename Epilogue>
constexpr bool kHasOffset = false;
template <>
constexpr bool kHasOffset<PlainEpilogue> = true;
template <>
constexpr bool kHasOffset<FixedPlainEpilogue> = true;
template <>
constexpr bool kHasOffset<SignedEpilogue> = true;

// TFL2 in integers for the tiles of 64-bit Arm: bytes of sums by three instructions for each four of them,
// two where no clamp is below the zero point, and three for each sixteen.

// Channels that are shifted to the right by 1 to 23 bits. With x = doubling_high_mul(sum, multiplier), which
// has the sign of the sum, the output is
//   saturate(floor((x - (sum < 0 ? 1 : 0) + 2^(right - 1) + (zero_point << right)) / 2^right))
// as int8, from which uint8 is 128 away. A shift to the left that saturates brings it into the highest byte:
// what saturates before, at the ends of int32, is at least 2^8 after the shift to the right. kIsPlain: no
// clamp is below the zero point, so that negative sums may be rounded upwards.
constexpr int32_t kMostShifted = 23;
template <bool kIsPlain>
struct ShiftedEpilogue {
  static constexpr bool kIsFloat = false;
};

template <typename Epilogue>
constexpr bool kIsShifted = false;
template <bool kIsPlain>
constexpr bool kIsShifted<ShiftedEpilogue<kIsPlain>> = true;

// The outputs of sums, in the highest bytes. begin: 2^(right - 1) + (zero_point << right).
template <bool kIsPlain, uint32_t kVectors>
__attribute__((always_inline)) inline void shifted_outputs(const int32_t* begin,
                                                           const VecI32 (&multiplier)[kVectors],
                                                           const VecI32 (&left)[kVectors],
                                                           const VecI32 (&sums)[kVectors],
                                                           VecI32 (&outputs)[kVectors]) {
#pragma GCC unroll 4
  for (uint32_t q = 0; q < kVectors; ++q) {
    VecI32 v = load_ints(begin + q * kLanes);
    if constexpr (!kIsPlain) v = vsraq_n_s32(v, sums[q], 31);
#if defined(__ARM_FEATURE_QRDMX)
    v = vqrdmlahq_s32(v, sums[q], multiplier[q]);
#else
    v = vqaddq_s32(v, vqrdmulhq_s32(sums[q], multiplier[q]));
#endif
    outputs[q] = vqshlq_s32(v, left[q]);
  }
}

#if defined(__ARM_FEATURE_QRDMX) && !defined(__clang__)
// Four vectors by thirteen instructions. By number, since GCC 12 copies neighbours that it loads before it
// overwrites them.
template <bool kIsPlain>
__attribute__((always_inline)) inline void shifted_outputs(const int32_t* begin,
                                                           const VecI32 (&multiplier)[4],
                                                           const VecI32 (&left)[4], const VecI32 (&sums)[4],
                                                           VecI32 (&outputs)[4]) {
  register VecI32 a __asm__("v28");
  register VecI32 b __asm__("v29");
  register VecI32 c __asm__("v30");
  register VecI32 d __asm__("v31");
  __asm__ volatile("ld1 {v28.4s - v31.4s}, %4"
                   : "=w"(a), "=w"(b), "=w"(c), "=w"(d)
                   : "Q"(*reinterpret_cast<const int32_t(*)[4 * kLanes]>(begin)));
  if constexpr (!kIsPlain) {
    __asm__(
        "ssra v28.4s, %4.4s, #31\n\tssra v29.4s, %5.4s, #31\n\t"
        "ssra v30.4s, %6.4s, #31\n\tssra v31.4s, %7.4s, #31"
        : "+w"(a), "+w"(b), "+w"(c), "+w"(d)
        : "w"(sums[0]), "w"(sums[1]), "w"(sums[2]), "w"(sums[3]));
  }
  __asm__(
      "sqrdmlah v28.4s, %4.4s, %8.4s\n\tsqrdmlah v29.4s, %5.4s, %9.4s\n\t"
      "sqrdmlah v30.4s, %6.4s, %10.4s\n\tsqrdmlah v31.4s, %7.4s, %11.4s"
      : "+w"(a), "+w"(b), "+w"(c), "+w"(d)
      : "w"(sums[0]), "w"(sums[1]), "w"(sums[2]), "w"(sums[3]), "w"(multiplier[0]), "w"(multiplier[1]),
        "w"(multiplier[2]), "w"(multiplier[3]));
  outputs[0] = vqshlq_s32(a, left[0]);
  outputs[1] = vqshlq_s32(b, left[1]);
  outputs[2] = vqshlq_s32(c, left[2]);
  outputs[3] = vqshlq_s32(d, left[3]);
}
#endif

// Whether the channels of the group of 16 from `channel` on are shifted so, or have a multiplier of 0, under
// which their shift is as good as any.
template <typename Args>
inline bool group_is_shifted(const Args& args, uint32_t channel) {
  if (args.contract != Contract::kTfl2) return false;
  uint32x4_t all = vdupq_n_u32(~0u);
#pragma GCC unroll 4
  for (uint32_t q = 0; q < 4; ++q) {
    const VecI32 shift = load_ints(args.shift + channel + q * kLanes);
    const VecI32 multiplier = load_ints(args.multiplier + channel + q * kLanes);
    const uint32x4_t is_between =
        vcltq_u32(as_unsigned(add(shift, set_ints(kMostShifted))), vdupq_n_u32(kMostShifted));
    all = vandq_u32(all, vorrq_u32(is_between, vceqzq_s32(multiplier)));
  }
  return vminvq_u32(all) != 0;
}

// With the constants of the first kChannels channels of args.
template <bool kIsPlain, uint32_t kChannels>
struct ShiftedBytes : EpilogueBytes<void> {
  alignas(16) int32_t begin[kChannels];
  alignas(16) int32_t left[kChannels];

  template <typename Args>
  explicit ShiftedBytes(const Args& args) : EpilogueBytes<void>(args) {
    const VecI32 twice_zero_point = vmovl_s16(vget_low_s16(vshlq_n_s16(zero_point, 1)));
    const VecI32 odd = add(twice_zero_point, set_ints(1));
#pragma GCC unroll 4
    for (uint32_t c = 0; c < kChannels; c += kLanes) {
      const VecI32 shift = max(min(load_ints(args.shift + c), set_ints(-1)), set_ints(-kMostShifted));
      store_ints(begin + c, vshlq_s32(odd, vmvnq_s32(shift)));  // -1 - shift
      store_ints(left + c, add(shift, set_ints(kMostShifted + 1)));
    }
  }
  VecI32 pack(VecI32 a, VecI32 b, VecI32 c, VecI32 d) const { return as_ints(highest_bytes(a, b, c, d)); }
};

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_PLAIN_BYTES_NEON_H_
