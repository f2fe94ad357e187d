// The float epilogues of kernels/simd/neon.h for kernels whose epilogue is a large part of their time.
// Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_PLAIN_BYTES_NEON_H_
#define QPLAN_KERNELS_SIMD_PLAIN_BYTES_NEON_H_

#include <arm_neon.h>
#include <stdint.h>

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

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_PLAIN_BYTES_NEON_H_
