// Four elements at a time with Armv8.1-M's vectors: bytes to int32, the contracts' ways back, and loops over
// broadcast tensors. Internal linkage only; for cores with MVE alone.
#ifndef QPLAN_KERNELS_SIMD_BYTES_MVE_H_
#define QPLAN_KERNELS_SIMD_BYTES_MVE_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/dtype.h"
#include "kernels/simd/dots_mve.h"

#if !defined(QPLAN_ONLY_QUERIES)

namespace qplan {
namespace {

constexpr uint32_t kLanes = 4;

template <bool kSigned>
inline int32x4_t load_bytes(const uint8_t* from, mve_pred16_t lanes) {
  if constexpr (kSigned) return vldrbq_z_s32(reinterpret_cast<const int8_t*>(from), lanes);
  return vreinterpretq_s32_u32(vldrbq_z_u32(from, lanes));
}
inline void store_bytes(uint8_t* to, int32x4_t v, mve_pred16_t lanes) {
  vstrbq_p_s32(reinterpret_cast<int8_t*>(to), v, lanes);
}

// TFL2 with one multiplier and a shift of either sign.
struct Requant {
  int32_t multiplier, left;
  int32x4_t right;  // negative counts

  Requant(int32_t multiplier_of, int32_t shift)
      : multiplier(multiplier_of), left(shift > 0 ? shift : 0), right(vdupq_n_s32(shift > 0 ? 0 : shift)) {}

  int32x4_t operator()(int32x4_t v) const {
    if (left != 0) v = vshlq_r_s32(v, left);
    const int32x4_t product = vqrdmulhq_n_s32(v, multiplier);
    const int32x4_t less = vshrq_n_s32(vandq_s32(product, right), 31);
    return vrshlq_s32(vqaddq_s32(product, less), right);
  }
};

// Zero point and clamp.
struct Output {
  int32_t zero_point;
  int32x4_t low, high;

  Output(int32_t zero_point_of, int32_t lo, int32_t hi)
      : zero_point(zero_point_of), low(vdupq_n_s32(lo)), high(vdupq_n_s32(hi)) {}

  int32x4_t operator()(int32x4_t v) const {
    return vminq_s32(vmaxq_s32(vqaddq_n_s32(v, zero_point), low), high);
  }
};

// quantize_f32e.
struct RealOutput {
  int32_t zero_point;
  float32x4_t low, high;

  RealOutput(int32_t zero_point_of, int32_t lo, int32_t hi)
      : zero_point(zero_point_of),
        low(vdupq_n_f32(static_cast<float>(lo - zero_point_of))),
        high(vdupq_n_f32(static_cast<float>(hi - zero_point_of))) {}

  int32x4_t operator()(float32x4_t real) const {
    return vaddq_n_s32(vcvtnq_s32_f32(vminnmq_f32(vmaxnmq_f32(real, low), high)), zero_point);
  }
};

// Calls compute(a, b), which returns outputs, for the elements of the work items [begin, end).
template <bool kSigned, typename Args, typename Compute>
inline void for_each_four(const Args& args, uint32_t begin, uint32_t end, const Compute& compute) {
  const auto* a = static_cast<const uint8_t*>(args.a);
  const auto* b = static_cast<const uint8_t*>(args.b);
  auto* output = static_cast<uint8_t*>(args.output);
  const uint32_t last = args.broadcast.rank - 1;
  const bool repeats_a = args.broadcast.a_strides[last] == 0, repeats_b = args.broadcast.b_strides[last] == 0;
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  for_each_broadcast_run(
      args.broadcast, range.begin, range.end,
      [&](uint64_t out_at, uint64_t a_at, uint64_t b_at, uint64_t elements) {
        const uint8_t *from_a = a + a_at, *from_b = b + b_at;
        uint8_t* to = output + out_at;
        const mve_pred16_t first = vctp32q(1);
        const int32x4_t all_a = vdupq_n_s32(vgetq_lane_s32(load_bytes<kSigned>(from_a, first), 0));
        const int32x4_t all_b = vdupq_n_s32(vgetq_lane_s32(load_bytes<kSigned>(from_b, first), 0));
        for (auto left = static_cast<uint32_t>(elements); left != 0;) {
          const mve_pred16_t lanes = vctp32q(left);
          const int32x4_t va = repeats_a ? all_a : load_bytes<kSigned>(from_a, lanes);
          const int32x4_t vb = repeats_b ? all_b : load_bytes<kSigned>(from_b, lanes);
          store_bytes(to, compute(va, vb), lanes);
          from_a += kLanes;
          from_b += kLanes;
          to += kLanes;
          left -= left < kLanes ? left : kLanes;
        }
      });
}

}  // namespace
}  // namespace qplan

#endif

#endif  // QPLAN_KERNELS_SIMD_BYTES_MVE_H_
