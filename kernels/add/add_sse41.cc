// clang-format off
#include "kernels/numeric/bytes_sse41.inl"  // first: the next one uses its names
#include "kernels/add/add_lanes.inl"
// clang-format on

namespace qplan {

namespace add_sse41 {
#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const AddArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const AddArgs&) { return 0; }
uint32_t units(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
#endif
#if !defined(QPLAN_ONLY_QUERIES)
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) { add_lanes(args, false, begin, end); }
#endif
}  // namespace add_sse41

namespace sub_sse41 {
#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const AddArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const AddArgs&) { return 0; }
uint32_t units(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
#endif
#if !defined(QPLAN_ONLY_QUERIES)
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) { add_lanes(args, true, begin, end); }
#endif
}  // namespace sub_sse41

}  // namespace qplan
