#include "src/packer/target/cost_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "qplan/qplan.h"
#include "src/packer/ir/cat.h"
#include "src/packer/target/profile.h"

namespace qplan::target {
namespace {

using ir::Json;

// In the order of CpuWork. They are part of the format of target files.
constexpr const char* kWorkNames[] = {"convolution", "depthwise",         "addition",   "table",
                                      "pool",        "softmax",           "conversion", "copy",
                                      "resize",      "narrow_convolution"};
static_assert(std::size(kWorkNames) == kNumCpuWorks);
constexpr const char* kWeights = "weights";
constexpr const char* kBoundaryCopy = "boundary_copy";

void read_rate(const Json& json, const char* name, uint64_t* macs, uint64_t* bytes) {
  if (!json.contains(name)) return;
  const std::string what = cat("'", name, "' of 'cycles_per_million'");
  if (macs != nullptr) {
    check_keys(json[name], what, {"macs", "bytes"});
    read_number(json[name], "macs", kMaxCost, macs);
  } else {
    check_keys(json[name], what, {"bytes"});
  }
  read_number(json[name], "bytes", kMaxCost, bytes);
}

// Zero is what a kind does not have.
Json rate_json(uint64_t macs, uint64_t bytes) {
  Json json = Json::object();
  if (macs != 0) json["macs"] = macs;
  if (bytes != 0) json["bytes"] = bytes;
  return json;
}

}  // namespace

void check_keys(const Json& json, const std::string& what, const std::vector<const char*>& known) {
  if (!json.is_object()) fail_target(cat(what, " is not an object"));
  for (const auto& [key, value] : json.items()) {
    std::string names;
    bool found = false;
    for (const char* name : known) {
      found = found || key == name;
      names += cat(names.empty() ? "" : ", ", name);
    }
    if (!found) fail_target(cat("key '", key, "' of ", what, " is not known; known: ", names));
  }
}

void read_number(const Json& json, const char* key, uint64_t max, uint64_t* number) {
  if (!json.contains(key)) return;
  const Json& value = json[key];
  if (!value.is_number_unsigned() || value.get<uint64_t>() < 1 || value.get<uint64_t>() > max) {
    fail_target(cat("'", key, "' is ", ir::json_text(value), ", expected a whole number from 1 to ", max));
  }
  *number = value.get<uint64_t>();
}

const char* work_name(CpuWork work) { return kWorkNames[static_cast<size_t>(work)]; }

std::optional<CpuWork> work_of_name(std::string_view name) {
  for (size_t i = 0; i < kNumCpuWorks; ++i) {
    if (name == kWorkNames[i]) return static_cast<CpuWork>(i);
  }
  return std::nullopt;
}

void read_cpu_costs(const Json& json, CpuCosts* costs) {
  check_keys(
      json, "'costs' of a CPU",
      {"macs_per_us", "bytes_per_us", "clock_mhz", "pj_per_cycle", "step_cycles", "cycles_per_million"});
  uint64_t clock_mhz = 0;
  read_number(json, "clock_mhz", kMaxCost, &clock_mhz);
  if (clock_mhz != 0) costs->clock_khz = clock_mhz * 1000;
  read_number(json, "pj_per_cycle", kMaxCost, &costs->pj_per_cycle);
  read_number(json, "step_cycles", kMaxCost, &costs->step_cycles);
  if (json.contains("cycles_per_million")) {
    const Json& table = json["cycles_per_million"];
    std::vector<const char*> known(std::begin(kWorkNames), std::end(kWorkNames));
    known.insert(known.end(), {kWeights, kBoundaryCopy});
    check_keys(table, "'cycles_per_million'", known);
    for (size_t i = 0; i < kNumCpuWorks; ++i)
      read_rate(table, kWorkNames[i], &costs->work[i].macs, &costs->work[i].bytes);
    read_rate(table, kWeights, nullptr, &costs->weights);
    read_rate(table, kBoundaryCopy, nullptr, &costs->copies);
  }
  uint64_t macs = 0, bytes = 0;
  read_number(json, "macs_per_us", kMaxCost, &macs);
  read_number(json, "bytes_per_us", kMaxCost, &bytes);
  if (macs != 0) costs->set_macs_per_us(macs);
  if (bytes != 0) costs->set_bytes_per_us(bytes);
}

Json cpu_costs_json(const CpuCosts& costs) {
  Json json;
  json["clock_mhz"] = std::max<uint64_t>(costs.clock_khz / 1000, 1);
  json["pj_per_cycle"] = costs.pj_per_cycle;
  json["step_cycles"] = costs.step_cycles;
  Json& table = json["cycles_per_million"] = Json::object();
  for (size_t i = 0; i < kNumCpuWorks; ++i)
    table[kWorkNames[i]] = rate_json(costs.work[i].macs, costs.work[i].bytes);
  if (costs.weights != 0) table[kWeights] = rate_json(0, costs.weights);
  if (costs.copies != 0) table[kBoundaryCopy] = rate_json(0, costs.copies);
  return json;
}

// Costs that are fitted to measurements.
namespace {

// The figures of CpuCosts as one list: macs and bytes of each kind of work, weights, a step's cycles (times a
// million, as the others are), copies.
constexpr size_t kWeightsAt = 2 * kNumCpuWorks, kStepAt = kWeightsAt + 1, kCopiesAt = kStepAt + 1,
                 kNumFigures = kCopiesAt + 1;
using FigureList = std::array<double, kNumFigures>;
constexpr double kMillionths = 1e6;

FigureList figures_of(const CpuCosts& costs) {
  FigureList list{};
  for (size_t i = 0; i < kNumCpuWorks; ++i) {
    list[2 * i] = static_cast<double>(costs.work[i].macs);
    list[2 * i + 1] = static_cast<double>(costs.work[i].bytes);
  }
  list[kWeightsAt] = static_cast<double>(costs.weights);
  list[kStepAt] = static_cast<double>(costs.step_cycles) * kMillionths;
  list[kCopiesAt] = static_cast<double>(costs.copies);
  return list;
}

uint64_t whole_figure(double figure) {
  if (figure <= 0) return 0;  // the kind has none
  return static_cast<uint64_t>(std::clamp(std::round(figure), 1.0, static_cast<double>(kMaxCost)));
}

CpuCosts costs_of(const FigureList& list, const CpuCosts& defaults) {
  CpuCosts costs = defaults;
  for (size_t i = 0; i < kNumCpuWorks; ++i)
    costs.work[i] = {whole_figure(list[2 * i]), whole_figure(list[2 * i + 1])};
  costs.weights = whole_figure(list[kWeightsAt]);
  costs.step_cycles = whole_figure(list[kStepAt] / kMillionths);
  costs.copies = whole_figure(list[kCopiesAt]);
  return costs;
}

// What a step has of a figure.
struct Term {
  size_t figure;
  double amount;
};
struct Equation {
  std::array<Term, 4> terms;
  double measured;  // millionths of a cycle

