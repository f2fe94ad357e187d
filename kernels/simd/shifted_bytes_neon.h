// TFL2 in integers for the tiles of 64-bit Arm: bytes of sums by three instructions for each four of them,
// two where no clamp is below the zero point, and three for each sixteen. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_SHIFTED_BYTES_NEON_H_
#define QPLAN_KERNELS_SIMD_SHIFTED_BYTES_NEON_H_

#include <arm_neon.h>
#include <stdint.h>

#include "kernels/numeric/requantize.h"
#include "kernels/simd/plain_bytes_neon.h"

namespace qplan {
namespace {

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

#endif  // QPLAN_KERNELS_SIMD_SHIFTED_BYTES_NEON_H_
