// Extents of tiles along one axis.
#ifndef QPLAN_SRC_VTA_COMPILER_EVEN_CUTS_H_
#define QPLAN_SRC_VTA_COMPILER_EVEN_CUTS_H_

#include <cstdint>
#include <vector>

namespace qplan::target::vta {

// Extents that cut an axis into equal parts but for the last: extent, extent / 2, extent / 3, ... rounded up,
// each once. There are at most 2 sqrt(extent).
inline std::vector<int64_t> even_cuts(int64_t extent) {
  std::vector<int64_t> cuts;
  for (int64_t parts = 1; parts <= extent;) {
    const int64_t cut = (extent + parts - 1) / parts;
    cuts.push_back(cut);
    if (cut == 1) break;
    parts = (extent + cut - 2) / (cut - 1);  // the least number of parts that makes them smaller
  }
  return cuts;
}

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_EVEN_CUTS_H_
