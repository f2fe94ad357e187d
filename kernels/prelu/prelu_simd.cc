// prelu on 8 bits by vectors. An output is the sum of two parts, of what is above the zero point and of what
// is below it: one of them is 0 for each element, and requantises to 0.
#include "kernels/elementwise/binary_simd.h"
#include "kernels/prelu/prelu.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// The input is a, alpha is b.
struct PreluPairs {
  explicit PreluPairs(const PreluArgs& args)
      : dtype(args.dtype), a(args.input), b(args.alpha), output(args.output), broadcast(args.broadcast) {}

  Dtype dtype;
  const void* a;
  const void* b;
  void* output;
  const Broadcast& broadcast;
};

inline void prelu_lanes(const PreluArgs& args, uint32_t begin, uint32_t end) {
  const VecI32 zero = set_ints(0);
  const VecI32 input_zero = set_ints(args.input_zero_point), alpha_zero = set_ints(args.alpha_zero_point);
  const Requant above = set_requant(args.above_multiplier, args.above_shift);
  const Requant below = set_requant(args.below_multiplier, args.below_shift);
  const Output output = set_output(args.output_zero_point, dtype_min(args.dtype), dtype_max(args.dtype));
  for_each_pair(PreluPairs(args), begin, end, [&](VecI32 x, VecI32 alpha) {
    const VecI32 v = sub(x, input_zero);
    const VecI32 product = mul(min(v, zero), sub(alpha, alpha_zero));
    return finish(add(requantize(max(v, zero), above), requantize(product, below)), output);
  });
}

}  // namespace

QPLAN_SIMD_NAMESPACE(prelu) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const PreluArgs& args) {
  return args.dtype == Dtype::kS16 ? Refusal::kDtype : Refusal::kNone;
}

size_t scratch_bytes(const PreluArgs&) { return 0; }

uint32_t work_items(const PreluArgs& args) { return num_chunks(args.broadcast.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const PreluArgs& args, uint32_t begin, uint32_t end, void*) { prelu_lanes(args, begin, end); }
#endif

}  // QPLAN_SIMD_NAMESPACE(prelu)

}  // namespace qplan
