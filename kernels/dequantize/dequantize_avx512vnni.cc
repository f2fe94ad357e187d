// clang-format off
#include "kernels/numeric/lanes_avx512vnni.inl"  // first: the next one uses its names
#include "kernels/dequantize/dequantize_lanes.inl"
// clang-format on

namespace qplan::dequantize_avx512vnni {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const DequantizeArgs&) { return Refusal::kNone; }

size_t scratch_bytes(const DequantizeArgs&) { return 0; }

uint32_t units(const DequantizeArgs& args) { return num_chunks(args.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const DequantizeArgs& args, uint32_t begin, uint32_t end, void*) {
  dequantize_lanes(args, begin, end);
}
#endif

}  // namespace qplan::dequantize_avx512vnni
