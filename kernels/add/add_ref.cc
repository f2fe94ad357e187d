// The references of add and sub: the formula of add.h as written.
#include "kernels/add/add.h"
#include "kernels/elementwise/binary_ref.h"

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

template <Combine kCombine>
void run_any(const AddArgs& args, uint32_t begin, uint32_t end) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  combine_quantized(args, range, [&](int32_t a, int32_t b) { return combined<kCombine>(args, a, b); });
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
