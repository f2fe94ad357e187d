#include "kernels/elementwise/broadcast.h"
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
template <typename T, int32_t (*kProduct)(const MulArgs&, int32_t, int32_t)>
void run_typed(const MulArgs& args, ElementRange range) {
  const T* a = static_cast<const T*>(args.a);
  const T* b = static_cast<const T*>(args.b);
  T* output = static_cast<T*>(args.output);
  const uint32_t last = args.broadcast.rank - 1;
  const uint64_t a_step = args.broadcast.a_strides[last];
  const uint64_t b_step = args.broadcast.b_strides[last];
  for_each_broadcast_run(args.broadcast, range.begin, range.end,
                         [&](uint64_t out, uint64_t a_at, uint64_t b_at, uint64_t count) {
                           for (uint64_t i = 0; i < count; ++i) {
                             const int32_t a_value = a[a_at + i * a_step] - args.input1_zero_point;
                             const int32_t b_value = b[b_at + i * b_step] - args.input2_zero_point;
                             output[out + i] = static_cast<T>(kProduct(args, a_value, b_value));
                           }
                         });
}

template <int32_t (*kProduct)(const MulArgs&, int32_t, int32_t)>
void run_dtype(const MulArgs& args, ElementRange range) {
  if (args.dtype == Dtype::kU8) {
    run_typed<uint8_t, kProduct>(args, range);
  } else if (args.dtype == Dtype::kS16) {
    run_typed<int16_t, kProduct>(args, range);
  } else {
    run_typed<int8_t, kProduct>(args, range);
  }
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
