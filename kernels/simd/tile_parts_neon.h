// What the tiles of 64-bit Arm have in common (tiles_neon.h, tiles_dotprod.h, tiles_i8mm.h): rows, channels,
// and the way from sums to outputs. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_TILE_PARTS_NEON_H_
#define QPLAN_KERNELS_SIMD_TILE_PARTS_NEON_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/plain_bytes_neon.h"

namespace qplan {
namespace {

// The rows of a tile: the first one, and the distance of the others from it, which is the same for all taps.
template <uint32_t kRows>
struct TileRows {
  const uint8_t* first;
  ptrdiff_t offsets[kRows];

  TileRows(const Gemm& g, uint32_t row) {
    first = g.rows == nullptr ? g.first_row + row * g.row_stride : g.rows[row];
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
      offsets[p] = g.rows == nullptr ? static_cast<ptrdiff_t>(p * g.row_stride) : g.rows[row + p] - first;
    }
  }
};

// 16, 8 or 4 bytes; zeros after them.
template <uint32_t kCount>
inline uint8x16_t load_some(const uint8_t* from) {
  if constexpr (kCount == 16) return vld1q_u8(from);
  if constexpr (kCount == 8) return vcombine_u8(vld1_u8(from), vcreate_u8(0));
  return vcombine_u8(vcreate_u8(load_four(from)), vcreate_u8(0));
}

// 16 channels of rows, or the first `count` of them.
template <uint32_t kRows>
__attribute__((always_inline)) inline void store_rows(uint8_t* out, size_t stride,
                                                      const VecI32 (&rows)[kRows], uint32_t count) {
  if (count >= 16) {
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) store_ints(out + p * stride, rows[p]);
    return;
  }
  VecI32 in_memory[kRows];  // so that `rows` need not be
  __builtin_memcpy(in_memory, rows, sizeof(rows));
#pragma GCC unroll 1
  for (uint32_t p = 0; p < kRows; ++p) store_vector(out + p * stride, in_memory[p], count);
}

// 8 channels of rows, two in each vector.
template <uint32_t kRows>
__attribute__((always_inline)) inline void store_half_rows(uint8_t* out, size_t stride,
                                                           const VecI32 (&rows)[(kRows + 1) / 2],
                                                           uint32_t count) {
  if (count >= 8) {
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
      const uint8x16_t both = as_bytes(rows[p / 2]);
      if (p % 2 == 0) {
        vst1_u8(out + p * stride, vget_low_u8(both));
      } else {  // one instruction (ST1), unlike vst1_u8 of the high half
        const uint64_t high = vgetq_lane_u64(vreinterpretq_u64_u8(both), 1);
        __builtin_memcpy(out + p * stride, &high, sizeof(high));
      }
    }
    return;
  }
  VecI32 in_memory[(kRows + 1) / 2];
  __builtin_memcpy(in_memory, rows, sizeof(rows));
#pragma GCC unroll 1
  for (uint32_t p = 0; p < kRows; p += 2) {
    store_halves(out + p * stride, stride, in_memory[p / 2], count, p + 1 < kRows ? 2 : 1);
  }
}

inline const int8_t* channel_weights(const Gemm& g, uint32_t channel) {
  return g.weights + size_t{channel / 16} * g.num_taps * tap_k4(g) * 64;
}

// Makes outputs of a tile's sums. Constants are loaded when the products are done: held meanwhile, they would
// take registers from the sums.
template <typename Epilogue>
struct OutputWriter {
  using EpilogueType = Epilogue;
  EpilogueBytes<Epilogue> bytes;
  explicit OutputWriter(const Gemm& g) : bytes(g) {}

