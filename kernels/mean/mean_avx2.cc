// clang-format off
#include "kernels/numeric/bytes_avx2.inl"  // first: the next one uses its names
#include "kernels/mean/mean_channels.inl"
// clang-format on

namespace qplan::mean_avx2 {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const MeanArgs& args) { return mean_channels_accept(args); }

size_t scratch_bytes(const MeanArgs&) { return 0; }

uint32_t units(const MeanArgs& args) { return mean_channels_units(args); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const MeanArgs& args, uint32_t begin, uint32_t end, void*) { mean_channels(args, begin, end); }
#endif

}  // namespace qplan::mean_avx2
