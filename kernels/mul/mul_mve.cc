// mul with MVE, four elements at a time. F32E divides, which MVE does not.
#include <stddef.h>
#include <stdint.h>

#include "kernels/mul/mul.h"
#include "kernels/simd/bytes_mve.h"

namespace qplan::mul_mve {
namespace {

#if !defined(QPLAN_ONLY_QUERIES)
template <bool kSigned>
void run_elements(const MulArgs& args, uint32_t begin, uint32_t end) {
  const Requant requant(args.output_multiplier, args.output_shift);
  const Output output(args.output_zero_point, args.clamp_min, args.clamp_max);
  for_each_four<kSigned>(args, begin, end, [&](int32x4_t a, int32x4_t b) {
    a = vsubq_n_s32(a, args.input1_zero_point);
    b = vsubq_n_s32(b, args.input2_zero_point);
    return output(requant(vmulq_s32(a, b)));
  });
}
#endif

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const MulArgs& args) {
  if (args.contract != Contract::kTfl2) return Refusal::kContract;
  return args.dtype == Dtype::kS16 ? Refusal::kDtype : Refusal::kNone;
}

size_t scratch_bytes(const MulArgs&) { return 0; }

uint32_t work_items(const MulArgs& args) { return num_chunks(args.broadcast.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const MulArgs& args, uint32_t begin, uint32_t end, void*) {
  args.dtype == Dtype::kS8 ? run_elements<true>(args, begin, end) : run_elements<false>(args, begin, end);
}
#endif

}  // namespace qplan::mul_mve
