#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/command.h"
#include "tools/reports.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGmacs = 66, kBytesPerNs = 24.5, kNsPerCycle = 10;

uint64_t bytes_of(const Json& plan, const Json& tensors) {
  uint64_t bytes = 0;
  for (const Json& tensor : tensors)
    bytes += plan.at("tensors").at(tensor.get<size_t>()).at("bytes").get<uint64_t>();
  return bytes;
}

// Bytes that the ranges [begin, end) cover.
uint64_t covered(std::vector<std::pair<uint64_t, uint64_t>> ranges) {
  std::ranges::sort(ranges);
  uint64_t bytes = 0, end = 0;
  for (const auto& [first, last] : ranges) {
    if (last > end) bytes += last - std::max(first, end);
    end = std::max(end, last);
  }
  return bytes;
}

}  // namespace

Json inspect_plan(const PlanFile& plan) {
  return Json::parse(inspect_text(plan.bytes(), plan.size(), plan.path()));
}

uint64_t step_bytes(const Json& plan, const Json& step) {
  return bytes_of(plan, step.at("inputs")) + bytes_of(plan, step.at("outputs"));
}

std::string step_target(const Json& step) {
  if (step.at("op") == "npu") return step.at("params").at("target").get<std::string>();
  return step.contains("alternative") ? "" : "cpu";
}

double estimated_ns(const Json& plan, const Json& step) {
  if (step.at("op") == "npu") {
    for (const Json& region : plan.at("regions")) {
      if (region.at("step") == step.at("index"))
        return region.at("estimated_cycles").get<double>() * kNsPerCycle;
    }
  }
  if (step.contains("alternative")) return 0;
  return std::max(step.at("macs").get<double>() / kGmacs,
                  static_cast<double>(step_bytes(plan, step)) / kBytesPerNs);
}

double estimated_ns(const Json& plan) {
  double ns = 0;
  for (const Json& step : plan.at("steps")) ns += estimated_ns(plan, step);
  return ns;
}

MemoryOverTime memory_over_time(const Json& plan) {
  const size_t num_steps = plan.at("steps").size();
  MemoryOverTime result;
  result.bytes.assign(num_steps, 0);
  result.alive.resize(num_steps);
  const Json& tensors = plan.at("tensors");
  for (uint32_t t = 0; t < tensors.size(); ++t) {
    if (plan.at("banks").at(tensors[t].at("bank").get<size_t>()).at("kind") != "arena") continue;
    const auto last = std::min<size_t>(tensors[t].at("last_use").get<size_t>() + 1, num_steps);
    for (size_t s = tensors[t].at("first_use").get<size_t>(); s < last; ++s) result.alive[s].push_back(t);
  }
  for (size_t s = 0; s < num_steps; ++s) {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const uint32_t t : result.alive[s]) {
      // Memory areas have addresses of their own.
      const uint64_t begin =
          tensors[t].at("offset").get<uint64_t>() + (tensors[t].at("bank").get<uint64_t>() << 48);
      ranges.emplace_back(begin, begin + tensors[t].at("bytes").get<uint64_t>());
    }
    result.bytes[s] = covered(std::move(ranges));
    if (result.bytes[s] > result.bytes[result.peak_step]) result.peak_step = static_cast<uint32_t>(s);
  }
  return result;
}

// ---- metadata

namespace {

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
