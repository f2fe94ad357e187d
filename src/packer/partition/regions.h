// Which units of a graph go together into one region: connected units of one device, so that no way leads out
// of a region and back into it. Knows nothing of the IR.
#ifndef QPLAN_SRC_PACKER_PARTITION_REGIONS_H_
#define QPLAN_SRC_PACKER_PARTITION_REGIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/partition/annotate.h"
#include "src/packer/partition/cost_gate.h"

namespace qplan::partition {

inline constexpr int32_t kNoDevice = -1;
inline constexpr uint32_t kNoRegion = UINT32_MAX;

struct UnitGraph {
  // The units that each unit reads; all of them come before it.
  std::vector<std::vector<uint32_t>> reads;
  std::vector<int32_t> device;  // kNoDevice: belongs to no region
};

// The region of each unit, numbered by their first units; kNoRegion for units of no device. The graph whose
// nodes are the regions and the units outside of them has no circle, and no two neighbouring regions of a
// device can be merged without making one (as far as the search's budget, linear in the size of the graph,
// reaches).
std::vector<uint32_t> merge_regions(const UnitGraph& graph);

// Regions as functions of their own.
struct Outlined {
  ir::Module module;
  std::vector<uint32_t> order;             // islands in the order in which main calls them
  std::vector<std::string> function_name;  // by island; empty for those that are not alive
};

// The living islands become functions qplan_<target>_main_<n> with Compiler, Primitive and global_symbol;
// units of composites become functions with Composite and Primitive. Everything else stays in main.
Outlined outline(const ir::Function& main, const Annotation& annotation, const Islands& islands);

}  // namespace qplan::partition

#endif  // QPLAN_SRC_PACKER_PARTITION_REGIONS_H_
