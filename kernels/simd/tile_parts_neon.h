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

inline const int8_t* channel_weights(const Gemm& g, uint32_t channel) {
  return g.weights + size_t{channel / 16} * g.num_taps * tap_k4(g) * 64;
}

// Makes outputs of a tile's sums. Constants are loaded when the products are done: held meanwhile, they would
// take registers from the sums.
template <typename Epilogue>
struct OutputWriter {
  typename EpilogueBytes<Epilogue>::Type bytes;
  explicit OutputWriter(const Gemm& g) : bytes(g) {}

  template <uint32_t kRows, uint32_t kVectors>
  __attribute__((always_inline)) void write(const Gemm& g, uint32_t row, uint32_t channel,
                                            const VecI32 (&sums)[kRows][kVectors]) const {
    VecI32 outputs[kRows][kVectors];
#pragma GCC unroll 4
    for (uint32_t q = 0; q < kVectors; ++q) {
      const Epilogue epilogue(g, channel + q * kLanes);
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) outputs[p][q] = epilogue.outputs(sums[p][q]);
    }
    const uint32_t count = g.num_channels - channel;
    uint8_t* out = g.first_out + row * g.out_stride + channel;
    if constexpr (kVectors == 4) {
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p, out += g.out_stride) {
        store_vector(out, bytes.pack(outputs[p][0], outputs[p][1], outputs[p][2], outputs[p][3]), count);
      }
    } else {
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; p += 2, out += 2 * g.out_stride) {
        const uint32_t next = p + 1 < kRows ? p + 1 : p;
        const VecI32 packed = bytes.pack(outputs[p][0], outputs[p][1], outputs[next][0], outputs[next][1]);
        store_halves(out, g.out_stride, packed, count < 8 ? count : 8, next == p ? 1 : 2);
      }
    }
  }
};

// ACC32: the sums are the outputs. Vectors of integers are stored as they are.
struct SumWriter {
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

// The product of the channels from `channel` on: a copy, which outputs, as bytes, cannot change.
inline Gemm product_of_channels(Gemm g, uint32_t channel) {
  g.weights = channel_weights(g, channel);
  g.first_out += size_t{channel} * output_bytes(g.contract);
  g.bias += channel;
  if (g.multiplier != nullptr) g.multiplier += channel;
  if (g.shift != nullptr) g.shift += channel;
  if (g.scale != nullptr) g.scale += channel;
  if (g.float_scale != nullptr) g.float_scale += channel;
  if (g.float_offset != nullptr) g.float_offset += channel;
  g.num_channels -= channel;
  return g;
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
