// A region read for its compiler: its units, and one layout for each value between them.
#ifndef QPLAN_SRC_VTA_COMPILER_REGION_PLAN_H_
#define QPLAN_SRC_VTA_COMPILER_REGION_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/vta/compiler/unit.h"

namespace qplan::target::vta {

// A parameter of the region's function or a result of one of its nodes.
struct RegionValue {
  ir::ValueId id;  // of the region's function
  std::string name;
  // The border is the widest of its readers'.
  ActivationLayout layout;
  // What the border holds; nullopt: it matters to nobody.
  std::optional<int8_t> border_value;
  bool is_unsigned = false, is_int32 = false;
  std::optional<uint32_t> param, output;  // of the region's function
  // The value in whose bytes it lies: itself, or of what renames join the one that crosses the region's
  // border, else the first. first and last of one in scratch are those of all that lie there.
  size_t storage = 0;
  uint32_t first = 0, last = 0;  // units that write it and read it; without reader: the writer

  bool has_border() const {
    return layout.top != 0 || layout.left != 0 || layout.bottom != 0 || layout.right != 0;
  }
  int64_t bytes() const { return layout.bytes() * (is_int32 ? 4 : 1); }
};

struct RegionUnit {
  uint32_t node = 0;  // of the region's function
  UnitPlan plan;
  std::vector<size_t> inputs;  // values, one for each of plan.inputs
  size_t output = 0;
};

struct RegionPlan {
  std::vector<RegionUnit> units;
  std::vector<RegionValue> values;
};

// RegionRefused for a node that has no unit, or whose demands on a value cannot be met together with others'.
RegionPlan plan_region(const Config& config, const ir::Module& module, const ir::Function& region);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_REGION_PLAN_H_
