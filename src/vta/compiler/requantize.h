// The TFL2 requantisation as instructions of the ALU, which has no wide product, no move and no subtraction.
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
#ifndef QPLAN_SRC_VTA_COMPILER_REQUANTIZE_H_
#define QPLAN_SRC_VTA_COMPILER_REQUANTIZE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/numeric/quantize_multiplier.h"
#include "src/vta/compiler/config.h"

namespace qplan::target::vta {

// Blocks of ACC of a tile's size: the accumulators, which become the outputs, and temporaries.
enum class AccBlock : uint8_t { kAccumulator, kLow, kCross, kOther };
inline constexpr int64_t kNumTemporaries = 3;

// One instruction over all elements of a tile.
struct AluStep {
  enum class Source : uint8_t { kImmediate, kAccBlock, kConstant, kReset };
  ::qplan::vta::AluOp op = ::qplan::vta::AluOp::kAdd;
  AccBlock dst = AccBlock::kAccumulator;
  Source source = Source::kImmediate;  // kReset: the block becomes zero
  AccBlock block = AccBlock::kAccumulator;
  int64_t constant = 0;  // kConstant: index into Requantization::constants
  int16_t immediate = 0;
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
  int64_t cycles_per_element() const;    // by src/vta/isa/vta_cost.h, resets included
};

// bias: with the input's zero point folded in. Shifts are positive to the left.
Requantization make_tfl2(std::span<const int32_t> bias, std::span<const QuantizedMultiplier> multipliers,
                         int32_t zero_point, int32_t clamp_min, int32_t clamp_max);

// Nothing but the bias: int32 leaves the device.
Requantization make_acc32(std::span<const int32_t> bias);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_REQUANTIZE_H_
