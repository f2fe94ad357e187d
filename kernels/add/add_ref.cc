// The references of add and sub: the formula of add.h as written.
#include "kernels/add/add.h"
#include "kernels/elementwise/broadcast.h"

namespace qplan {
namespace {

enum class Combine { kAdd, kSubtract, kSquaredDifference };

template <Combine kCombine>
int32_t combined(const AddArgs& args, int32_t a, int32_t b) {
  if constexpr (kCombine == Combine::kSquaredDifference) {
    return squared_difference_tfl2(args, a - args.input1_zero_point, b - args.input2_zero_point);
  } else {
    return sum_of(args, a, b, kCombine == Combine::kSubtract);
  }
}

template <typename T, Combine kCombine>
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
                             output[out + i] = static_cast<T>(
                                 combined<kCombine>(args, a[a_at + i * a_step], b[b_at + i * b_step]));
                           }
                         });
}

template <Combine kCombine>
void run_any(const AddArgs& args, uint32_t begin, uint32_t end) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  if (args.dtype == Dtype::kU8) {
    run_typed<uint8_t, kCombine>(args, range);
  } else if (args.dtype == Dtype::kS16) {
    run_typed<int16_t, kCombine>(args, range);
  } else {
    run_typed<int8_t, kCombine>(args, range);
  }
}

}  // namespace

namespace add_ref {
Refusal accepts(const AddArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const AddArgs&) { return 0; }
uint32_t work_items(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) {
  run_any<Combine::kAdd>(args, begin, end);
}
}  // namespace add_ref

namespace sub_ref {
Refusal accepts(const AddArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const AddArgs&) { return 0; }
uint32_t work_items(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) {
  run_any<Combine::kSubtract>(args, begin, end);
}
}  // namespace sub_ref

namespace squared_difference_ref {
Refusal accepts(const AddArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const AddArgs&) { return 0; }
uint32_t work_items(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) {
  run_any<Combine::kSquaredDifference>(args, begin, end);
}
}  // namespace squared_difference_ref

}  // namespace qplan
