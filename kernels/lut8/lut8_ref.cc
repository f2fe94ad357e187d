#include "kernels/elementwise/broadcast.h"
#include "kernels/lut8/lut8.h"

namespace qplan {
namespace lut8_ref {

Refusal accepts(const Lut8Args&) { return Refusal::kNone; }
size_t scratch_bytes(const Lut8Args&) { return 0; }
uint32_t work_items(const Lut8Args& args) { return num_chunks(args.elements); }

void run(const Lut8Args& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  for (uint64_t i = range.begin; i < range.end; ++i) args.output[i] = args.table[args.input[i]];
}

}  // namespace lut8_ref
}  // namespace qplan
