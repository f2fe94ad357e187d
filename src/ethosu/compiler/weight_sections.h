// Parts of a weight stream with a palette of their own, and with runs of zeros or without.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_SECTIONS_H_
#define QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_SECTIONS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "src/ethosu/compiler/weight_slices.h"

namespace qplan::ethosu::compiler {

// What a section codes: values, and where it has runs the zeros before the first value and after each.
struct Section {
  std::vector<uint32_t> values, runs;
  Palette palette;
  SlicePlan slices;

  bool has_runs() const { return !runs.empty(); }
  uint64_t bits() const { return palette.bits() + slices.bits; }
  std::vector<uint32_t> symbols() const;
};

// The sections with which the values take few bits: one, or where that is shorter several, of which every
// second has runs of zeros.
std::vector<Section> plan_sections(std::span<const uint32_t> values);

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_SECTIONS_H_
