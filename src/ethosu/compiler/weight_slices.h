// Which codes the parts of a weight stream have.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_SLICES_H_
#define QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_SLICES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "src/ethosu/compiler/weight_palette.h"

namespace qplan::ethosu::compiler {

constexpr uint32_t kUncompressed = 7, kNoZeroRuns = 6;

// The codes of a slice. A symbol is a quotient in unary and a remainder of `divisor` bits, or all of it is
// the remainder (kUncompressed); a run of zeros is a quotient and a remainder of run_divisor bits.
struct SliceCodes {
  uint32_t divisor = kUncompressed;
  bool truncates = false;  // no quotient is above 2, so that 2 needs no end
  uint32_t run_divisor = kNoZeroRuns;
};

struct Slice {
  size_t length = 0;  // weights, without those of runs
  SliceCodes codes;
};

struct SlicePlan {
  std::vector<Slice> slices;
  uint64_t bits = 0;  // an estimate: codes are in chunks, and the last one of a slice is not full
};
// The slices with which the symbols take the fewest bits. runs: empty, or the zeros before the first symbol
// and after each symbol.
SlicePlan plan_slices(const Palette& palette, std::span<const uint32_t> symbols,
                      std::span<const uint32_t> runs);

// Bits in one slice: of values, of their symbols, of runs.
uint64_t one_slice_bits(const Palette& palette, const Histogram& values);
uint64_t one_slice_bits(const Palette& palette, std::span<const uint32_t> symbols);
uint64_t one_slice_run_bits(std::span<const uint32_t> runs);

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_SLICES_H_
