#include "tools/plan_metadata.h"

#include <algorithm>
#include <cmath>

#include "tools/error.h"
#include "tools/plan_facts.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

std::vector<double> numbers_of(const Json& tensor, const char* name) {
  std::vector<double> numbers;
  if (!tensor.contains(name)) return numbers;
  for (const Json& number : tensor.at(name)) numbers.push_back(number.get<double>());
  return numbers;
}

void check_std(const std::vector<double>& std, const std::string& what) {
  if (std::ranges::find(std, 0.0) != std.end()) throw UsageError(what + ": must not be 0");
}

}  // namespace

PlanMetadata::PlanMetadata(const PlanFile& plan) {
  const Json metadata = inspect_plan(plan).at("metadata");
  if (metadata.is_null()) return;
  try {
    const std::vector<qplan_tensor_info> infos = tensor_infos(plan.plan(), QPLAN_INPUT);
    for (const Json& input : metadata.at("inputs")) {
      inputs_.push_back({numbers_of(input, "mean"), numbers_of(input, "std")});
      check_std(inputs_.back().std, "std");
      // The published schema: quantised again, the bytes of a picture are those of an 8-bit input.
      const size_t i = inputs_.size() - 1;
      if (i < infos.size() && infos[i].dtype.bits == 8) inputs_.back() = {};
    }
    for (const Json& output : metadata.at("outputs")) {
      outputs_.emplace_back();
      if (!output.contains("labels")) continue;
      // The names are the model's: what controls a terminal becomes '?'.
      for (const Json& label : output.at("labels"))
        outputs_.back().push_back(one_line(label.get<std::string>()));
    }
  } catch (const std::exception& error) {
    throw Failure("plan '" + plan.path() + "': its metadata is damaged: " + one_line(error.what()) +
                  "; pack the model again");
  }
}

Normalisation PlanMetadata::normalisation(uint32_t input, const std::string& mean,
                                          const std::string& std) const {
  if (mean.empty() && std.empty()) return input < inputs_.size() ? inputs_[input] : Normalisation{};
  Normalisation given;
  if (!mean.empty()) given.mean = parse_channel_values(mean, "--mean");
  if (!std.empty()) given.std = parse_channel_values(std, "--std");
  check_std(given.std, "--std");
  return given;
}

const std::vector<std::string>& PlanMetadata::labels(uint32_t output) const {
  static const std::vector<std::string> kNoLabels;
  return output < outputs_.size() ? outputs_[output] : kNoLabels;
}

}  // namespace qplan::tools
