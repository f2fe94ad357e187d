// mul by vectors.
#include "kernels/elementwise/binary_simd.h"
#include "kernels/mul/mul.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

inline void mul_tfl2(const MulArgs& args, uint32_t begin, uint32_t end) {
  const VecI32 zero1 = set_ints(args.input1_zero_point);
  const VecI32 zero2 = set_ints(args.input2_zero_point);
  const Requant requant = set_requant(args.output_multiplier, args.output_shift);
  const Output output = set_output(args.output_zero_point, args.clamp_min, args.clamp_max);
  for_each_pair(args, begin, end, [&](VecI32 a, VecI32 b) {
    return finish(requantize(mul(sub(a, zero1), sub(b, zero2)), requant), output);
  });
}

inline void mul_f32e(const MulArgs& args, uint32_t begin, uint32_t end) {
  const VecI32 zero1 = set_ints(args.input1_zero_point);
  const VecI32 zero2 = set_ints(args.input2_zero_point);
  const VecF32 scale1 = set_reals(args.input1_scale);
  const VecF32 scale2 = set_reals(args.input2_scale);
  const VecF32 output_scale = set_reals(args.output_scale);
  const RealOutput output = set_real_output(args.output_zero_point, args.clamp_min, args.clamp_max);
  for_each_pair(args, begin, end, [&](VecI32 a, VecI32 b) {
    const VecF32 product = mul(dequantize(a, zero1, scale1), dequantize(b, zero2, scale2));
    return finish(div(product, output_scale), output);
  });
}

inline void mul_lanes(const MulArgs& args, uint32_t begin, uint32_t end) {
  if (args.contract == Contract::kF32e) {
    mul_f32e(args, begin, end);
  } else {
    mul_tfl2(args, begin, end);
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(mul) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const MulArgs& args) { return args.dtype == Dtype::kS16 ? Refusal::kDtype : Refusal::kNone; }

size_t scratch_bytes(const MulArgs&) { return 0; }

uint32_t work_items(const MulArgs& args) { return num_chunks(args.broadcast.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const MulArgs& args, uint32_t begin, uint32_t end, void*) { mul_lanes(args, begin, end); }
#endif

}  // QPLAN_SIMD_NAMESPACE(mul)

}  // namespace qplan
