// clang-format off
#include "kernels/numeric/lanes_avx512vnni.inl"  // first: the next one uses its names
#include "kernels/mul/mul_lanes.inl"
// clang-format on

namespace qplan::mul_avx512vnni {

bool accepts(const MulArgs&) { return true; }

size_t scratch_bytes(const MulArgs&) { return 0; }

uint32_t units(const MulArgs& args) { return num_chunks(args.broadcast.elements); }

void run(const MulArgs& args, uint32_t begin, uint32_t end, void*) { mul_lanes(args, begin, end); }

}  // namespace qplan::mul_avx512vnni
