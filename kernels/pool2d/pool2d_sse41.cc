// clang-format off
#include "kernels/numeric/bytes_sse41.inl"  // first: the next one uses its names
#include "kernels/pool2d/pool2d_lanes.inl"
// clang-format on

namespace qplan {

namespace avg_pool2d_sse41 {
#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Pool2dArgs& args) {
  return uint64_t{args.pool_h} * args.pool_w < kMaxAverageCount ? Refusal::kNone : Refusal::kTooLarge;
}
size_t scratch_bytes(const Pool2dArgs&) { return 0; }
uint32_t units(const Pool2dArgs& args) { return args.batch * args.output_h; }
#endif
#if !defined(QPLAN_ONLY_QUERIES)
void run(const Pool2dArgs& args, uint32_t begin, uint32_t end, void*) { avg_pool2d_lanes(args, begin, end); }
#endif
}  // namespace avg_pool2d_sse41

namespace max_pool2d_sse41 {
#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Pool2dArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const Pool2dArgs&) { return 0; }
uint32_t units(const Pool2dArgs& args) { return args.batch * args.output_h; }
#endif
#if !defined(QPLAN_ONLY_QUERIES)
void run(const Pool2dArgs& args, uint32_t begin, uint32_t end, void*) { max_pool2d_lanes(args, begin, end); }
#endif
}  // namespace max_pool2d_sse41

}  // namespace qplan
