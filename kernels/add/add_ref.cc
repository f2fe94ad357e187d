// The references of add and sub: the formula of add.h as written.
#include "kernels/add/add.h"
#include "kernels/elementwise/chunks.h"
#include "kernels/numeric/requantize.h"

namespace qplan {
namespace {

template <bool kSubtract>
int32_t sum_tfl2(const AddArgs& args, int32_t a, int32_t b) {
  const int32_t one = int32_t{1} << args.left_shift;
  const int32_t a_scaled = requantize_tfl2(a * one, args.input1_multiplier, args.input1_shift);
  const int32_t b_scaled = requantize_tfl2(b * one, args.input2_multiplier, args.input2_shift);
  const int32_t sum = kSubtract ? a_scaled - b_scaled : a_scaled + b_scaled;
  const int32_t scaled = requantize_tfl2(sum, args.output_multiplier, args.output_shift);
  return add_clamp(scaled, args.output_zero_point, args.clamp_min, args.clamp_max);
}

template <bool kSubtract>
int32_t sum_f32e(const AddArgs& args, int32_t a, int32_t b) {
  const float a_scaled = static_cast<float>(a) * args.input1_scale;
  const float b_scaled = static_cast<float>(b) * args.input2_scale;
  const float sum = kSubtract ? a_scaled - b_scaled : a_scaled + b_scaled;
  return quantize_f32e(sum / args.output_scale, args.output_zero_point, args.clamp_min, args.clamp_max);
}

// kSum: of a and b less their zero points.
template <typename T, int32_t (*kSum)(const AddArgs&, int32_t, int32_t)>
void run_typed(const AddArgs& args, ElementRange range) {
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
                             output[out + i] = static_cast<T>(kSum(args, a_value, b_value));
                           }
                         });
}

template <int32_t (*kSum)(const AddArgs&, int32_t, int32_t)>
void run_dtype(const AddArgs& args, ElementRange range) {
  if (args.dtype == Dtype::kU8) {
    run_typed<uint8_t, kSum>(args, range);
  } else {
    run_typed<int8_t, kSum>(args, range);
  }
}

template <bool kSubtract>
void run_any(const AddArgs& args, uint32_t begin, uint32_t end) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  if (args.contract == Contract::kF32e) {
    run_dtype<sum_f32e<kSubtract>>(args, range);
  } else {
    run_dtype<sum_tfl2<kSubtract>>(args, range);
  }
}

}  // namespace

namespace add_ref {
bool accepts(const AddArgs&) { return true; }
size_t scratch_bytes(const AddArgs&) { return 0; }
uint32_t units(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) { run_any<false>(args, begin, end); }
}  // namespace add_ref

namespace sub_ref {
bool accepts(const AddArgs&) { return true; }
size_t scratch_bytes(const AddArgs&) { return 0; }
uint32_t units(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) { run_any<true>(args, begin, end); }
}  // namespace sub_ref

}  // namespace qplan
