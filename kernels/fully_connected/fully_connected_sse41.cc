// clang-format off
#include "kernels/numeric/gemm_sse41.inl"  // first: the next one uses its names
#include "kernels/fully_connected/fully_connected_gemm.inl"
// clang-format on

namespace qplan::fully_connected_sse41 {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const FullyConnectedArgs& args) { return rows_accepts(args); }

size_t scratch_bytes(const FullyConnectedArgs& args) { return rows_scratch_bytes(args); }

uint32_t units(const FullyConnectedArgs& args) { return row_units(args); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const FullyConnectedArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  fully_connected_gemm(args, begin, end, scratch);
}
#endif

}  // namespace qplan::fully_connected_sse41
