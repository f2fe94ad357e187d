#include "src/packer/target/supported_ops.h"

#include <string_view>

#include "src/packer/ir/cat.h"
#include "src/packer/target/cpu/table.h"
#include "src/packer/target/target.h"

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

std::string row_text(const PatternRow& row, std::string_view variant, const PatternRow& of_variant) {
  std::string text = cat("### ", row.name, "\n", row.summary, "\n\n");
  text += "| condition | what holds | otherwise |\n|---|---|---|\n";
  for (size_t i = 0; i < row.constraints.size(); ++i) {
    const Constraint& constraint = row.constraints[i];
    text += cat("| `", constraint.id, "` | ", constraint.requirement);
    if (of_variant.constraints[i].requirement != constraint.requirement) {
      text += cat("; with `", variant, "`: ", of_variant.constraints[i].requirement);
    }
    text += cat(" | ", constraint.hint, " |\n");
  }
  return text + "\n";
}

}  // namespace

std::string rows_text(std::span<const PatternRow> rows, std::string_view variant,
                      std::span<const PatternRow> variant_rows) {
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) text += row_text(rows[i], variant, variant_rows[i]);
  return text;
}

std::string cpu_page() {
  std::string text =
      "## cpu\n"
      "Takes what is left. Options: `arch=x86_64|cortex-m|cortex-m4|cortex-m7|cortex-m33|aarch64|riscv64`, "
      "`isa=`, `priority=`, `clock=`, "
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

std::string supported_ops_page(std::span<const TargetKind> kinds) {
  std::string text(kHead);
  for (const bool is_cpu : {false, true}) {
    for (const TargetKind& kind : kinds) {
      if ((kind.name == "cpu") == is_cpu) text += kind.page();
    }
  }
  return text;
}

}  // namespace qplan::target
