// batch_matmul: products of the matrices in two tensors, whose leading axes are broadcast as NumPy does.
//
//   out[m,n] = clamp(output_zero_point + requant(acc[m,n]), clamp_min, clamp_max)
//   acc[m,n] = sum over k of (a[m,k] - a_zero_point) * (b[k,n] - b_zero_point)
//
// for each pair of matrices. Sums are taken modulo 2^32. requant is requantize_tfl2(acc, output_multiplier,
// output_shift) under TFL2, acc * scale of requantize_f32e under F32E. Inputs and output have one dtype, int8
// or uint8. docs/numerics.md.
#ifndef QPLAN_KERNELS_BATCH_MATMUL_BATCH_MATMUL_H_
#define QPLAN_KERNELS_BATCH_MATMUL_BATCH_MATMUL_H_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/variant.h"

namespace qplan {

struct BatchMatmulArgs {
  Dtype dtype = Dtype::kOther;  // kU8, kS8
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
  int32_t output_shift = 0;       // [-31, 30]
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
  Contract contract = Contract::kTfl2;  // or kF32e
  float scale = 0.0f;                   // F32E
};

// Best first; the reference, whose work items are rows of the output, is the last.
#define QPLAN_BATCH_MATMUL_VARIANTS \
  QPLAN_DOT_VARIANTS(batch_matmul)  \
  QPLAN_VARIANT(batch_matmul_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, BatchMatmulArgs)
QPLAN_BATCH_MATMUL_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_BATCH_MATMUL_BATCH_MATMUL_H_
