#include "kernels/elementwise/binary_ref.h"
#include "kernels/mul/mul.h"
#include "kernels/numeric/requantize.h"

namespace qplan {
namespace mul_ref {
namespace {

int32_t product_tfl2(const MulArgs& args, int32_t a, int32_t b) {
  const int32_t scaled = requantize_tfl2(a * b, args.output_multiplier, args.output_shift);
  return add_clamp(scaled, args.output_zero_point, args.clamp_min, args.clamp_max);
}

int32_t product_f32e(const MulArgs& args, int32_t a, int32_t b) {
  const float a_scaled = static_cast<float>(a) * args.input1_scale;
  const float b_scaled = static_cast<float>(b) * args.input2_scale;
  return quantize_f32e(a_scaled * b_scaled / args.output_scale, args.output_zero_point, args.clamp_min,
                       args.clamp_max);
}

// kProduct: of a and b less their zero points.
template <int32_t (*kProduct)(const MulArgs&, int32_t, int32_t)>
void run_dtype(const MulArgs& args, ElementRange range) {
  combine_quantized(args, range, [&](int32_t a, int32_t b) {
    return kProduct(args, a - args.input1_zero_point, b - args.input2_zero_point);
  });
}

}  // namespace

Refusal accepts(const MulArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const MulArgs&) { return 0; }
uint32_t work_items(const MulArgs& args) { return num_chunks(args.broadcast.elements); }

void run(const MulArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  if (args.contract == Contract::kF32e) {
    run_dtype<product_f32e>(args, range);
  } else {
    run_dtype<product_tfl2>(args, range);
  }
}

}  // namespace mul_ref
}  // namespace qplan
