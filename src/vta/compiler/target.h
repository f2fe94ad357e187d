// VTA, the Versatile Tensor Accelerator, as a target: which composites it takes, under which conditions, and
// how each becomes a unit.
#ifndef QPLAN_SRC_VTA_COMPILER_TARGET_H_
#define QPLAN_SRC_VTA_COMPILER_TARGET_H_

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/packer/target/target.h"
#include "src/vta/compiler/layers/layers.h"
#include "src/vta/isa/vta.h"

namespace qplan::vta::compiler {

struct Row {
  std::string_view composite;  // of target::composites()
  std::string_view note;       // for docs: how the device does it; may be ""
  std::vector<Constraint> (*constraints)(const Config& config);
  UnitReader read;
};
std::span<const Row> rows();
std::vector<target::PatternRow> pattern_table(const Config& config);

// "vta": options sram= and mul=, memories uop, wgt, inp and acc. The costs are the configuration's, the
// priority is the default.
target::TargetKind target_kind();
target::Target make_target(const Config& config);
// What options and sizes of memories stand for. PackError (QPLAN_INVALID_ARGUMENT).
Config read_config(const target::TargetOptions& options, const std::optional<target::MemorySizes>& memories);

}  // namespace qplan::vta::compiler

#endif  // QPLAN_SRC_VTA_COMPILER_TARGET_H_
