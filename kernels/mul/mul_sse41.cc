// clang-format off
#include "kernels/numeric/lanes_sse41.inl"  // first: the next one uses its names
#include "kernels/mul/mul_lanes.inl"
// clang-format on

namespace qplan::mul_sse41 {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const MulArgs&) { return Refusal::kNone; }

size_t scratch_bytes(const MulArgs&) { return 0; }

uint32_t units(const MulArgs& args) { return num_chunks(args.broadcast.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const MulArgs& args, uint32_t begin, uint32_t end, void*) { mul_lanes(args, begin, end); }
#endif

}  // namespace qplan::mul_sse41
