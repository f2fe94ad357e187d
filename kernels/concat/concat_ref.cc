// A work item is a row: all that is under one position of the axes before the concatenated one. An input
// that is where it belongs in the output is not moved.
#include <string.h>

#include "kernels/concat/concat.h"

namespace qplan {
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
}  // namespace qplan
