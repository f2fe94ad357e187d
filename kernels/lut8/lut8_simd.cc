// lut8, a vector at a time, by the vocabulary's look-up in a table.
#include <stddef.h>
#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/lut8/lut8.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

inline void lut8_bytes(const Lut8Args& args, uint32_t begin, uint32_t end) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  const ByteTable table(args.table);
  uint64_t i = range.begin;
  for (; i + kBytes <= range.end; i += kBytes) {
    store_ints(args.output + i, table.look_up(load_ints(args.input + i)));
  }
  if (kLoadsFewBytes && i < range.end) {
    const uint32_t left = static_cast<uint32_t>(range.end - i);
    store_vector(args.output + i, table.look_up(load_vector(args.input + i, left)), left);
    return;
  }
  for (; i < range.end; ++i) args.output[i] = args.table[args.input[i]];
}

}  // namespace

QPLAN_SIMD_NAMESPACE(lut8) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Lut8Args& args) { return args.elements >= 64 ? Refusal::kNone : Refusal::kTooSmall; }

size_t scratch_bytes(const Lut8Args&) { return 0; }

uint32_t work_items(const Lut8Args& args) { return num_chunks(args.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const Lut8Args& args, uint32_t begin, uint32_t end, void*) { lut8_bytes(args, begin, end); }
#endif

}  // QPLAN_SIMD_NAMESPACE(lut8)

}  // namespace qplan
