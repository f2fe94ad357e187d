// A proof by trial that two fused multiply-adds give what the integers of add and sub under TFL2 give: 8-bit
// inputs make 65,536 pairs. format/README.md, "Float forms", says what plans do with it.
#ifndef QPLAN_SRC_PACKER_TARGET_CPU_PROVE_SUM_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_PROVE_SUM_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "kernels/numeric/quantize_multiplier.h"

namespace qplan::target::cpu {

// The parameters of a step of the family add or sub (kernels/add/add.h).
struct SumRequantization {
  bool subtract = false;
  int32_t dtype_min = 0;  // of inputs and output: 0 or -128
  int32_t left_shift = 0;
  int32_t zero_point1 = 0, zero_point2 = 0, output_zero_point = 0;
  QuantizedMultiplier multiplier1 = {}, multiplier2 = {}, output_multiplier = {};
  int32_t clamp_min = 0, clamp_max = 0;

  // Any order.
  bool operator<(const SumRequantization& other) const;
};

struct SumConstants {
  float scale1 = 0.0f;  // above 0
  float scale2 = 0.0f;
  float offset = 0.0f;
};

// round half even (fma(float(a), scale1, fma(float(b), scale2, offset))), to the bit what IEEE hardware makes
// of it; the result must fit int32.
int32_t evaluate_float_sum(const SumConstants& constants, int32_t a, int32_t b);

// Constants with which the clamped float sum equals the output for every pair of inputs; none where the
// search found none.
std::optional<SumConstants> prove_float_sum(const SumRequantization& sum);

// The proofs of one network: sums with the same parameters share one, and a network of very many different
// sums goes without from some number on, since each takes milliseconds.
class SumProofs {
 public:
  static constexpr size_t kMaxProofs = 1000;
  std::optional<SumConstants> prove(const SumRequantization& sum);

 private:
  std::map<SumRequantization, std::optional<SumConstants>> proofs_;
};

}  // namespace qplan::target::cpu

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_PROVE_SUM_H_
