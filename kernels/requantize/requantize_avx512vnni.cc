// clang-format off
#include "kernels/numeric/lanes_avx512vnni.inl"  // first: the next one uses its names
#include "kernels/requantize/requantize_lanes.inl"
// clang-format on

namespace qplan::requantize_avx512vnni {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const RequantizeArgs& args) { return runs_accept(args); }

size_t scratch_bytes(const RequantizeArgs&) { return 0; }

uint32_t units(const RequantizeArgs& args) { return runs_units(args); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const RequantizeArgs& args, uint32_t begin, uint32_t end, void*) {
  const FormRounding rounding(args.float_form != FloatForm::kNone);
  requantize_lanes(args, begin, end);
}
#endif

}  // namespace qplan::requantize_avx512vnni
