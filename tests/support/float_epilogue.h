// Float epilogues (kernels/numeric/requantize.h) of random layers, and what they make of an accumulator by
// exact arithmetic. Their constants are near those of a proof, not proved: what is tested is that a variant
// computes the form, not that the form is the contract.
#ifndef QPLAN_TESTS_SUPPORT_FLOAT_EPILOGUE_H_
#define QPLAN_TESTS_SUPPORT_FLOAT_EPILOGUE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/layout.h"
#include "kernels/numeric/requantize.h"
#include "src/runtime/bind/family.h"
#include "tests/support/exact_f32e.h"
#include "tests/support/random.h"

namespace qplan::testing {

// Half of those that may have one get one, and one group of `group` channels in four lacks it. Problem has
// multiplier and shift already.
template <typename Args, typename Problem>
void draw_float_epilogue(Random& random, Args* args, Problem* problem, size_t channels, size_t group) {
  args->float_epilogue = FloatEpilogue::kNone;
  problem->float_scale.clear();
  problem->float_offset.clear();
  const bool possible = args->contract == Contract::kTfl2 || args->contract == Contract::kTfl1;
  if (!possible || random.chance(0.5)) return;
  args->float_epilogue = random.chance(0.5) ? FloatEpilogue::kPlain : FloatEpilogue::kSigned;
  bool group_has_form = true;
  for (size_t o = 0; o < channels; ++o) {
    if (o % group == 0) group_has_form = random.chance(0.75);
    const int shift = std::min<int>(problem->shift[o], -2) - 31;  // nothing leaves int32
    const auto scale = static_cast<float>(std::ldexp(static_cast<double>(problem->multiplier[o]), shift));
    problem->float_scale.push_back(group_has_form ? scale : -1.0f);
    problem->float_offset.push_back(static_cast<float>(0.5 + random.unit() * 0.25));
  }
}

// For a layer with weights. Kernels may ignore the floats of a tile of 64 when one of its groups of 16 has
// none.
template <typename Args, typename Problem>
void draw_float_epilogue(Random& random, Args* args, Problem* problem) {
  if (args->weights_layout != kLayout_ohwi) {
    draw_float_epilogue(random, args, problem, args->output_c, 64);
  } else {
    args->float_epilogue = FloatEpilogue::kNone;
  }
}

// An integer rounded towards zero to 24 bits.
inline double f32_towards_zero(int64_t a) {
  int64_t magnitude = a < 0 ? -a : a, unit = 1;
  while (magnitude / unit >= int64_t{1} << 24) unit *= 2;
  magnitude = magnitude / unit * unit;
  return static_cast<double>(a < 0 ? -magnitude : magnitude);
}

// The output of channel o by its form, or by the contract where its group has none.
template <typename Args, typename Problem>
int32_t exact_form_output(const Args& args, const Problem& problem, int64_t accumulator, size_t o) {
  if (args.float_epilogue == FloatEpilogue::kNone || problem.float_scale[o] < 0.0f) {
    return exact_output(args, problem, accumulator, o);
  }
  const bool negate = args.float_epilogue == FloatEpilogue::kSigned && accumulator < 0;
  const auto offset = static_cast<double>(negate ? -problem.float_offset[o] : problem.float_offset[o]);
  // The product is exact, and rounding the sum to double passes no integer that an output can be.
  const double sum = f32_towards_zero(accumulator) * static_cast<double>(problem.float_scale[o]) + offset;
  const auto q = static_cast<int64_t>(sum);
  return static_cast<int32_t>(exact_clamp(q + args.output_zero_point, args.clamp_min, args.clamp_max));
}

// `expected`, with the outputs of the contract where `outputs` has them: of DotProd, whose tiles compute the
// form or the contract, whichever takes fewer instructions.
inline std::vector<int32_t> either_expected(std::vector<int32_t> expected,
                                            const std::vector<int32_t>& contract,
                                            const std::vector<int32_t>& outputs,
                                            const KernelVariant& variant) {
  if (variant.isa != QPLAN_ISA_DOTPROD) return expected;
  for (size_t i = 0; i < expected.size() && i < outputs.size(); ++i) {
    if (outputs[i] == contract[i]) expected[i] = contract[i];
  }
  return expected;
}

// The expected output of a variant: the reference ignores float requantisation, and SSE4.1 has no fused
// multiply-add.
template <typename Problem>
const std::vector<int32_t>& expected_of(const Problem& problem, const KernelVariant& variant) {
  return variant.isa <= QPLAN_ISA_SSE41 ? problem.expected : problem.form_expected;
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_FLOAT_EPILOGUE_H_
