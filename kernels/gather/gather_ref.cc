// A work item is a row of the output: all that is under one position of the axes but the last.
#include <string.h>

#include "kernels/gather/gather.h"

namespace qplan {
namespace gather_ref {
namespace {

int64_t offset(const GatherArgs& args, uint32_t axis, uint64_t index) {
  const int64_t at = args.tables[axis] != nullptr ? args.tables[axis][index] : static_cast<int64_t>(index);
  return at * args.strides[axis];
}

// A block of a size that the compiler knows is a load and a store.
template <uint64_t kBytes>
void copy_row(const GatherArgs& args, const uint8_t* input, uint8_t* output) {
  const uint32_t last = args.rank - 1;
  const uint64_t bytes = kBytes != 0 ? kBytes : args.block_bytes;
  for (uint64_t i = 0; i < args.extents[last]; ++i) {
    const uint8_t* from = input + offset(args, last, i);
    uint8_t* to = output + i * bytes;
    if (from != to) memcpy(to, from, static_cast<size_t>(bytes));
  }
}

}  // namespace

Refusal accepts(const GatherArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const GatherArgs&) { return 0; }
uint32_t work_items(const GatherArgs& args) { return args.rows; }

void run(const GatherArgs& args, uint32_t begin, uint32_t end, void*) {
  const uint64_t row_bytes = args.extents[args.rank - 1] * args.block_bytes;
  for (uint32_t row = begin; row < end; ++row) {
    const uint8_t* input = args.input;
    uint64_t rest = row;
    for (uint32_t axis = args.rank - 1; axis-- > 0;) {
      input += offset(args, axis, rest % args.extents[axis]);
      rest /= args.extents[axis];
    }
    uint8_t* output = args.output + row * row_bytes;
    switch (args.block_bytes) {
      case 1:
        copy_row<1>(args, input, output);
        break;
      case 2:
        copy_row<2>(args, input, output);
        break;
      case 4:
        copy_row<4>(args, input, output);
        break;
      case 8:
        copy_row<8>(args, input, output);
        break;
      default:
        copy_row<0>(args, input, output);
        break;
    }
  }
}

}  // namespace gather_ref
}  // namespace qplan
