// float_batch_matmul by vectors of neighbouring outputs of a row.
#include "kernels/matmul/matmul.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// kVectors vectors side by side; `count` elements of the last one are valid.
template <uint32_t kVectors>
inline void float_matmul_columns(const FloatBatchMatmulArgs& args, const float* a, const float* b, float* out,
                                 uint32_t count) {
  VecF32 sums[kVectors];
  for (VecF32& sum : sums) sum = set_reals(0.0f);
  for (uint32_t k = 0; k < args.k; ++k, b += args.b_k_stride) {
    const VecF32 factor = set_reals(a[k]);
    constexpr uint32_t kLast = kVectors - 1;
    for (uint32_t v = 0; v < kLast; ++v) sums[v] = add(sums[v], mul(factor, load_reals(b + v * kLanes)));
    const float* last = b + kLast * kLanes;
    sums[kLast] = add(sums[kLast], mul(factor, count == kLanes ? load_reals(last) : load_reals(last, count)));
  }
  for (uint32_t v = 0; v < kVectors; ++v)
    store_reals(out + v * kLanes, sums[v], v + 1 < kVectors ? kLanes : count);
}

inline void float_matmul_row(const FloatBatchMatmulArgs& args, const float* a, const float* b, float* out) {
  constexpr uint32_t kVectors = 4;
  uint32_t n = 0;
  for (; args.n - n >= kVectors * kLanes; n += kVectors * kLanes)
    float_matmul_columns<kVectors>(args, a, b + n, out + n, kLanes);
  while (n < args.n) {
    const uint32_t count = args.n - n < kLanes ? args.n - n : kLanes;
    float_matmul_columns<1>(args, a, b + n, out + n, count);
    n += count;
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(float_batch_matmul) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const FloatBatchMatmulArgs& args) {
  return args.b_n_stride == 1 ? Refusal::kNone : Refusal::kLayout;
}

size_t scratch_bytes(const FloatBatchMatmulArgs&) { return 0; }

uint32_t work_items(const FloatBatchMatmulArgs& args) {
  return static_cast<uint32_t>(args.batches.elements) * args.m;
}
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const FloatBatchMatmulArgs& args, uint32_t begin, uint32_t end, void*) {
  for (uint32_t row = begin; row < end; ++row) {
    for_matmul_row(args, row,
                   [&](const float* a, const float* b, float* out) { float_matmul_row(args, a, b, out); });
  }
}
#endif

}  // QPLAN_SIMD_NAMESPACE(float_batch_matmul)

}  // namespace qplan
