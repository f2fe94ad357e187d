#include "tools/plan_facts.h"

#include <algorithm>
#include <utility>

#include "tools/reports.h"

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

}  // namespace qplan::tools
