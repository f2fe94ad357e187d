// Bytes of the plain float epilogue, for kernels whose epilogue is a large part of their time. Internal
// linkage only.
#ifndef QPLAN_KERNELS_SIMD_PLAIN_BYTES_NEON_H_
#define QPLAN_KERNELS_SIMD_PLAIN_BYTES_NEON_H_

#include <arm_neon.h>
#include <stdint.h>

#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// OutputBytes of PlainEpilogue where no clamp is below the zero point (has_plain_bytes): what is negative
// before the zero point is below every clamp, and 7 instructions make 16 bytes in place of 11 where all of
// uint8 or int8 are outputs.
struct PlainBytes {
  uint8x16_t lowest, highest, zero_point;
  bool is_whole;  // no clamp is within the range
  template <typename Args>
  explicit PlainBytes(const Args& args) {
    const auto low = static_cast<uint8_t>(args.clamp_min - args.output_zero_point);
    const auto high = static_cast<uint8_t>(args.clamp_max - args.output_zero_point);
    lowest = vdupq_n_u8(low);
    highest = vdupq_n_u8(high);
    zero_point = vdupq_n_u8(static_cast<uint8_t>(args.output_zero_point));
    is_whole = low == 0 && high == 255;
  }
  VecI32 pack(VecI32 a, VecI32 b, VecI32 c, VecI32 d) const {
    const uint16x8_t ab = vqmovun_high_s32(vqmovun_s32(a), b), cd = vqmovun_high_s32(vqmovun_s32(c), d);
    uint8x16_t all = vqmovn_high_u16(vqmovn_u16(ab), cd);
    if (!is_whole) all = vminq_u8(vmaxq_u8(all, lowest), highest);
    return as_ints(vaddq_u8(all, zero_point));
  }
};
template <typename Args>
inline bool has_plain_bytes(const Args& args) {
  return args.clamp_min >= args.output_zero_point;
}

// What makes bytes of an epilogue's outputs.
template <typename Epilogue>
struct EpilogueBytes {
  using Type = OutputBytes;
};
template <>
struct EpilogueBytes<PlainEpilogue> {
  using Type = PlainBytes;
};

// A plain epilogue whose outputs may be below the zero point: its bytes are OutputBytes.
struct LowPlainEpilogue : PlainEpilogue {
  using PlainEpilogue::PlainEpilogue;
};

// with_epilogue, with PlainEpilogue only where it has PlainBytes.
template <typename Args, typename Run>
inline void with_epilogue_of_bytes(const Args& args, uint32_t channel, const Run& run) {
  if (args.contract != Contract::kF32e && args.float_epilogue == FloatEpilogue::kPlain &&
      !has_plain_bytes(args) && groups_have_form(args, channel / 16, 1)) {
    run(EpilogueKind<LowPlainEpilogue>());
  } else {
    with_epilogue(args, channel, run);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_PLAIN_BYTES_NEON_H_
