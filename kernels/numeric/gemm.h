// Rows of bytes times packed weights, requantised: the heart of convolution and of fully connected layers.
//
//   out[p][o] = clamp(output_zero_point
//                     + requant(bias[o] + row_term[p] + sum over k of (u(p, k) - origin) * weights[o][k]))
//   u(p, k)   = (byte j of tap t of row p) ^ sign_bias, j < tap_bytes,
//               k = t * group * ceil(tap_bytes / group) + j, group = 8 if has_eights, else 4
//   origin    = 128 if is_centred, else 0
//
// sign_bias is 0x80 where bytes are int8, and 0 where they are uint8, or copies of int8 plus 128. If
// is_centred, bytes are as the input has them: int8 whose zero point is 0 (sign_bias 0x80), or uint8 whose
// zero point is 128 (sign_bias 0), so that u - origin is the byte, or the byte less 128.
//
// Weight (o, k) is byte ((o / 16 * num_groups + k / group) * 16 + o % 16) * group + k % group, of num_groups
// = num_taps * ceil(tap_bytes / group). A rest (GemmRest) is to be added to one of them. Kernels that add
// rests have origin 0.
//
// The outputs are made under TFL2, TFL1 or F32E, or their float epilogue; with a residual, the sum of that
// and residual[p][o]. Under ACC32, where kProductMakesSums, out[p][o] is the int32 that requant is given. A
// row is a window of the input: its taps are runs of bytes at distances that are the same in every row.
// kernels/simd/gemm.h computes it.
#ifndef QPLAN_KERNELS_NUMERIC_GEMM_H_
#define QPLAN_KERNELS_NUMERIC_GEMM_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"

namespace qplan {

// The float epilogue of a sum (kernels/elementwise/add.h) of the outputs and a tensor in the same order.
struct GemmResidual {
  const uint8_t* first = nullptr;  // beside first_out
  bool is_a = false;               // of a and b
  float scale1 = 0.0f;
  float scale2 = 0.0f;
  float offset = 0.0f;
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
  bool is_signed = false;
};

// What a weight beyond int8 leaves (kernels/conv2d/conv2d.h, WeightRest): one more group of four bytes that
// 16 channels have weights for, all zero but one.
struct GemmRest {
  static constexpr uint32_t kMostBlocks = 8;               // of a tile
  alignas(64) int8_t weights[(2 * kMostBlocks - 1) * 64];  // zeros, those of the block, zeros
  uint32_t block;
  size_t at;  // bytes from a row's start to the group, which is one of a tap

  // The weights of a tile whose block blocks_before this one is.
  const int8_t* weights_from(uint32_t blocks_before) const {
    return weights + (kMostBlocks - 1 - blocks_before) * 64;
  }
};

struct Gemm {
  // Tap t of row p begins tap_offsets[t] bytes after the row's start. Rows are listed, or, where rows is
  // null, are row_stride bytes apart. Up to three bytes after a tap are read, in groups of eight too: they
  // are the origin, or meet weights that are zero. So are the weights of a half of eight for which no byte is
  // read.
  const uint8_t* const* rows = nullptr;  // [num_rows]
  const size_t* tap_offsets = nullptr;   // [num_taps], bytes
  const uint8_t* first_row = nullptr;
  size_t row_stride = 0;
  uint8_t* first_out = nullptr;
  size_t out_stride = 0;  // bytes from a row's outputs to those of the next
  uint32_t num_rows = 0;
  uint32_t even_rows = 0;  // listed rows: each so many, of which num_rows is a multiple, are row_stride apart
  uint32_t num_taps = 0;
  uint32_t tap_bytes = 0;
  uint8_t sign_bias = 0;     // 0x80 makes uint8 of int8, plus 128
  bool is_centred = false;   // where the product takes it (is_product_origin)
  bool has_eights = false;   // groups of weights are of eight bytes, else of four (layout_group)
  uint8_t int16_groups = 0;  // kernels/layout.h
  const int8_t* weights = nullptr;
  const GemmRest* rests = nullptr;  // [num_rests], of kernels that add them (kProductAddsRests)
  uint32_t num_rests = 0;
  const int32_t* bias = nullptr;  // these: one entry per channel, rounded up to 16
  const int32_t* multiplier = nullptr;
  const int32_t* shift = nullptr;
  const float* scale = nullptr;  // F32E, without multiplier and shift
  const float* float_scale = nullptr;
  const float* float_offset = nullptr;
  Contract contract = Contract::kTfl2;
  FloatEpilogue float_epilogue = FloatEpilogue::kNone;
  // Added to every channel of a row (the weights' zero point); null: nothing.
  const int32_t* row_term = nullptr;
  uint32_t num_channels = 0;
  int32_t output_zero_point = 0;
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
  const GemmResidual* residual = nullptr;  // of kernels that take one; null: nothing is added
};

// Groups of four bytes of a tap.
inline uint32_t tap_k4(const Gemm& g) { return (g.tap_bytes + 3) / 4; }

inline const uint8_t* row_start(const Gemm& g, uint32_t row) {
  return g.rows == nullptr ? g.first_row + row * g.row_stride : g.rows[row];
}
inline const uint8_t* row_tap(const Gemm& g, uint32_t row, uint32_t tap) {
  return row_start(g, row) + g.tap_offsets[tap];
}

// Bytes of an output.
inline uint32_t output_bytes(Contract contract) { return contract == Contract::kAcc32 ? 4 : 1; }

// What of it the arguments of a layer give.
template <typename Args>
inline Gemm gemm_of(const Args& args) {
  Gemm g;
  g.weights = args.weights;
  g.bias = args.bias;
  g.multiplier = args.multiplier;
  g.shift = args.shift;
  g.scale = args.scale;
  g.float_scale = args.float_scale;
  g.float_offset = args.float_offset;
  g.contract = args.contract;
  g.float_epilogue = args.float_epilogue;
  g.num_channels = args.output_c;
  g.out_stride = size_t{args.output_c} * output_bytes(args.contract);
  g.output_zero_point = args.output_zero_point;
  g.clamp_min = args.clamp_min;
  g.clamp_max = args.clamp_max;
  g.sign_bias = args.input_dtype == Dtype::kS8 ? 0x80 : 0;
  g.is_centred = args.input_zero_point != dtype_min(args.input_dtype);
  g.int16_groups = args.int16_groups;
  return g;
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_GEMM_H_
