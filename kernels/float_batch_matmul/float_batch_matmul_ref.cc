// The formula of float_batch_matmul.h as it stands there.
#include "kernels/float_batch_matmul/float_batch_matmul.h"

namespace qplan::float_batch_matmul_ref {

Refusal accepts(const FloatBatchMatmulArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const FloatBatchMatmulArgs&) { return 0; }
uint32_t work_items(const FloatBatchMatmulArgs& args) {
  return static_cast<uint32_t>(args.batches.elements) * args.m;
}

void run(const FloatBatchMatmulArgs& args, uint32_t begin, uint32_t end, void*) {
  for (uint32_t row = begin; row < end; ++row) {
    for_matmul_row(args, row, [&](const float* a, const float* b, float* out) {
      for (uint32_t n = 0; n < args.n; ++n) {
        float sum = 0.0f;
        for (uint32_t k = 0; k < args.k; ++k) sum = sum + a[k] * b[k * args.b_k_stride + n * args.b_n_stride];
        out[n] = sum;
      }
    });
  }
}

}  // namespace qplan::float_batch_matmul_ref
