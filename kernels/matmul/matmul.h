// Kernels that multiply matrices: fully_connected, whose second one is constant and packed ahead of time,
// batch_matmul and float_batch_matmul. Lists of variants are best first; the reference, which computes all
// that is bound, is the last.
#ifndef QPLAN_KERNELS_MATMUL_MATMUL_H_
#define QPLAN_KERNELS_MATMUL_MATMUL_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/variant.h"

namespace qplan {

// fully_connected: a matrix product of rows.
//
// out[r,o] = clamp(output_zero_point + requant(acc[r,o], o), clamp_min, clamp_max)
// acc[r,o] = bias[o] + sum over k of (in[r,k] - input_zero_point) * (weights[o,k] - weights_zero_point)
//
// Sums are taken modulo 2^32; requant is that of conv2d (kernels/conv2d/conv2d.h), under the same contracts;
// under ACC32 out[r,o] = acc[r,o], as int32. int16 is as there.
// Weights [output_c, input_c] are in the layout weights_layout: ohwi, o16k4, o16r8, o4k4, o4h4 or o4k16
// (kernels/layout.h). In o16r8 there are zeros after the inputs. bias, multiplier, shift, scale, float_scale
// and float_offset have layout_channels(weights_layout, output_c) entries.
//
// Ranges that bind has checked: extents are in [1, 2^31); zero points and clamps are within their dtypes,
// weights_zero_point within int8; rows * ceil(output_c / 16) is below 2^31; scales are finite and not
// negative.
struct FullyConnectedArgs {
  const void* input = nullptr;  // [rows, input_c]
  const int8_t* weights = nullptr;
  const int32_t* bias = nullptr;        // int64 where has_wide_bias
  const int32_t* multiplier = nullptr;  // TFL2 and TFL1 only
  const int32_t* shift = nullptr;       // TFL2 and TFL1 only
  const float* scale = nullptr;         // F32E only
  const float* float_scale = nullptr;   // these two: null under FloatEpilogue::kNone
  const float* float_offset = nullptr;
  void* output = nullptr;  // [rows, output_c]
  uint32_t rows = 0;
  uint32_t input_c = 0;
  uint32_t output_c = 0;
  int32_t input_zero_point = 0;
  int32_t weights_zero_point = 0;
  int32_t output_zero_point = 0;
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
  Contract contract = Contract::kTfl2;
  FloatEpilogue float_epilogue = FloatEpilogue::kNone;  // kNone but for TFL2 and TFL1
  bool has_wide_bias = false;                           // int16 only: bias and accumulators are int64
  Dtype input_dtype = Dtype::kOther;                    // uint8, int8 or int16
  Dtype output_dtype = Dtype::kOther;  // uint8 or int8, int32 under ACC32; int16 where the input is
  uint8_t int16_groups = 0;            // kernels/layout.h
  uint16_t weights_layout = 0;         // layouts.def
  uint64_t schedule = 0;               // kernels/variant.h
};

// Knobs of the vector variants: rows of a work item, and its blocks of 16 channels.
enum FullyConnectedKnob : uint32_t { kFullyConnectedRowChunk, kFullyConnectedBlockGroup };
constexpr Knob kFullyConnectedKnobs[] = {{"row_chunk", KnobKind::kTile, 3, {24, 48, 96}},
                                         {"block_group", KnobKind::kTile, 5, {2, 4, 8, 16, 64}}};

// Work items of the reference: blocks of 16 outputs, r * ceil(output_c / 16) + o / 16.
#define QPLAN_FULLY_CONNECTED_VARIANTS   \
  QPLAN_DOT_VARIANTS(fully_connected)    \
  QPLAN_SCALAR_VARIANTS(fully_connected) \
  QPLAN_VARIANT(fully_connected_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FullyConnectedArgs)
QPLAN_FULLY_CONNECTED_VARIANTS
#undef QPLAN_VARIANT

// fully_connected_dsp without what layers of most networks do without (has_form_alone,
// kernels/scalar/outputs.h): what C that `qplan emit-c` writes links where it is enough for all layers.
QPLAN_DECLARE_VARIANT(fully_connected_dsp_form, FullyConnectedArgs)

// batch_matmul: products of the matrices in two tensors, whose leading axes are broadcast as NumPy does.
//
//   out[m,n] = clamp(output_zero_point + requant(acc[m,n]), clamp_min, clamp_max)
//   acc[m,n] = sum over k of (a[m,k] - a_zero_point) * (b[k,n] - b_zero_point)
//
// for each pair of matrices. Sums are taken modulo 2^32. requant is requantize_tfl2(acc, output_multiplier,
// output_shift) under TFL2, acc * scale of requantize_f32e under F32E. Inputs and output have one dtype,
// int8, uint8 or int16. Sums of int16 have 64 bits, and requant is requantize_tfl2_wide. docs/numerics.md.
struct BatchMatmulArgs {
  Dtype dtype = Dtype::kOther;  // kU8, kS8, kS16
  const void* a = nullptr;      // [..., m, k]
  const void* b = nullptr;
  void* output = nullptr;  // [..., m, n]
  Broadcast batches;       // of matrices; their number times m is below 2^31
  uint32_t m = 1;
  uint32_t k = 1;
  uint32_t n = 1;
  uint64_t b_k_stride = 1;  // in elements, inside a matrix
  uint64_t b_n_stride = 1;
  int32_t a_zero_point = 0;  // zero points and clamps: of the dtype
  int32_t b_zero_point = 0;
  int32_t output_zero_point = 0;
  int32_t output_multiplier = 0;  // [0, 2^31)
  int32_t output_shift = 0;       // [-31, 30], of int16 [-31, kMaxWideShift]
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
  Contract contract = Contract::kTfl2;  // or kF32e, not of int16
  float scale = 0.0f;                   // F32E
};

// Work items of the reference: rows of the output.
#define QPLAN_BATCH_MATMUL_VARIANTS \
  QPLAN_DOT_VARIANTS(batch_matmul)  \
  QPLAN_VARIANT(batch_matmul_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, BatchMatmulArgs)
QPLAN_BATCH_MATMUL_VARIANTS
#undef QPLAN_VARIANT

// float_batch_matmul: products of the float32 matrices in two tensors, whose leading axes are broadcast as
// NumPy does.
//
//   out[m,n] = sum over k, in its order and beginning as +0, of a[m,k] * b[k,n]
//
// for each pair of matrices. The product and the sum are each rounded to float32: docs/numerics/float32.md.
struct FloatBatchMatmulArgs {
  const float* a = nullptr;  // [..., m, k]
  const float* b = nullptr;
  float* output = nullptr;  // [..., m, n]
  Broadcast batches;        // of matrices; their number times m is below 2^31
  uint32_t m = 1;
  uint32_t k = 1;
  uint32_t n = 1;
  uint64_t b_k_stride = 1;  // in elements, inside a matrix
  uint64_t b_n_stride = 1;
};

// Work items are rows of the output. Vectors go along n, so that each output is summed in the
// order of k; the vector kernel takes matrices b whose rows are side by side (b_n_stride 1).
#define QPLAN_FLOAT_BATCH_MATMUL_VARIANTS \
  QPLAN_SIMD_VARIANTS(float_batch_matmul) \
  QPLAN_VARIANT(float_batch_matmul_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FloatBatchMatmulArgs)
QPLAN_FLOAT_BATCH_MATMUL_VARIANTS
#undef QPLAN_VARIANT

// The matrices of the output's row `row`: calls run(a's row, b, output's row).
template <typename Run>
static inline void for_matmul_row(const FloatBatchMatmulArgs& args, uint32_t row, const Run& run) {
  const uint64_t batch = row / args.m, m = row % args.m;
  for_each_broadcast_run(args.batches, batch, batch + 1, [&](uint64_t, uint64_t a, uint64_t b, uint64_t) {
    run(args.a + (a * args.m + m) * args.k, args.b + b * args.k * args.n,
        args.output + uint64_t{row} * args.n);
  });
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_MATMUL_MATMUL_H_
