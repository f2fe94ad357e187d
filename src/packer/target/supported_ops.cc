#include "src/packer/target/supported_ops.h"

#include <string_view>

#include "src/packer/ir/cat.h"
#include "src/packer/target/cpu/table.h"
#include "src/packer/target/target.h"
#include "src/vta/compiler/vta.h"

namespace qplan::target {
namespace {

constexpr std::string_view kHead =
    R"(# What runs where

Written from the targets' tables by `supported_ops_page()` and compared with them by a test
(`QPLAN_UPDATE_DOCS=1 ctest -R SupportedOps` writes it again). `qplan explain MODEL --target …` says for each operator of a model which of these
conditions it meets, with the numbers.

A target is tried by priority (NPUs 500, the CPU 50, `priority=` overrides), its patterns in the order below; the first one whose
conditions all hold takes the operators. An id in brackets names a condition in every message and report, and does not change.

)";

std::string row_text(const PatternRow& row, const PatternRow& quarter) {
  std::string text = cat("### ", row.name, "\n", row.summary, "\n\n");
  text += "| condition | what holds | otherwise |\n|---|---|---|\n";
  for (size_t i = 0; i < row.constraints.size(); ++i) {
    const Constraint& constraint = row.constraints[i];
    text += cat("| `", constraint.id, "` | ", constraint.requirement);
    if (quarter.constraints[i].requirement != constraint.requirement) {
      text += cat("; with `sram=quarter`: ", quarter.constraints[i].requirement);
    }
    text += cat(" | ", constraint.hint, " |\n");
  }
  return text + "\n";
}

}  // namespace

std::string supported_ops_page() {
  std::string text(kHead);
  text +=
      "## vta\n"
      "VTA, the Versatile Tensor Accelerator. Options: `sram=default|quarter` (sizes of the memories), "
      "`mul=on|off` (whether the design has the "
      "ALU's MUL), `priority=`, `clock=`. Operators that no pattern mentions are refused as "
      "`vta.op.<operator>`, "
      "patterns that do not match as "
      "`vta.pattern` with the place where they failed, regions that cost more than they save as "
      "`vta.cost`.\n\n";
  const std::vector<PatternRow> rows = vta::pattern_table(vta::kDefaultConfig);
  const std::vector<PatternRow> quarter = vta::pattern_table(vta::kQuarterConfig);
  for (size_t i = 0; i < rows.size(); ++i) text += row_text(rows[i], quarter[i]);
  text +=
      "## cpu\n"
      "Takes what is left. Options: `arch=x86_64|cortex-m|aarch64|riscv64`, `isa=`, `priority=`, `clock=`, "
      "`macs_per_us=`, `bytes_per_us=` (what the estimates reckon with). Its lowerings are tried in this "
      "order; an operator that none of them matches is refused as `cpu.op.<operator>`, a tensor that no plan "
      "can hold as `cpu.plan`.\n\n";
  for (const cpu::TableRow& row : cpu::lowering_table()) {
    text += cat("### cpu: ", row.name, "\n");
    if (row.constraints.empty()) text += "No condition.\n\n";
    if (row.constraints.empty()) continue;
    text += "| condition | what holds | otherwise |\n|---|---|---|\n";
    for (const cpu::Constraint& constraint : row.constraints) {
      text += cat("| `", constraint.id, "` | ", constraint.requirement, " | ", constraint.hint, " |\n");
    }
    text += "\n";
  }
  text.pop_back();
  return text;
}

}  // namespace qplan::target
