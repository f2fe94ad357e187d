#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/numeric/requantize.h"

namespace qplan {
namespace batch_matmul_ref {
namespace {

int32_t requantized(const BatchMatmulArgs& args, int32_t sum) {
  const int32_t zero_point = args.output_zero_point, least = args.clamp_min, most = args.clamp_max;
  if (args.contract == Contract::kF32e) return requantize_f32e(sum, args.scale, zero_point, least, most);
  return add_clamp(requantize_tfl2(sum, args.output_multiplier, args.output_shift), zero_point, least, most);
}

template <typename T>
void run_row(const BatchMatmulArgs& args, const T* a, const T* b, T* out) {
  for (uint32_t n = 0; n < args.n; ++n) {
    uint32_t sum = 0;
    for (uint32_t k = 0; k < args.k; ++k) {
      // Both factors are within +-255.
      const int32_t product =
          (a[k] - args.a_zero_point) * (b[k * args.b_k_stride + n * args.b_n_stride] - args.b_zero_point);
      sum += static_cast<uint32_t>(product);
    }
    out[n] = static_cast<T>(requantized(args, static_cast<int32_t>(sum)));
  }
}

template <typename T>
void run_rows(const BatchMatmulArgs& args, uint32_t begin, uint32_t end) {
  for (uint32_t row = begin; row < end; ++row) {
    const uint64_t batch = row / args.m, m = row % args.m;
    for_each_broadcast_run(args.batches, batch, batch + 1,
                           [&](uint64_t, uint64_t a_batch, uint64_t b_batch, uint64_t) {
                             run_row(args, static_cast<const T*>(args.a) + (a_batch * args.m + m) * args.k,
                                     static_cast<const T*>(args.b) + b_batch * args.k * args.n,
                                     static_cast<T*>(args.output) + uint64_t{row} * args.n);
                           });
  }
}

}  // namespace

Refusal accepts(const BatchMatmulArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const BatchMatmulArgs&) { return 0; }
uint32_t work_items(const BatchMatmulArgs& args) {
  return static_cast<uint32_t>(args.batches.elements) * args.m;
}

void run(const BatchMatmulArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.dtype == Dtype::kU8) {
    run_rows<uint8_t>(args, begin, end);
  } else {
    run_rows<int8_t>(args, begin, end);
  }
}

}  // namespace batch_matmul_ref
}  // namespace qplan
