// Consecutive units computed a few rows at a time, so that what is between them needs a few rows of memory.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_CASCADE_H_
#define QPLAN_SRC_ETHOSU_COMPILER_CASCADE_H_

#include <cstdint>
#include <vector>

#include "src/ethosu/compiler/region.h"

namespace qplan::ethosu::compiler {

// Rows of a unit's output, and those of its input that they need.
struct RowRange {
  uint32_t begin = 0, end = 0;
};
RowRange input_rows(const Kernel& kernel, RowRange output);
// The kernel for some rows of its output. ifm_rows, ifm2_rows, ofm_rows: rows that the memory of the map has,
// row y at y modulo that number; 0: all of them. Rows of the output do not go round the end of its
// memory.
Kernel kernel_of_rows(const Kernel& kernel, RowRange output, uint32_t ifm_rows, uint32_t ifm2_rows,
                      uint32_t ofm_rows);

// Units [first, last] of the region. Each but the last has one reader, the next unit, which reads rows of
// `buffer_rows` of the value between them.
struct Cascade {
  size_t first = 0, last = 0;
  uint32_t rows = 1;  // of the last unit's output at a time
  std::vector<uint32_t> buffer_rows;
};

// The order in which a cascade's kernels run: rows of unit first + index.
struct CascadeStep {
  size_t index = 0;
  RowRange output;
};
// kernels: the units', as a whole.
std::vector<CascadeStep> cascade_steps(const Cascade& cascade, const std::vector<Kernel>& kernels);

// Cascades that bring the memory of the region's values to at most `bytes` at a time, or as near as they can;
// plan.values get their buffer_rows and lifetimes.
std::vector<Cascade> choose_cascades(const Config& config, uint64_t bytes, RegionPlan* plan);

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_CASCADE_H_
