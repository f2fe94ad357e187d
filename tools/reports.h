// What `qplan inspect` and `qplan pack` print about a plan.
#ifndef QPLAN_TOOLS_REPORTS_H_
#define QPLAN_TOOLS_REPORTS_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "qplan/qplan.h"
#include "tools/files.h"
#include "tools/model_options.h"
#include "tools/session.h"

namespace qplan::tools {

// The text of qplan_inspect_json. Failure, with label, when the plan is not valid.
std::string inspect_text(const void* plan, size_t size, const std::string& label);

// "65.4 kB" beside exact figures, decimal units.
std::string size_text(uint64_t bytes);

// The page that `qplan inspect` prints.
std::string inspect_page(const nlohmann::ordered_json& plan);

// A line for all and one for each entry of memory.copies of `inspect --json`: how many bytes are copied from
// where to where, and what that saves by estimate.
std::string copies_text(const nlohmann::ordered_json& copies);

// The lines that `qplan pack` prints below its first one: steps, MACs, bytes; indented.
std::string pack_summary(const nlohmann::ordered_json& plan);

// Whether a target of the plan is no CPU.
bool has_devices(const nlohmann::ordered_json& plan);

// What `qplan import` prints about a model without --print.

// relay: the text of qplan_import_text. Lines for inputs, outputs and the operators by kind, most frequent
// first; each indented and ended by a line feed.
std::string ir_summary(const std::string& relay);

// The output of `qplan explain` when the CPU runs everything: which kernel computes which operator, and why
// one is slower than it could be.

// The kernels are those that this machine would choose: the plan does not decide about them. Failure where no
// session can be made of the plan.
// {"isa": "avx2", "macs": 301000000, "steps": [{"step", "op", "kernel", "name", "macs", "bytes", "schedule",
// "notes": [...]},
// ...]}
nlohmann::ordered_json cpu_explain_json(const PlanFile& plan, const std::string& custom_operators);

// The same as a table, with a line below a step for each note.
std::string cpu_explain_text(const nlohmann::ordered_json& report);

// The output of `qplan explain MODEL --memory`: the plan of each --fuse, with the memory of a session of one
// thread, and what it computes.
// {"target_pointer_bits": 32, "choices": [{"fuse": "off", "session_bytes", "cascades", "macs", "work",
// "repeated_work", "copies"}, ...]}; copies as in `inspect --json`
nlohmann::ordered_json memory_explain_json(const ModelOptions& model, const PlacementOptions& placement);
std::string memory_explain_text(const nlohmann::ordered_json& report);

// The part of `qplan bench --per-step`: how long each step takes, and how far that is from what the machine
// can do.
struct TimeSummary {
  uint64_t median_ns = 0;
  uint64_t p90_ns = 0;
  uint64_t min_ns = 0;
  uint64_t p99_ns = 0;
};
// median: the mean of the middle two of an even count; p90: the smallest value that 90 % do not exceed; p99
// alike.
TimeSummary summarise(std::vector<uint64_t> times);

// macs / ns = GMAC/s.
inline double gmacs(uint64_t macs, uint64_t ns) {
  return ns == 0 ? 0 : static_cast<double>(macs) / static_cast<double>(ns);
}

// Random bytes for integers, [-1, 1) for floats: the bytes of each input, the same in every call with a seed.
std::vector<std::vector<uint8_t>> random_inputs(const PlanFile& plan, uint32_t seed);
// Those of seed 1: kernels whose time depends on values meet ordinary ones.
void write_random_inputs(const PlanFile& plan, Session& session);

// Time of each step in each run, through the platform's hooks.
class StepTimes {
 public:
  // Must outlive the sessions that use the platform.
  void attach(qplan_platform& platform);
  void clear() { times_.clear(); }
  // step: its position in the plan.
  [[nodiscard]] TimeSummary summary(uint32_t step) const;

 private:
  uint64_t begin_ns_ = 0;
  std::vector<std::vector<uint64_t>> times_;
};

// The steps as `inspect --json` prints them.
nlohmann::ordered_json plan_steps(const PlanFile& plan);
// Per step of the plan an object of what its schedule sets, by name; empty for the default.
nlohmann::ordered_json plan_schedules(const PlanFile& plan);
// "block_pixels=24, isa=avx2"
std::string schedule_text(const nlohmann::ordered_json& schedule);

struct StepReport {
  const Session& session;
  const StepTimes& times;
  double peak_gmacs;  // of all threads together; 0: unknown
  nlohmann::ordered_json schedules;
};
std::string steps_text(const StepReport& report);
nlohmann::ordered_json steps_json(const StepReport& report);
std::string steps_csv(const StepReport& report);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_REPORTS_H_
