// What the model's file said of inputs and outputs, as the plan keeps it (format/README.md, "Metadata"):
// commands use it where their options say nothing.
#ifndef QPLAN_TOOLS_PLAN_METADATA_H_
#define QPLAN_TOOLS_PLAN_METADATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/files.h"
#include "tools/input.h"

namespace qplan::tools {

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

#endif  // QPLAN_TOOLS_PLAN_METADATA_H_
