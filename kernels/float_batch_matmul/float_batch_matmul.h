// float_batch_matmul: products of the float32 matrices in two tensors, whose leading axes are broadcast as
// NumPy does.
//
//   out[m,n] = sum over k, in its order and beginning as +0, of a[m,k] * b[k,n]
//
// for each pair of matrices. The product and the sum are each rounded to float32: docs/numerics/float32.md.
#ifndef QPLAN_KERNELS_FLOAT_BATCH_MATMUL_FLOAT_BATCH_MATMUL_H_
#define QPLAN_KERNELS_FLOAT_BATCH_MATMUL_FLOAT_BATCH_MATMUL_H_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/variant.h"

namespace qplan {

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

// Best first. Work items are rows of the output. Vectors go along n, so that each output is summed in the
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

#endif  // QPLAN_KERNELS_FLOAT_BATCH_MATMUL_FLOAT_BATCH_MATMUL_H_