  template <uint32_t kRows, uint32_t kVectors>
  __attribute__((always_inline)) void write(const Gemm& g, uint32_t row, uint32_t channel,
                                            const VecI32 (&sums)[kRows][kVectors]) const {
    VecI32 outputs[kRows][kVectors];
    make_outputs(g, channel, sums, outputs);
    const uint32_t count = g.num_channels - channel;
    uint8_t* out = g.first_out + row * g.out_stride + channel;
    if constexpr (kVectors == 4) {
      VecI32 packed[kRows];
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) {
        packed[p] = bytes.pack(outputs[p][0], outputs[p][1], outputs[p][2], outputs[p][3]);
      }
      bytes.finish(packed);
      store_rows(out, g.out_stride, packed, count);
    } else {
      VecI32 packed[(kRows + 1) / 2];  // two rows in each
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; p += 2) {
        const uint32_t next = p + 1 < kRows ? p + 1 : p;
        packed[p / 2] = bytes.pack(outputs[p][0], outputs[p][1], outputs[next][0], outputs[next][1]);
      }
      bytes.finish(packed);
      store_half_rows<kRows>(out, g.out_stride, packed, count);
    }
  }

 private:
  template <uint32_t kRows, uint32_t kVectors>
  __attribute__((always_inline)) static void make_outputs(const Gemm& g, uint32_t channel,
                                                          const VecI32 (&sums)[kRows][kVectors],
                                                          VecI32 (&outputs)[kRows][kVectors]) {
    if constexpr (kHasOffset<Epilogue>) {
      const float *scales = g.float_scale + channel, *offsets = g.float_offset + channel;
      VecF32 scale[kVectors];
#pragma GCC unroll 2
      for (uint32_t q = 0; q < kVectors; q += 2) load_two(scales + q * kLanes, scale[q], scale[q + 1]);
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) {
        __asm__("" : "+r"(offsets));
#pragma GCC unroll 2
        for (uint32_t q = 0; q < kVectors; q += 2) {
          VecF32 offset[2];
          load_two(offsets + q * kLanes, offset[0], offset[1]);
          outputs[p][q] = Epilogue(scale[q], offset[0]).outputs(sums[p][q]);
          outputs[p][q + 1] = Epilogue(scale[q + 1], offset[1]).outputs(sums[p][q + 1]);
        }
      }
    } else {
#pragma GCC unroll 4
      for (uint32_t q = 0; q < kVectors; ++q) {
        const Epilogue epilogue(g, channel + q * kLanes);
#pragma GCC unroll 8
        for (uint32_t p = 0; p < kRows; ++p) outputs[p][q] = epilogue.outputs(sums[p][q]);
      }
    }
  }
};

// ACC32: the sums are the outputs. Vectors of integers are stored as they are.
struct SumWriter {
  using EpilogueType = void;
  explicit SumWriter(const Gemm&) {}

  template <uint32_t kRows, uint32_t kVectors>
  __attribute__((always_inline)) void write(const Gemm& g, uint32_t row, uint32_t channel,
                                            const VecI32 (&sums)[kRows][kVectors]) const {
    for (uint32_t p = 0; p < kRows; ++p) {
      auto* out = reinterpret_cast<float*>(g.first_out + (row + p) * g.out_stride) + channel;
      for (uint32_t q = 0; q < kVectors && channel + q * kLanes < g.num_channels; ++q) {
        const uint32_t left = g.num_channels - channel - q * kLanes;
        store_reals(out + q * kLanes, as_reals(sums[p][q]), left < kLanes ? left : kLanes);
      }
    }
  }
};

// Makes g, a copy, which outputs, as bytes, cannot change, the product of the channels from `channel` on.
inline void move_to_channels(Gemm& g, uint32_t channel) {
  g.weights = channel_weights(g, channel);
  g.first_out += size_t{channel} * output_bytes(g.contract);
  g.bias += channel;
  if (g.multiplier != nullptr) g.multiplier += channel;
  if (g.shift != nullptr) g.shift += channel;
  if (g.scale != nullptr) g.scale += channel;
  if (g.float_scale != nullptr) g.float_scale += channel;
  if (g.float_offset != nullptr) g.float_offset += channel;
  g.num_channels -= channel;
}

// Where the channels of a product of one row end that have the same kind of epilogue as those from `channel`
// on.
inline uint32_t end_of_epilogue(const Gemm& g, uint32_t channel, uint32_t end_channel) {
  uint32_t end = channel + 16;
  const auto has_form = [&](uint32_t at) {
    return g.float_epilogue != FloatEpilogue::kNone && groups_have_form(g, at / 16, 1);
  };
  while (end < end_channel && has_form(end) == has_form(channel)) end += 16;
  return end;
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_TILE_PARTS_NEON_H_
