// What two steps have in common that take the same time with the same schedule: the key of measurements.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_TUNING_LOG_H_
#define QPLAN_SRC_PACKER_SCHEDULE_TUNING_LOG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/json.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"
#include "src/runtime/bind/family.h"

namespace qplan::schedule {

// "conv2d {contract=TFL2, kernel_h=3, ...} uint8[1x56x56x24], ... -> uint8[1x56x56x144] on
// cpu,arch=x86_64,...": family, parameters but for those that are only numbers to compute with, dtypes and
// shapes, and the CPU target. Names and contents of constants are no part of it, so that one
// measurement serves all like steps.
// target: target_text.
std::string step_key(const StepView& step, const std::string& target);

// The CPU target of a program's profile or of a plan, as keys have it: "cpu,arch=x86_64,...".
std::string target_text(const target::TargetProfile& profile);
std::string target_text(const format::Plan& plan);

// Logs of measurements (`qplan tune`), and what follows from them for a program. docs/schedules.md has the
// format.

class TuningLog {
 public:
  // text: one measurement a line, as JSON; those of other numbers of threads are not kept. name: the file's,
  // for messages. PackError (QPLAN_INVALID_ARGUMENT) with the number of a line that is malformed.
  TuningLog(std::string name, std::string_view text, uint32_t num_threads);

  // The schedule with the shortest time among the lines with the key, the first of equal ones; lines of heats
  // count only if the key has no other lines. The default schedule if the key has no line. A line that sets a
  // knob or value this build does not have is skipped, with a warning.
  target::StepSchedule fastest(const std::string& key, uint16_t kernel, const LogFunction& log);
  // The shortest time among the lines with the key, in ns; nullopt if no line has it.
  std::optional<uint64_t> shortest_ns(const std::string& key) const;
  // Whether there are lines with keys that begin so.
  bool has_keys_of(std::string_view prefix) const;
  // PackError (QPLAN_INVALID_ARGUMENT) where no line was of use: fastest() found none for any key it was
  // asked for. Where the log has choices, a key of a family without knobs (a copy: every model has one) is
  // of no use unless it has some.
  void check_used() const;

 private:
  struct Line {
    size_t number;
    ir::Json schedule;
    uint64_t ns;
    bool is_heat;  // measured once, to choose what is measured well
  };
  void add(std::string_view text, size_t number, uint32_t num_threads);
  [[noreturn]] void fail(size_t number, const std::string& text) const;

  std::string name_;
  std::map<std::string, std::vector<Line>, std::less<>> lines_;  // by key, the fastest first
  std::set<size_t> warned_;
  uint32_t num_threads_;
  size_t num_lines_ = 0, num_of_other_threads_ = 0;
  std::set<std::string, std::less<>> keys_with_choice_;  // of lines that set something
  bool used_ = false;
  bool fits_without_choice_ = false;
};

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_TUNING_LOG_H_
