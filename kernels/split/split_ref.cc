// A work item is a row: all that is under one position of the axes before the one that is cut. An output
// that is where it is found in the input is not moved.
#include <string.h>

#include "kernels/split/split.h"

namespace qplan {
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
}  // namespace qplan
