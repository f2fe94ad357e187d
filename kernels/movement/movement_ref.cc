// The references of the kernels that move elements.
#include <string.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/movement/movement.h"

namespace qplan {
namespace copy_ref {

Refusal accepts(const CopyArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const CopyArgs&) { return 0; }
uint32_t work_items(const CopyArgs& args) { return num_chunks(args.bytes); }

void run(const CopyArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.input == args.output) return;
  const ElementRange range = chunk_range(args.bytes, begin, end);
  memcpy(static_cast<uint8_t*>(args.output) + range.begin,
         static_cast<const uint8_t*>(args.input) + range.begin, static_cast<size_t>(range.end - range.begin));
}

}  // namespace copy_ref

// A work item is a row: all that is under one position of the axes before the concatenated one. An input
// that is where it belongs in the output is not moved.
namespace concat_ref {

Refusal accepts(const ConcatArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const ConcatArgs&) { return 0; }
uint32_t work_items(const ConcatArgs& args) { return args.rows; }

void run(const ConcatArgs& args, uint32_t begin, uint32_t end, void*) {
  for (uint32_t row = begin; row < end; ++row) {
    uint8_t* output = args.output + row * args.output_row_bytes;
    for (uint32_t i = 0; i < args.num_inputs; ++i) {
      const uint8_t* input = args.inputs[i] + row * args.row_bytes[i];
      if (input != output) memcpy(output, input, static_cast<size_t>(args.row_bytes[i]));
      output += args.row_bytes[i];
    }
  }
}

}  // namespace concat_ref

// A work item is a row: all that is under one position of the axes before the one that is cut. An output
// that is where it is found in the input is not moved.
namespace split_ref {

Refusal accepts(const SplitArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const SplitArgs&) { return 0; }
uint32_t work_items(const SplitArgs& args) { return args.rows; }

void run(const SplitArgs& args, uint32_t begin, uint32_t end, void*) {
  for (uint32_t row = begin; row < end; ++row) {
    const uint8_t* input = args.input + row * args.input_row_bytes;
    for (uint32_t i = 0; i < args.num_outputs; ++i) {
      uint8_t* output = args.outputs[i] + row * args.row_bytes[i];
      if (output != input) memcpy(output, input, static_cast<size_t>(args.row_bytes[i]));
      input += args.row_bytes[i];
    }
  }
}

}  // namespace split_ref

// A work item is a row of the output: all that is under one position of the axes but the last.
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

// A work item is a row of the output: all that is under one position of the axes but the last.
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