  double estimate(const FigureList& figures) const {
    double sum = 0;
    for (const Term& term : terms) sum += figures[term.figure] * term.amount;
    return sum;
  }
};

std::vector<Equation> equations_of(std::span<const MeasuredStep> steps, uint64_t clock_khz) {
  std::vector<Equation> equations;
  for (const MeasuredStep& step : steps) {
    const size_t kind = 2 * static_cast<size_t>(step.work);
    equations.push_back({{{{kind, static_cast<double>(step.macs)},
                           {kind + 1, static_cast<double>(step.bytes)},
                           {kWeightsAt, static_cast<double>(step.weight_bytes)},
                           {kStepAt, 1}}},
                         static_cast<double>(step.ns) * static_cast<double>(clock_khz)});
  }
  return equations;
}

// One step towards the least sum of squares, in the logarithms of the figures, which so stay positive. The
// derivative of a log(estimate) by a log(figure) is the figure's share of the estimate. Shares of one
// estimate sum to 1, so that the sums of shares bound the matrix of Gauss and Newton: no step goes too far.
// Each figure is also held, as if by kHold steps, where it began; that alone decides about figures that no
// step depends on. Returns the greatest change.
double improve(const std::vector<Equation>& equations, const FigureList& begin, FigureList* figures) {
  constexpr double kHold = 0.05;
  FigureList slope{}, shares{};
  for (const Equation& equation : equations) {
    const double estimate = equation.estimate(*figures);
    const double error = std::log(equation.measured / estimate);
    for (const Term& term : equation.terms) {
      const double share = (*figures)[term.figure] * term.amount / estimate;
      slope[term.figure] += share * error;
      shares[term.figure] += share;
    }
  }
  double greatest = 0;
  for (size_t f = 0; f < kNumFigures; ++f) {
    if ((*figures)[f] <= 0) continue;
    const double change = (slope[f] - kHold * std::log((*figures)[f] / begin[f])) / (shares[f] + kHold);
    (*figures)[f] *= std::exp(change);
    greatest = std::max(greatest, std::abs(change));
  }
  return greatest;
}

uint64_t estimated_ns(const CpuCosts& costs, const MeasuredStep& step) {
  return cpu_ns(costs, step.work, step.macs, step.bytes, step.weight_bytes);
}

}  // namespace

CpuCosts fit_cpu_costs(const CpuCosts& defaults, std::span<const MeasuredStep> steps) {
  if (steps.empty()) return defaults;
  CpuCosts least = defaults;
  least.step_cycles = std::max<uint64_t>(least.step_cycles, 1);
  FigureList figures = figures_of(least);
  const std::vector<Equation> equations = equations_of(steps, defaults.clock_khz);
  double sum = 0;
  for (const Equation& equation : equations) sum += std::log(equation.measured / equation.estimate(figures));
  const double ratio = std::exp(sum / static_cast<double>(equations.size()));
  for (double& figure : figures) figure *= ratio;
  const FigureList begin = figures;
  constexpr int kMaxSteps = 3000;
  constexpr double kEnough = 1e-6;
  for (int i = 0; i < kMaxSteps && improve(equations, begin, &figures) > kEnough;) ++i;
  return costs_of(figures, least);
}

namespace {

// The parts of a list of targets that say what the CPU is, and its clock.
struct CpuText {
  std::string options;  // "cpu,isa=avx2"
  uint64_t clock_khz = 0;
};

CpuText cpu_text(const TargetText& target) {
  CpuText result{"cpu"};
  for (const auto& [key, value] : target.options) {
    if (key == "clock") {
      // Target files have whole megahertz.
      result.clock_khz = std::max<uint64_t>((checked_clock_khz("cpu", value) + 500) / 1000, 1) * 1000;
    } else if (key == "arch" || key == "isa") {
      result.options += cat(",", key, "=", value);
    } else if (key != "priority" && key != "macs_per_us" && key != "bytes_per_us") {
      (void)parse_target(cat("cpu,", key, "=", value));  // fails
    }
  }
  return result;
}

std::string as_text(const TargetText& target, const std::vector<std::string_view>& without) {
  std::string text = target.name;
  for (const auto& [key, value] : target.options) {
    if (std::ranges::find(without, key) == without.end()) text += cat(",", key, "=", value);
  }
  return text;
}

uint64_t whole_number(const Json& json, const char* key) {
  if (!json.contains(key) || !json[key].is_number_unsigned())
    fail_target(cat("'", key, "' of a measured step is not a whole number"));
  return json[key].get<uint64_t>();
}

std::string member_text(const Json& json, const char* key) {
  if (!json.contains(key) || !json[key].is_string())
    fail_target(cat("'", key, "' of the measurements is not a text"));
  return json[key].get<std::string>();
}

std::vector<MeasuredStep> measured_steps(const Json& json) {
  if (!json.contains("steps") || !json["steps"].is_array() || json["steps"].empty())
    fail_target("the measurements have no list 'steps'");
  constexpr size_t kMaxSteps = 65'536;
  if (json["steps"].size() > kMaxSteps) {
    fail_target(cat("the measurements have ", json["steps"].size(), " steps, expected at most ", kMaxSteps));
  }
  std::vector<MeasuredStep> steps;
  for (const Json& entry : json["steps"]) {
    check_keys(entry, "a measured step", {"work", "macs", "bytes", "weight_bytes", "ns"});
    const std::string name = member_text(entry, "work");
    const std::optional<CpuWork> work = work_of_name(name);
    if (!work) fail_target(cat("'", name, "' of a measured step is no kind of work"));
    const MeasuredStep step{*work, whole_number(entry, "macs"), whole_number(entry, "bytes"),
                            whole_number(entry, "weight_bytes"), whole_number(entry, "ns")};
    if (step.ns == 0) fail_target("'ns' of a measured step is 0, expected at least 1");
    steps.push_back(step);
  }
  return steps;
}

uint32_t isa_of(const std::string& name) {
  uint32_t isa = QPLAN_ISA_AUTO;
  if (qplan_isa_from_name(name.c_str(), &isa) < 0 || isa == QPLAN_ISA_AUTO)
    fail_target(cat("isa '", name, "' of the measurements is not known"));
  return isa;
}

}  // namespace

std::string fit_costs_json(std::string_view measurements) {
  std::string reason;
  const Json json = ir::parse_json(measurements, &reason);
  if (json.is_discarded()) fail_target("the text of the measurements " + reason);
  check_keys(json, "the measurements", {"target", "isa", "steps"});
  const std::vector<MeasuredStep> steps = measured_steps(json);
  const uint32_t isa = isa_of(member_text(json, "isa"));
  Json result, file = Json::array();
  for (const TargetText& target : split_targets(member_text(json, "target"))) {
    Json& entry = file.emplace_back(Json::object());
    if (target.name != "cpu" || result.contains("steps")) {  // twice: the packer refuses it
      entry["target"] = as_text(target, {});
      continue;
    }
    const CpuText cpu = cpu_text(target);
    CpuCosts defaults = default_cpu_costs(parse_target(cpu.options).arch, isa);
    if (cpu.clock_khz != 0) defaults.clock_khz = cpu.clock_khz;
    const CpuCosts fitted = fit_cpu_costs(defaults, steps);
    entry["target"] = as_text(target, {"clock", "macs_per_us", "bytes_per_us"});
    entry["costs"] = cpu_costs_json(fitted);
    Json& estimates = result["steps"] = Json::array();
    for (const MeasuredStep& step : steps) {
      estimates.push_back(
          {{"default_ns", estimated_ns(defaults, step)}, {"estimated_ns", estimated_ns(fitted, step)}});
    }
  }
  if (!result.contains("steps")) fail_target("the list has no 'cpu', whose costs are measured");
  result["file"] = {{"targets", std::move(file)}};
  return ir::json_text(result) + "\n";
}

}  // namespace qplan::target
