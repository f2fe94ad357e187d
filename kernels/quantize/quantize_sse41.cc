// clang-format off
#include "kernels/numeric/lanes_sse41.inl"  // first: the next one uses its names
#include "kernels/quantize/quantize_lanes.inl"
// clang-format on

namespace qplan::quantize_sse41 {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const QuantizeArgs&) { return Refusal::kNone; }

size_t scratch_bytes(const QuantizeArgs&) { return 0; }

uint32_t units(const QuantizeArgs& args) { return num_chunks(args.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const QuantizeArgs& args, uint32_t begin, uint32_t end, void*) { quantize_lanes(args, begin, end); }
#endif

}  // namespace qplan::quantize_sse41
