// The float epilogue of add and sub (kernels/elementwise/add.h) for 64-bit Arm, 32 elements at a time. Internal
// linkage only.
#ifndef QPLAN_KERNELS_SIMD_FLOAT_ADD_NEON_H_
#define QPLAN_KERNELS_SIMD_FLOAT_ADD_NEON_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/elementwise/binary_simd.h"
#include "kernels/simd/tile_parts_neon.h"

namespace qplan {
namespace {

// Four tables take the bytes of a vector apart, four each, instead of interleaving twice. The difference of
// sub is in the sign of a scale.
template <bool kSigned>
struct FloatAddLanes {
  // A byte with a sign becomes the highest of four, 2^24 times itself, which its scale takes back exactly.
  // One without becomes the lowest.
  static constexpr float kUnit = kSigned ? 1.0f / (1 << 24) : 1.0f;
  static constexpr uint32_t kPlace = kSigned ? 24 : 0;
  VecF32 scale1, scale2, offset;
  uint8x16_t places[4];
  VecI32 clamp_min, clamp_max;
  bool is_whole;  // no clamp is within the range

  template <typename Args>
  explicit FloatAddLanes(const Args& args)
      : scale1(set_reals(args.float_scale1 * kUnit)),
        scale2(set_reals(args.float_scale2 * kUnit)),
        offset(set_reals(args.float_offset)),
        clamp_min(set_bytes(static_cast<uint8_t>(args.clamp_min))),
        clamp_max(set_bytes(static_cast<uint8_t>(args.clamp_max))),
        is_whole(args.clamp_max - args.clamp_min == 255) {
    // An index beyond the vector, 255, looks up 0.
    constexpr uint32_t kNone = ~(uint32_t{0xff} << kPlace);
    const uint32x4_t lanes = {kNone, kNone | 1u << kPlace, kNone | 2u << kPlace, kNone | 3u << kPlace};
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i)
      places[i] = vreinterpretq_u8_u32(vaddq_u32(lanes, vdupq_n_u32(i * 4 << kPlace)));
  }

  static VecF32 reals(VecI32 bytes, uint8x16_t from) {
    return to_reals(as_ints(vqtbl1q_u8(as_bytes(bytes), from)));
  }
  VecI32 sum(VecI32 a, VecI32 b, uint8x16_t from) const {
    return round(fma(reals(a, from), scale1, fma(reals(b, from), scale2, offset)));
  }
  VecI32 saturated(VecI32 a, VecI32 b) const {
    const int16x8_t low = as_words(pack_ints(sum(a, b, places[0]), sum(a, b, places[1])));
    const int16x8_t high = as_words(pack_ints(sum(a, b, places[2]), sum(a, b, places[3])));
    return kSigned ? vreinterpretq_s32_s8(vqmovn_high_s16(vqmovn_s16(low), high))
                   : pack_words(as_ints(low), as_ints(high));
  }
  VecI32 clamped(VecI32 bytes) const {
    if constexpr (kSigned) {
      const int8x16_t at_least = vmaxq_s8(vreinterpretq_s8_s32(bytes), vreinterpretq_s8_s32(clamp_min));
      return vreinterpretq_s32_s8(vminq_s8(at_least, vreinterpretq_s8_s32(clamp_max)));
    } else {
      return min_bytes(max_bytes(bytes, clamp_min), clamp_max);
    }
  }
};

template <bool kSigned, typename Args>
inline void add_float_of(const Args& args, uint32_t begin, uint32_t end) {
  const FloatAddLanes<kSigned> lanes(args);
  const uint8_t* a = static_cast<const uint8_t*>(args.a);
  const uint8_t* b = static_cast<const uint8_t*>(args.b);
  uint8_t* output = static_cast<uint8_t*>(args.output);
  const uint32_t last = args.broadcast.rank - 1;
  const uint64_t a_step = args.broadcast.a_strides[last], b_step = args.broadcast.b_strides[last];
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  for_each_broadcast_run(args.broadcast, range.begin, range.end,
                         [&](uint64_t out, uint64_t a_at, uint64_t b_at, uint64_t count) {
                           // Outputs, as bytes, might change what `lanes` refers to, but not a copy.
                           const FloatAddLanes<kSigned> own_lanes = lanes;
                           const uint8_t *from_a = a + a_at, *from_b = b + b_at;
                           uint8_t* to = output + out;
                           if (a_step == 1 && b_step == 1) {
                             for (const uint8_t* last_to = to + count / 32 * 32; to != last_to; to += 32) {
                               VecI32 a0, a1, b0, b1;
                               load_two_on(from_a, a0, a1);
                               load_two_on(from_b, b0, b1);
                               VecI32 low = own_lanes.saturated(a0, b0), high = own_lanes.saturated(a1, b1);
                               if (!own_lanes.is_whole) {
                                 low = own_lanes.clamped(low);
                                 high = own_lanes.clamped(high);
                               }
                               store_ints(to, low);
                               store_ints(to + kBytes, high);
                             }
                             count %= 32;
                           }
                           while (count != 0) {
                             const uint32_t now = count < kBytes ? static_cast<uint32_t>(count) : kBytes;
                             const VecI32 bytes = own_lanes.saturated(load_repeated(from_a, a_step, now),
                                                                      load_repeated(from_b, b_step, now));
                             store_vector(to, own_lanes.clamped(bytes), now);
                             from_a += a_step * now;
                             from_b += b_step * now;
                             to += now;
                             count -= now;
                           }
                         });
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_FLOAT_ADD_NEON_H_
