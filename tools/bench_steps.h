// The part of `qplan bench --per-step`: how long each step takes, and how far that is from what the machine
// can do.
#ifndef TOOLS_BENCH_STEPS_H_
#define TOOLS_BENCH_STEPS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "qplan/qplan.h"
#include "tools/session.h"

namespace qplan::tools {

struct TimeSummary {
  uint64_t median_ns = 0;
  uint64_t p90_ns = 0;
  uint64_t min_ns = 0;
};
// median: the mean of the middle two of an even count; p90: the smallest value that 90 % do not exceed.
TimeSummary summarise(std::vector<uint64_t> times);

// macs / ns = GMAC/s.
inline double gmacs(uint64_t macs, uint64_t ns) {
  return ns == 0 ? 0 : static_cast<double>(macs) / static_cast<double>(ns);
}

// Random bytes for integers, [-1, 1) for floats, the same in every call: kernels whose time depends on values
// meet ordinary ones.
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

}  // namespace qplan::tools

#endif  // TOOLS_BENCH_STEPS_H_
