// A work item is a row of the output: all that is under one position of the axes but the last.
#include <string.h>

#include "kernels/pad/pad.h"

namespace qplan {
namespace pad_ref {
namespace {

template <typename T>
void fill_typed(uint8_t* output, uint64_t count, uint64_t value) {
  const T element = static_cast<T>(value);
  for (uint64_t i = 0; i < count; ++i) memcpy(output + i * sizeof(T), &element, sizeof(T));
}

void fill(const PadArgs& args, uint8_t* output, uint64_t count) {
  switch (args.element_bytes) {
    case 1:
      memset(output, static_cast<int>(args.value & 0xff), static_cast<size_t>(count));
      break;
    case 2:
      fill_typed<uint16_t>(output, count, args.value);
      break;
    case 4:
      fill_typed<uint32_t>(output, count, args.value);
      break;
    default:
      fill_typed<uint64_t>(output, count, args.value);
      break;
  }
}

// Whether output row `row` holds a row of the input, and which.
bool input_row_of(const PadArgs& args, uint64_t row, uint64_t* input_row) {
  uint64_t at = 0;
  uint64_t stride = 1;
  for (uint32_t axis = args.rank - 1; axis-- > 0;) {
    const uint64_t index = row % args.output_extents[axis];
    row /= args.output_extents[axis];
    if (index < args.before[axis] || index - args.before[axis] >= args.input_extents[axis]) return false;
    at += (index - args.before[axis]) * stride;
    stride *= args.input_extents[axis];
  }
  *input_row = at;
  return true;
}

}  // namespace

Refusal accepts(const PadArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const PadArgs&) { return 0; }
uint32_t work_items(const PadArgs& args) { return args.rows; }

void run(const PadArgs& args, uint32_t begin, uint32_t end, void*) {
  const uint64_t before = args.before[args.rank - 1];
  const uint64_t inside = args.input_extents[args.rank - 1];
  const uint64_t row_elements = args.output_extents[args.rank - 1];
  const uint64_t inside_bytes = inside * args.element_bytes;
  for (uint32_t row = begin; row < end; ++row) {
    uint8_t* output = args.output + row * row_elements * args.element_bytes;
    uint64_t input_row = 0;
    if (!input_row_of(args, row, &input_row)) {
      fill(args, output, row_elements);
      continue;
    }
    fill(args, output, before);
    output += before * args.element_bytes;
    memcpy(output, args.input + input_row * inside_bytes, static_cast<size_t>(inside_bytes));
    fill(args, output + inside_bytes, row_elements - before - inside);
  }
}

}  // namespace pad_ref
}  // namespace qplan
