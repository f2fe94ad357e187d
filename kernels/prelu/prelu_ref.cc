#include "kernels/elementwise/binary_ref.h"
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
  combine_elements(args.broadcast, range, static_cast<const T*>(args.input),
                   static_cast<const T*>(args.alpha), static_cast<T*>(args.output),
                   [&](int32_t x, int32_t alpha) { return prelu_of(args, x, alpha); });
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
