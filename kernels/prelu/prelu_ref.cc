#include "kernels/numeric/requantize.h"
#include "kernels/prelu/prelu.h"

namespace qplan {
namespace prelu_ref {
namespace {

int32_t prelu_of(const PreluArgs& args, int32_t x, int32_t alpha) {
  const int32_t v = x - args.input_zero_point;
  // A product is within +-2^16 of 8 bits, and within +-2^30 of int16.
  const int32_t scaled =
      v >= 0 ? requantize_tfl2(v, args.above_multiplier, args.above_shift)
             : requantize_tfl2(v * (alpha - args.alpha_zero_point), args.below_multiplier, args.below_shift);
  return add_clamp(scaled, args.output_zero_point, dtype_min(args.dtype), dtype_max(args.dtype));
}

template <typename T>
void run_typed(const PreluArgs& args, ElementRange range) {
  const T* input = static_cast<const T*>(args.input);
  const T* alpha = static_cast<const T*>(args.alpha);
  T* output = static_cast<T*>(args.output);
  const uint32_t last = args.broadcast.rank - 1;
  const uint64_t input_step = args.broadcast.a_strides[last], alpha_step = args.broadcast.b_strides[last];
  for_each_broadcast_run(args.broadcast, range.begin, range.end,
                         [&](uint64_t out, uint64_t input_at, uint64_t alpha_at, uint64_t count) {
                           for (uint64_t i = 0; i < count; ++i) {
                             output[out + i] = static_cast<T>(prelu_of(args, input[input_at + i * input_step],
                                                                       alpha[alpha_at + i * alpha_step]));
                           }
                         });
}

}  // namespace

Refusal accepts(const PreluArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const PreluArgs&) { return 0; }
uint32_t work_items(const PreluArgs& args) { return num_chunks(args.broadcast.elements); }

void run(const PreluArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  if (args.dtype == Dtype::kU8) {
    run_typed<uint8_t>(args, range);
  } else if (args.dtype == Dtype::kS16) {
    run_typed<int16_t>(args, range);
  } else {
    run_typed<int8_t>(args, range);
  }
}

}  // namespace prelu_ref
}  // namespace qplan
