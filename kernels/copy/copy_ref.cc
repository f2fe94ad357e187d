#include <string.h>

#include "kernels/copy/copy.h"
#include "kernels/elementwise/broadcast.h"

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
}  // namespace qplan
