// Shared by the two ways of naming targets, as a text and as a file.
#ifndef QPLAN_SRC_PACKER_TARGET_TARGET_LIST_H_
#define QPLAN_SRC_PACKER_TARGET_TARGET_LIST_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/target/target.h"

namespace qplan::target {

// "npu,sram=quarter,priority=300"
struct TargetText {
  std::string name;
  TargetOptions options;
};
std::vector<TargetText> split_targets(std::string_view text);

// Null where no kind has the name.
const TargetKind* find_kind(std::span<const TargetKind> kinds, std::string_view name);
Target make_named_target(const TargetText& text, const std::optional<MemorySizes>& memories,
                         const KnownTargets& known);
// Adds the CPU where there is none; refuses names that are there twice.
std::vector<Target> complete_list(std::vector<Target> targets, const KnownTargets& known);

// The CPU: the one kind that this room brings itself.
TargetKind cpu_kind();

[[noreturn]] void fail_target(const std::string& text);
int32_t checked_priority(std::string_view text);
// "250MHz", "1.2GHz": in kHz. name: the target's.
uint64_t checked_clock_khz(std::string_view name, std::string_view text);

// docs/supported_ops.md, written from the tables of the targets.

// The CPU, which takes what is left, comes last.
std::string supported_ops_page(std::span<const TargetKind> kinds);

// ---- sections: TargetKind::page
// The conditions of a table. What the options `variant` require instead is added where it differs.
std::string rows_text(std::span<const PatternRow> rows, std::string_view variant,
                      std::span<const PatternRow> variant_rows);
std::string cpu_page();

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_TARGET_LIST_H_
