// Ethos-U55 and U65 as targets: which composites and operators they take, under which conditions, and the
// program of a region.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_TARGET_H_
#define QPLAN_SRC_ETHOSU_COMPILER_TARGET_H_

#include <span>
#include <vector>

#include "src/ethosu/compiler/unit.h"
#include "src/ethosu/isa/config.h"
#include "src/packer/target/region.h"
#include "src/packer/target/target.h"

namespace qplan::ethosu::compiler {

struct Row {
  std::string_view name;  // of target::composites(), or of an operator
  std::string_view note;  // for docs; may be ""
  Rows (*constraints)();
  UnitReader read;
};
std::span<const Row> rows();
std::vector<target::PatternRow> pattern_table(const Config& config);

// One for each configuration: "ethos-u55-128" and its like; option sram=.
std::span<const target::TargetKind> target_kinds();

// region: a function of the module whose nodes are operators or calls of composites of the target's table.
// RegionRefused names a node that the device cannot take.
target::CompiledRegion compile_region(const Config& config, uint64_t sram_bytes, const ir::Module& module,
                                      const ir::Function& region);

// ---- programs that Arm's compiler made (operator npu.program) as regions: nothing is compiled, everything
// is checked.

target::PatternRow program_row(const Config& config);

// region: one node, the program. PackError (QPLAN_MODEL_INVALID) with the word of the command stream that is
// wrong.
target::CompiledRegion compile_program(const Config& config, const ir::Function& region);

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_TARGET_H_
