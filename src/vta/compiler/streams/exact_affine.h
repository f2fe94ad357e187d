// Few instructions for an operator whose inputs have few values: integers w1, w2, c and s such that
//
//   f(x1, x2) = clamp((w1 x1 + w2 x2 + c) >> s, lo, hi)         for all x1, x2
//
// where f rounds a real number that is affine in x1 and x2, by whatever rule and however often. Such a form
// is looked for, then proved by trying all inputs; there may be none.
#ifndef QPLAN_SRC_VTA_COMPILER_STREAMS_EXACT_AFFINE_H_
#define QPLAN_SRC_VTA_COMPILER_STREAMS_EXACT_AFFINE_H_

#include <cstdint>
#include <functional>
#include <optional>

namespace qplan::vta::compiler {

struct AffineInput {
  int32_t min = 0, max = 0;  // what it can be
  double slope = 0.0;        // of f's real number
  int32_t zero_point = 0;    // where it contributes nothing
};

struct AffineProblem {
  AffineInput x1, x2;  // with one input only, x2 is 0
  int32_t zero_point = 0;
  // What f is clamped to: its own range. Where f is lo or hi, the real number may be far outside.
  int32_t lo = 0, hi = 0;
  std::function<int32_t(int32_t x1, int32_t x2)> f;
};

struct AffineForm {
  int32_t weight1 = 0, weight2 = 0, offset = 0, shift = 0;
  int32_t least = 0, most = 0;  // results before the clamp, over all inputs
};

// The sum before the shift fits 32 bits for all inputs. Time: a few passes over all inputs.
std::optional<AffineForm> find_affine_form(const AffineProblem& problem);

}  // namespace qplan::vta::compiler

#endif  // QPLAN_SRC_VTA_COMPILER_STREAMS_EXACT_AFFINE_H_
