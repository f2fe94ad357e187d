// The formulas of compare.h as they stand there.
#include <string.h>

#include "kernels/compare/compare.h"
#include "kernels/elementwise/binary_ref.h"

namespace qplan {

namespace compare_ref {
namespace {

template <typename T>
bool holds(Comparison op, T a, T b) {
  switch (op) {
    case Comparison::kLess:
      return a < b;
    case Comparison::kLessEqual:
      return a <= b;
    case Comparison::kEqual:
      return a == b;
  }
  return false;
}

template <typename T>
void run_elements(const CompareArgs& args, const ElementRange& range) {
  combine_elements(args.broadcast, range, static_cast<const T*>(args.a), static_cast<const T*>(args.b),
                   args.output, [&](T a, T b) { return holds(args.op, a, b) ? 1 : 0; });
}

}  // namespace

Refusal accepts(const CompareArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const CompareArgs&) { return 0; }
uint32_t work_items(const CompareArgs& args) { return num_chunks(args.broadcast.elements); }

void run(const CompareArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  switch (args.dtype) {
    case Dtype::kU8:
      return run_elements<uint8_t>(args, range);
    case Dtype::kS8:
      return run_elements<int8_t>(args, range);
    case Dtype::kS16:
      return run_elements<int16_t>(args, range);
    case Dtype::kS32:
      return run_elements<int32_t>(args, range);
    case Dtype::kS64:
      return run_elements<int64_t>(args, range);
    case Dtype::kF32:
      return run_elements<float>(args, range);
    case Dtype::kOther:
      break;
  }
}

}  // namespace compare_ref

namespace select_ref {

Refusal accepts(const SelectArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const SelectArgs&) { return 0; }
uint32_t work_items(const SelectArgs& args) { return num_chunks(args.elements); }

void run(const SelectArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  const uint64_t last = args.rank - 1;
  for (uint64_t at = range.begin; at < range.end;) {
    // What is left of the innermost axis from here on.
    uint64_t rest = at, condition = 0, a = 0, b = 0, count = 0;
    for (uint32_t axis = args.rank; axis-- > 0;) {
      const uint64_t index = rest % args.extents[axis];
      rest /= args.extents[axis];
      condition += index * args.condition_strides[axis];
      a += index * args.a_strides[axis];
      b += index * args.b_strides[axis];
      if (axis == last) count = args.extents[axis] - index;
    }
    if (count > range.end - at) count = range.end - at;
    for (uint64_t i = 0; i < count; ++i) {
      const bool first = args.condition[condition + i * args.condition_strides[last]] != 0;
      const uint8_t* from = first ? args.a + (a + i * args.a_strides[last]) * args.element_bytes
                                  : args.b + (b + i * args.b_strides[last]) * args.element_bytes;
      memcpy(args.output + (at + i) * args.element_bytes, from, args.element_bytes);
    }
    at += count;
  }
}

}  // namespace select_ref
}  // namespace qplan
