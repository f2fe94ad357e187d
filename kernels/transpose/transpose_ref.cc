#include "kernels/elementwise/broadcast.h"
#include "kernels/transpose/transpose.h"

namespace qplan {
namespace transpose_ref {
namespace {

template <typename T>
void run_typed(const TransposeArgs& args, ElementRange range) {
  const T* input = static_cast<const T*>(args.input);
  T* output = static_cast<T*>(args.output);
  const uint32_t last = args.rank - 1;
  const uint64_t stride = args.input_strides[last];
  for (uint64_t at = range.begin; at < range.end;) {
    uint64_t rest = at / args.extents[last];
    const uint64_t first = at % args.extents[last];
    uint64_t from = first * stride;
    for (uint32_t axis = last; axis-- > 0;) {
      from += rest % args.extents[axis] * args.input_strides[axis];
      rest /= args.extents[axis];
    }
    const uint64_t left = range.end - at;
    const uint64_t count = args.extents[last] - first < left ? args.extents[last] - first : left;
    for (uint64_t i = 0; i < count; ++i) output[at + i] = input[from + i * stride];
    at += count;
  }
}

}  // namespace

Refusal accepts(const TransposeArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const TransposeArgs&) { return 0; }
uint32_t work_items(const TransposeArgs& args) { return num_chunks(args.elements); }

void run(const TransposeArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  switch (args.element_bytes) {
    case 1:
      return run_typed<uint8_t>(args, range);
    case 2:
      return run_typed<uint16_t>(args, range);
    case 4:
      return run_typed<uint32_t>(args, range);
    default:
      return run_typed<uint64_t>(args, range);
  }
}

}  // namespace transpose_ref
}  // namespace qplan
