// What several commands take from the JSON of a plan (`inspect --json`): figures, and the metadata that they
// use where their options say nothing.
#ifndef QPLAN_TOOLS_PLAN_FACTS_H_
#define QPLAN_TOOLS_PLAN_FACTS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/files.h"
#include "tools/input.h"

namespace qplan::tools {

nlohmann::ordered_json inspect_plan(const PlanFile& plan);

// Bytes of inputs, constants and outputs of a step.
uint64_t step_bytes(const nlohmann::ordered_json& plan, const nlohmann::ordered_json& step);

// Where a step runs: "cpu", or the target of its region; "" for fallback steps of a region.
std::string step_target(const nlohmann::ordered_json& step);

// Nanoseconds, from the plan alone. A step of the CPU takes its MACs at 66 GMAC/s or its bytes at 24.5 GB/s,
// whichever takes longer: the figures of docs/placement.md for an x86-64 processor with AVX-512 VNNI. A
// region takes its estimated cycles at 100 MHz. Fallback steps take none.
double estimated_ns(const nlohmann::ordered_json& plan, const nlohmann::ordered_json& step);
double estimated_ns(const nlohmann::ordered_json& plan);

// The main arena over the steps of main: which tensors hold bytes at each step.
struct MemoryOverTime {
  std::vector<uint64_t> bytes;               // per step, of the tensors alive at it, each byte once
  std::vector<std::vector<uint32_t>> alive;  // per step
  uint32_t peak_step = 0;                    // the first that has the most
};
MemoryOverTime memory_over_time(const nlohmann::ordered_json& plan);

// What the model's file said of inputs and outputs, as the plan keeps it (format/README.md, "Metadata").
class PlanMetadata {
 public:
  // Failure where the plan's metadata is no metadata: a plan is untrusted.
  explicit PlanMetadata(const PlanFile& plan);

  // From --mean and --std; if neither is given, the input's own, which inputs of 8 bits do without.
  // UsageError, or Failure if the plan's own is wrong.
  [[nodiscard]] Normalisation normalisation(uint32_t input, const std::string& mean,
                                            const std::string& std) const;
  // The names of an output's classes; none where the model had none.
  [[nodiscard]] const std::vector<std::string>& labels(uint32_t output) const;

 private:
  std::vector<Normalisation> inputs_;
  std::vector<std::vector<std::string>> outputs_;
};

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_PLAN_FACTS_H_
