// Operators as steps of the ALU: exact affine forms, and the TFL2 requantisation.
#ifndef QPLAN_SRC_VTA_COMPILER_STREAMS_ALU_STEPS_H_
#define QPLAN_SRC_VTA_COMPILER_STREAMS_ALU_STEPS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/numeric/requantize.h"
#include "src/vta/isa/vta.h"

namespace qplan::vta::compiler {

// ---- few instructions for an operator whose inputs have few values: integers w1, w2, c and s such that
//
//   f(x1, x2) = clamp((w1 x1 + w2 x2 + c) >> s, lo, hi)         for all x1, x2
//
// where f rounds a real number that is affine in x1 and x2, by whatever rule and however often. Such a form
// is looked for, then proved by trying all inputs; there may be none.

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

// ---- the TFL2 requantisation as instructions of the ALU, which has no wide product, no move and no
// subtraction.
//
// To compute, for an accumulator A (bias included, shifted left, |A| <= 2^29), a multiplier M in [2^30, 2^31)
// and a right shift r:  v = floor((A M + 2^30) / 2^31), then v / 2^r rounded to nearest, ties away from zero.
//
// Split A = H 2^15 + L with L in [-2^14, 2^14) (the low 15 bits, sign extended; H = (A + 2^14) >> 15) and
// M = mh 2^15 + ml. With P = H mh and X = H ml + L mh + (L ml >> 15), nested floors give
//     floor((A M + 2^30) / 2^15) = P 2^15 + X + 2^15      and so      v = (P + (X >> 15) + 1) >> 1.
// No sum leaves 32 bits: |H| <= 2^14, |P| < 2^30, |X| < 2^29 + 2^30 + 2^14. A signed L is what makes L mh
// fit, so that it need not be split as an unsigned one must.
//
// The rounding shift: (v + (v >> 31) + 2^(r-1)) >> r for r > 0, v for r = 0. The output's zero point is added
// before the shift, as zp 2^r, where that fits: |v| <= 2^29, so up to r = 23.

// Blocks of ACC of a tile's size: the accumulators, which become the outputs, and temporaries.
enum class AccBlock : uint8_t { kAccumulator, kLow, kCross, kOther };
inline constexpr int64_t kNumTemporaries = 3;

// One instruction over all elements of a tile.
struct AluStep {
  enum class Source : uint8_t { kImmediate, kAccBlock, kConstant, kReset };
  AluOp op = AluOp::kAdd;
  AccBlock dst = AccBlock::kAccumulator;
  Source source = Source::kImmediate;  // kReset: the block becomes zero
  AccBlock block = AccBlock::kAccumulator;
  int64_t constant = 0;  // kConstant: index into Requantization::constants
  int16_t immediate = 0;

  static AluStep by_immediate(AluOp op, AccBlock dst, int32_t value);  // of 16 bits
  static AluStep by_block(AluOp op, AccBlock dst, AccBlock src);
  static AluStep by_constant(AluOp op, AccBlock dst, int64_t index);
  static AluStep reset(AccBlock dst);
};

struct Requantization {
  std::vector<AluStep> steps;
  // One vector for each constant per channel, 16 * channel blocks values: zeros beyond the last channel.
  std::vector<std::vector<int32_t>> constants;
  // Bytes of the results that are stored: 1, or 4 where int32 leaves the device, one plane for each byte, the
  // lowest first. Each is stored before the accumulators are shifted for the next.
  int64_t num_planes = 1;

  int64_t num_constants() const { return static_cast<int64_t>(constants.size()); }
  int64_t num_alu_instructions() const;  // without resets
  int64_t cycles_per_element() const;    // by src/vta/isa/vta.h, resets included
};

// bias: with the input's zero point folded in. Shifts are positive to the left.
Requantization make_tfl2(std::span<const int32_t> bias, std::span<const QuantizedMultiplier> multipliers,
                         int32_t zero_point, int32_t clamp_min, int32_t clamp_max);

// Nothing but the bias: int32 leaves the device.
Requantization make_acc32(std::span<const int32_t> bias);

// Steps whose constants are the same for all channels.
class StepList {
 public:
  // Continues with the constants of other lists.
  explicit StepList(std::vector<int32_t> constants = {}) : constants_(std::move(constants)) {}

  void immediate(AluOp op, AccBlock dst, int32_t value);  // of 16 bits
  void constant(AluOp op, AccBlock dst, int32_t value);
  void immediate_or_constant(AluOp op, AccBlock dst, int32_t value);
  void block(AluOp op, AccBlock dst, AccBlock src);
  void copy(AccBlock dst, AccBlock src);
  // Clamps the accumulator; instructions that change no int8 are left out.
  void clamp(int32_t min, int32_t max);
  // Offset, shift and clamp of the sum in the accumulator.
  void finish_affine(const AffineForm& form, int32_t min, int32_t max);
  // The same multiplier for all channels.
  void requantize_tfl2(int32_t bias, const QuantizedMultiplier& multiplier, int32_t zero_point, int32_t min,
                       int32_t max);

  const std::vector<AluStep>& steps() const { return steps_; }
  const std::vector<int32_t>& constants() const { return constants_; }

 private:
  int64_t constant_index(int32_t value);

  std::vector<AluStep> steps_;
  std::vector<int32_t> constants_;
};

}  // namespace qplan::vta::compiler

#endif  // QPLAN_SRC_VTA_COMPILER_STREAMS_ALU_STEPS_H_
