// Lists of targets as texts: "vta,sram=quarter,priority=300, cpu".
#ifndef QPLAN_SRC_PACKER_TARGET_TARGET_TEXT_H_
#define QPLAN_SRC_PACKER_TARGET_TARGET_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qplan::target {

// Options as they are written, in the order of the text; in a Target without those that all targets have.
using TargetOptions = std::vector<std::pair<std::string, std::string>>;

// "npu,sram=quarter,priority=300"
struct TargetText {
  std::string name;
  TargetOptions options;
};
std::vector<TargetText> split_targets(std::string_view text);

[[noreturn]] void fail_target(const std::string& text);
int32_t checked_priority(std::string_view text);
// "250MHz", "1.2GHz": in kHz. name: the target's.
uint64_t checked_clock_khz(std::string_view name, std::string_view text);

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_TARGET_TEXT_H_
