// clang-format off
#include "kernels/numeric/gemm_avxvnni.inl"  // first: the next one uses its names
#include "kernels/numeric/zip_rows.inl"
#include "kernels/conv2d/conv2d_gemm.inl"
// clang-format on

namespace qplan::conv2d_avxvnni {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Conv2dArgs& args) { return band_accepts(args); }

size_t scratch_bytes(const Conv2dArgs& args) { return conv2d_scratch_bytes(args); }

uint32_t units(const Conv2dArgs& args) { return conv2d_units(args); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const Conv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  conv2d_gemm<add_avx2::run>(args, begin, end, scratch);
}
#endif

}  // namespace qplan::conv2d_avxvnni
