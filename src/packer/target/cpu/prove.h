// Float epilogues of requantisations and sums, proved equal to the integer ones for every accumulator that
// can occur.
#ifndef QPLAN_SRC_PACKER_TARGET_CPU_PROVE_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_PROVE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "format/plan_generated.h"
#include "kernels/numeric/requantize.h"

namespace qplan::target::cpu {

// Proofs that two floating point instructions give what a contract's integers give. For a channel whose
// accumulators are known to lie in a range, prove_float_epilogue looks for a scale and an offset with which
//
//   float epilogue(a) = clamp(zero_point + int(fma(float(a), scale, offset)), clamp_min, clamp_max)
//
// equals the contract's output for every accumulator of the range, and returns them only when that is
// certain. format/README.md, "Float requantisation", says what plans do with them.

// One channel: tfl2 or tfl1, its constants (multiplier 0 or in [2^30, 2^31), shift in [-31, 30]), the
// output's zero point and clamp (8 bits), and the range of its accumulators.
struct ChannelRequantization {
  format::Contract contract = format::Contract_TFL2;
  int32_t multiplier = 0;
  int32_t shift = 0;
  int32_t zero_point = 0;
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
  int64_t accumulator_min = 0;
  int64_t accumulator_max = 0;
};

struct FloatConstants {
  float scale = 0.0f;
  float offset = 0.0f;
};

// The form that can serve channels of this zero point and clamp: outputs below the zero point, which rounding
// towards zero treats as those above, need the offset with the accumulator's sign.
format::FloatEpilogue float_epilogue_of(int32_t zero_point, int32_t clamp_min);

// Constants of the form that are proved for the channel; none when no proof was found.
std::optional<FloatConstants> prove_float_epilogue(const ChannelRequantization& channel,
                                                   format::FloatEpilogue form);

// Whether these constants are proved for the channel. False may also mean that the proof does not cover the
// channel.
bool float_epilogue_is_exact(const ChannelRequantization& channel, format::FloatEpilogue form,
                             const FloatConstants& constants);

// int(fma(float(a), scale, offset)), each step rounded towards zero, the offset with the sign of `a` under
// FloatEpilogue_SIGNED: to the bit what IEEE hardware makes of it where that is below 2^24, otherwise within
// one. Without a math library. The offset is in [1/4, 1), the result below 2^31.
int32_t evaluate_float_epilogue(format::FloatEpilogue form, const FloatConstants& constants, int32_t a);

// How many groups of four have products that meet in 16 bits (kernels/layout.h): 4, 2, or 0 where it is only
// one. weights: packed in blocks of 16 outputs; tap_groups: of each tap.
uint8_t prove_int16_groups(std::span<const uint8_t> weights, uint64_t tap_groups);

// A proof by trial that two fused multiply-adds give what the integers of add and sub under TFL2 give: 8-bit
// inputs make 65,536 pairs. format/README.md, "Float requantisation", says what plans do with it.

// The parameters of a step of the family add or sub (kernels/elementwise/add.h).
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

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_PROVE_H_
