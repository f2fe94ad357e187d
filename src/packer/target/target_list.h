// Shared by the two ways of naming targets, as a text and as a file.
#ifndef QPLAN_SRC_PACKER_TARGET_TARGET_LIST_H_
#define QPLAN_SRC_PACKER_TARGET_TARGET_LIST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/target/target.h"
#include "src/vta/compiler/config.h"

namespace qplan::target {

// "vta,sram=quarter,priority=300"
struct TargetText {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options;  // in the order of the text
};
std::vector<TargetText> split_targets(std::string_view text);

// memories: of vta, in place of those of sram=. libraries: other known targets; they come first.
Target make_named_target(const TargetText& text, const std::optional<vta::Config>& memories,
                         Libraries libraries);
// Adds the CPU where there is none; refuses names that are there twice.
std::vector<Target> complete_list(std::vector<Target> targets);

// Targets of the packer's own: "cpu", "vta".
bool is_built_in(std::string_view name);

[[noreturn]] void fail_target(const std::string& text);
int32_t checked_priority(std::string_view text);
// "250MHz", "1.2GHz": in kHz. name: the target's.
uint64_t checked_clock_khz(std::string_view name, std::string_view text);

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_TARGET_LIST_H_
