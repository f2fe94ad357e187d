// weight_only_dense: fully connected layers on float32 whose weights are integers of 4 or 8 bits, each block
// of them along k with a scale and a zero point (weight-only quantisation):
//
//   out[m,o]  = clamp(sum[m,o] + bias[o])
//   clamp(v)  = v < clamp_min ? clamp_min : v > clamp_max ? clamp_max : v
//   w[o,k]    = float(q[o,k] - zero[o, k / block]) * scale[o, k / block]
//
// sum begins as +0. For each k in order it becomes sum + x[m,k] * w[o,k]. The weight, the product and the sum
// are each rounded to float32, as float_conv2d rounds them with w as its weights: no variant may factor a
// scale out of a block, add in another order, or fuse a product with its sum.
//
// Weights, scales, zero points and bias are in blocks of 16 outputs (kFloatBlock). With j = o % 16:
//   8 bits: q[o,k] = weights[(o / 16 * K + k) * 16 + j]
//   4 bits: q[o,k] = weights[(o / 16 * ceil(K / 2) + k / 2) * 16 + j] >> 4 * (k % 2) & 15
//   scale[o,b] = scales[(o / 16 * B + b) * 16 + j], zero[o,b] likewise, B = ceil(K / block)
// What follows the last output reaches none.
#ifndef QPLAN_KERNELS_FLOAT_WEIGHT_ONLY_DENSE_H_
#define QPLAN_KERNELS_FLOAT_WEIGHT_ONLY_DENSE_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/float/float.h"
#include "kernels/variant.h"

namespace qplan {

// Ranges that bind has checked: bits is 4 or 8, rows, input_c and output_c are below 2^31, 1 <= block, and of
// 4 bits block is even; clamp_min and clamp_max are numbers, clamp_min <= clamp_max.
struct WeightOnlyDenseArgs {
  const float* input = nullptr;      // [rows, input_c]
  const uint8_t* weights = nullptr;  // [output_c / 16, K or ceil(K / 2), 16], rounded up, K = input_c
  const float* scales = nullptr;     // [output_c / 16, B, 16], rounded up
  const uint8_t* zeros = nullptr;    // likewise
  const float* bias = nullptr;       // [output_c], rounded up to 16
  float* output = nullptr;           // [rows, output_c]
  uint32_t rows = 0;
  uint32_t input_c = 0;
  uint32_t output_c = 0;
  uint32_t bits = 0;
  uint32_t block = 0;
  float clamp_min = 0.0f;
  float clamp_max = 0.0f;
};

// Best first; the reference, whose work items are blocks of 16 outputs, is the last.
#define QPLAN_WEIGHT_ONLY_DENSE_VARIANTS \
  QPLAN_SIMD_VARIANTS(weight_only_dense) \
  QPLAN_VARIANT(weight_only_dense_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, WeightOnlyDenseArgs)
QPLAN_WEIGHT_ONLY_DENSE_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_FLOAT_WEIGHT_ONLY_DENSE_H_
