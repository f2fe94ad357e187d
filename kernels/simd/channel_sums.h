// Sums over positions of kBytes neighbouring channels, and the way back to bytes. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_CHANNEL_SUMS_H_
#define QPLAN_KERNELS_SIMD_CHANNEL_SUMS_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// int8 is summed up as uint8, plus 128.
inline uint8_t byte_sign_bias(Dtype dtype) { return dtype == Dtype::kS8 ? 128 : 0; }

// How many of the bytes at each position are read where `channels` are wanted and `readable` follow the first
// position: whole vectors if they do not reach beyond them.
inline uint32_t positions_width(uint64_t stride, uint32_t count, uint32_t channels, uint64_t readable) {
  return (count - 1) * stride + kBytes <= readable ? kBytes : channels;
}

// In the order in which interleaving left the channels.
struct ChannelSums {
  VecI32 of[4] = {set_ints(0), set_ints(0), set_ints(0), set_ints(0)};

  // `channels` (1 .. kBytes, as of positions_width) at each of count positions, stride bytes apart.
  void add_positions(const uint8_t* from, uint64_t stride, uint32_t count, uint32_t channels,
                     uint8_t to_unsigned) {
    const VecI32 zero = set_ints(0), sign_bias = set_bytes(to_unsigned);
    while (count != 0) {
      const uint32_t now = count < 256 ? count : 256;  // as many as 16 bits hold
      VecI32 low = zero, high = zero;
      for (uint32_t i = 0; i < now; ++i, from += stride) {
        const VecI32 bytes = bit_xor(load_vector(from, channels), sign_bias);
        low = add_words(low, interleave_low_bytes(bytes, zero));
        high = add_words(high, interleave_high_bytes(bytes, zero));
      }
      of[0] = add(of[0], interleave_low_words(low, zero));
      of[1] = add(of[1], interleave_high_words(low, zero));
      of[2] = add(of[2], interleave_low_words(high, zero));
      of[3] = add(of[3], interleave_high_words(high, zero));
      count -= now;
    }
  }
};

// From four vectors of outputs without zero point, in the order of ChannelSums, to bytes. Everything on the
// way saturates.
struct ChannelBytes {
  VecI32 zero_point;  // int16
  VecI32 clamp_min, clamp_max, sign_bias;

  ChannelBytes(Dtype dtype, int32_t zero, int32_t lo, int32_t hi) {
    const int32_t to_unsigned = byte_sign_bias(dtype);
    zero_point = set_words(static_cast<int16_t>(zero + to_unsigned));
    clamp_min = set_bytes(static_cast<uint8_t>(lo + to_unsigned));
    clamp_max = set_bytes(static_cast<uint8_t>(hi + to_unsigned));
    sign_bias = set_bytes(static_cast<uint8_t>(to_unsigned));
  }

  // Bytes with the sign that they had.
  VecI32 clamp(VecI32 bytes) const {
    return bit_xor(min_bytes(max_bytes(bytes, clamp_min), clamp_max), sign_bias);
  }

  VecI32 pack(VecI32 a, VecI32 b, VecI32 c, VecI32 d) const {
    const VecI32 ab = add_words_saturating(pack_ints(a, b), zero_point);
    const VecI32 cd = add_words_saturating(pack_ints(c, d), zero_point);
    return clamp(pack_words(ab, cd));
  }
};

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_CHANNEL_SUMS_H_
