#include "kernels/elementwise/binary_ref.h"
#include "kernels/minmax/minmax.h"

namespace qplan {
namespace minmax_ref {

Refusal accepts(const MinmaxArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const MinmaxArgs&) { return 0; }
uint32_t work_items(const MinmaxArgs& args) { return num_chunks(args.broadcast.elements); }

void run(const MinmaxArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  combine_quantized(args, range, [&](auto x, auto y) {
    const bool takes_x = args.is_maximum ? x > y : x < y;
    return takes_x ? x : y;
  });
}

}  // namespace minmax_ref
}  // namespace qplan
