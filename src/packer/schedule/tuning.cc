// Measured schedules: keys and logs of measurements, and which schedules are worth one.
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cpu.h"
#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/json.h"
#include "src/packer/schedule/schedule.h"

namespace qplan::schedule {
namespace {

// Parts of the names of parameters that say with which numbers, not how much is computed.
constexpr std::string_view kNumbers[] = {"zero_point", "multiplier", "shift",   "scale",
                                         "clamp",      "value",      "diff_min"};

bool is_number(std::string_view name) {
  return std::ranges::any_of(kNumbers, [&](std::string_view part) { return name.find(part) != name.npos; });
}

std::string tensor_text(const format::Tensor& tensor) {
  return inspect::dtype_text(tensor) + "[" + inspect::shape_text(tensor) + "]";
}

std::string tensor_text(const StepTensor& tensor) {
  std::string text = std::string(dtype_name(tensor.dtype)) + "[";
  for (uint32_t i = 0; i < tensor.rank; ++i) text += (i == 0 ? "" : "x") + std::to_string(tensor.extents[i]);
  return text + (tensor.rank == 0 ? "scalar]" : "]");
}

std::string params_text(const format::KernelStep& step);

// "stage0=conv2d {..}, tile0=int8[1x8x8x24], stage1=.."; which of its operands a layer has from the tile
// matters to its meaning alone.
std::string cascade_text(const format::CascadeParams& cascade) {
  std::string text;
  for (uint32_t i = 0; i < cascade.layers()->size(); ++i) {
    const format::KernelStep& layer = *cascade.layers()->Get(i);
    const std::string number = std::to_string(i);
    text += (i == 0 ? "stage" : ", stage") + number + "=" + inspect::kernel_name(layer.kernel()) + " {" +
            params_text(layer) + "}";
    if (i < cascade.tiles()->size()) text += ", tile" + number + "=" + tensor_text(*cascade.tiles()->Get(i));
  }
  return text;
}

std::string params_text(const format::KernelStep& step) {
  if (const auto* cascade = step.params_as_CascadeParams()) return cascade_text(*cascade);
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value) {
    text += (text.empty() ? "" : ", ") + name + "=" + value;
  };
  for (const auto& [name, value] : inspect::step_params(step)) {
    // Weights with a zero point take a sum over each window besides.
    if (name == "weights_zero_point") {
      add("has_weights_zero_point", value == "0" ? "false" : "true");
    } else if (!is_number(name)) {
      add(name, value);
    }
  }
  // A sum with a float epilogue is another computation than one without.
  const format::AddParams* sum = step.residual() != nullptr ? step.residual() : step.params_as_AddParams();
  if (sum != nullptr) add("has_float_epilogue", sum->float_scale1() > 0.0f ? "true" : "false");
  return text;
}

}  // namespace

std::string step_key(const StepView& step, const std::string& target) {
  std::string key = inspect::kernel_name(step.step->kernel()) + " {" + params_text(*step.step) + "}";
  for (uint32_t i = 0; i < step.num_inputs(); ++i) {
    const StepTensor input = step.input(i);
    key += (i == 0 ? " " : ", ") + tensor_text(input) + (input.is_constant ? " constant" : "");
  }
  for (uint32_t o = 0; o < step.num_outputs(); ++o) {
    key += (o == 0 ? " -> " : ", ") + tensor_text(step.output(o));
  }
  return target.empty() ? key : key + " on " + target;
}

std::string target_text(const target::TargetProfile& profile) { return profile.name + "," + profile.options; }

std::string target_text(const format::Plan& plan) {
  const auto* targets = plan.targets();
  if (format::count_of(targets) == 0 || targets->Get(0)->name() == nullptr) return "";
  const format::Target& cpu = *targets->Get(0);
  return cpu.name()->str() + (cpu.options() == nullptr ? "" : "," + cpu.options()->str());
}

using ir::Json;

TuningLog::TuningLog(std::string name, std::string_view text, uint32_t num_threads, const LogFunction& log)
    : name_(std::move(name)), num_threads_(num_threads) {
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) add(line, number, num_threads);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  if (num_lines_ == 0 && !torn_.empty()) fail(torn_.front().first, torn_.front().second);
  if (log) {
    for (const auto& [number, reason] : torn_) log(QPLAN_LOG_WARNING, passed_over(number, reason));
  }
  for (auto& [key, lines] : lines_) {
    // An interrupted `qplan tune` leaves heats alone.
    const auto is_heat = [](const Line& line) { return line.is_heat; };
    if (!std::ranges::all_of(lines, is_heat)) std::erase_if(lines, is_heat);
    std::ranges::stable_sort(lines, {}, &Line::ns);
  }
}

void TuningLog::add(std::string_view text, size_t number, uint32_t num_threads) {
  std::string reason;
  const Json line = ir::parse_json(text, &reason);
  // A `qplan tune` that was killed, or had no room on its disk, leaves a part of a line.
  if (line.is_discarded() && reason.starts_with("is not JSON")) {
    torn_.emplace_back(number, reason);
    return;
  }
  if (line.is_discarded()) fail(number, reason);
  if (!line.is_object()) fail(number, "is not a JSON object");
  const auto member = [&](const char* what) -> const Json& {
    const auto at = line.find(what);
    if (at == line.end()) fail(number, std::string("has no '") + what + "'");
    return *at;
  };
  const Json& key = member("key");
  const Json& schedule = member("schedule");
  const Json& threads = member("threads");
  const Json& ns = member("ns");
  if (!key.is_string()) fail(number, "'key' is not a text");
  if (!schedule.is_object()) fail(number, "'schedule' is not an object of names and values");
  if (!threads.is_number_unsigned() || threads == 0) fail(number, "'threads' is not a number from 1");
  if (!ns.is_number_unsigned()) fail(number, "'ns' is not a whole number of nanoseconds");
  ++num_lines_;
  if (threads != num_threads) {
    ++num_of_other_threads_;
    return;
  }
  if (!schedule.empty()) keys_with_choice_.insert(key.get<std::string>());
  const auto layer = line.find("stage");
  lines_[key.get<std::string>()].push_back(
      {number, schedule, ns.get<uint64_t>(), layer != line.end() && *layer == "heat"});
}

target::StepSchedule TuningLog::fastest(const std::string& key, uint16_t kernel, const LogFunction& log) {
  const auto lines = lines_.find(key);
  if (lines == lines_.end()) return {};
  const bool is_of_use =
      !inspect::knobs_of(kernel).empty() || keys_with_choice_.empty() || keys_with_choice_.contains(key);
  used_ = used_ || is_of_use;
  fits_without_choice_ = fits_without_choice_ || !is_of_use;
  for (const Line& line : lines->second) {
    try {
      return inspect::parse_schedule(kernel, line.schedule);
    } catch (const PackError& error) {
      if (log && warned_.insert(line.number).second)
        log(QPLAN_LOG_WARNING, passed_over(line.number, error.what()));
    }
  }
  return {};
}

std::optional<uint64_t> TuningLog::shortest_ns(const std::string& key) const {
  const auto lines = lines_.find(key);
  if (lines == lines_.end()) return std::nullopt;
  return lines->second.front().ns;
}

bool TuningLog::has_keys_of(std::string_view prefix) const {
  const auto first = lines_.lower_bound(prefix);
  return first != lines_.end() && first->first.starts_with(prefix);
}

void TuningLog::check_used() const {
  if (used_) return;
  const std::string none = "no line (of " + std::to_string(num_lines_) + ") ";
  std::string text;
  if (num_lines_ == 0) {
    text = "has no measurements";
  } else if (num_of_other_threads_ == num_lines_) {
    text = none + "was measured with " + std::to_string(num_threads_) +
           (num_threads_ == 1 ? " thread" : " threads") + ", the number that is wanted (--tuning-threads)";
  } else {
    text = none + (fits_without_choice_ ? "for a step with a choice " : "") +
           "fits a step of this model for this target; measure it with 'qplan tune' and the same options";
  }
  throw PackError(QPLAN_INVALID_ARGUMENT, "tuning '" + name_ + "': " + text);
}

std::string TuningLog::passed_over(size_t number, const std::string& reason) const {
  return "tuning '" + name_ + "' line " + std::to_string(number) + ": " + reason +
         "; the line is passed over";
}

void TuningLog::fail(size_t number, const std::string& text) const {
  throw PackError(QPLAN_INVALID_ARGUMENT,
                  "tuning '" + name_ + "' line " + std::to_string(number) + ": " + text +
                      "; expected what qplan tune writes: {\"key\": .., \"schedule\": {..}, "
                      "\"threads\": .., \"ns\": ..}");
}

// Which schedules are worth a measurement: all that can be set, less what a model of cost knows to be no
// better.

namespace {

using ir::Json;

constexpr uint32_t kIsaShift = 56;

// What a core does in a cycle at most: multiply-accumulates of an instruction set, bytes moved. Kernels reach
// a quarter of it or more, the reference a little of what compilers make of it.
constexpr uint64_t kBytesPerCycle = 32;
constexpr uint64_t kWorstShare = 4;
uint64_t macs_per_cycle(uint32_t isa) {
  switch (isa) {
#define QPLAN_ISA(arch, name, NAME, id, base, vectors, macs_per_cycle, features, flags) \
  case QPLAN_ISA_##NAME:                                                                \
    return macs_per_cycle;
#include "kernels/isa.def"
#undef QPLAN_ISA
    default:
      return 1;
  }
}

// What is known of a step with a schedule before it runs.
struct Estimate {
  const KernelVariant* variant = nullptr;
  uint32_t work_items = 0;
  uint32_t tasks = 1;
  uint64_t least_cycles = 0;
  bool has_room = true;  // for its scratch memory, where that is part of the plan's arena
};

class StepSpace {
 public:
  StepSpace(SchedulablePlan* plan, uint32_t step, uint32_t isa, uint32_t num_threads)
      : plan_(*plan),
        step_(step),
        isa_(isa),
        num_threads_(num_threads),
        old_(plan->view().step(step).schedule()) {
    default_ = estimate({});
    const target::StepSchedule own = own_schedule();
    seen_.insert(fingerprint(own, estimate(own)));
    candidates_.push_back(inspect::schedule_json(kernel(), own));
    for (const target::StepSchedule& schedule : legal()) {
      if (schedule != own) consider(schedule);
    }
    plan_.set_schedule(step_, old_);
  }

  Json json() {
    SchedulablePlan::Bound bound;
    plan_.bind(step_, &bound);
    Json json;
    json["step"] = step_;
    json["key"] = step_key(bound.step, target_text(plan_.view().plan()));
    json["kernel"] = default_.variant->name;
    json["candidates"] = std::move(candidates_);
    json["pruned"] = {{"same", same_},
                      {"too_few_tasks", too_few_tasks_},
                      {"slower_isa", slower_isa_},
                      {"no_room", no_room_}};
    return json;
  }

 private:
  std::span<const Knob> knobs() const { return {default_.variant->knobs, default_.variant->num_knobs}; }

  uint16_t kernel() const { return plan_.view().step(step_).kernel(); }

  // What a plan says that has a name: bytes of no packer are none. Of grains the first that gives its tasks.
  target::StepSchedule own_schedule() {
    target::StepSchedule own =
        inspect::parse_schedule(kernel(), inspect::schedule_json(kernel(), {.bytes = old_}));
    plan_.set_schedule(step_, own.bytes);
    SchedulablePlan::Bound bound;
    plan_.bind(step_, &bound);
    const VariantNeeds needs = variant_needs(*bound.family, bound.args, plan_.profile(), own.bytes);
    const auto gives_its_tasks = [&](double grain) {
      return task_grain(bound.step, needs.work_items, plan_.profile(), grain) ==
             plan_.view().step(step_).min_units_per_task();
    };
    if (gives_its_tasks(1)) return own;
    const auto* grain = std::ranges::find_if(inspect::kGrains, gives_its_tasks);
    if (grain != std::end(inspect::kGrains)) own.grain = *grain;
    return own;
  }

  // The default first; then all settings of all knobs with it, other instruction sets, other grains.
  std::vector<target::StepSchedule> legal() const {
    std::vector<target::StepSchedule> schedules(1);
    for (uint32_t k = 0; k < knobs().size(); ++k) {
      const size_t count = schedules.size();
      for (uint64_t setting = 1; setting <= knobs()[k].num_values; ++setting) {
        for (size_t i = 0; i < count; ++i)
          schedules.push_back({.bytes = schedules[i].bytes | setting << (8 * k)});
      }
    }
    const KernelFamily& family = family_of(kernel());
    for (uint32_t v = 0; v < family.num_variants; ++v) {
      const uint64_t isa = family.variants[v].isa;
      if (isa < default_.variant->isa && isa_within(family.variants[v].isa, isa_))
        schedules.push_back({.bytes = isa << kIsaShift});
    }
    for (const double grain : inspect::kGrains) {
      if (num_threads_ > 1) schedules.push_back({.grain = grain});
    }
    return schedules;
  }

  Estimate estimate(const target::StepSchedule& schedule) {
    plan_.set_schedule(step_, schedule.bytes);
    SchedulablePlan::Bound bound;
    plan_.bind(step_, &bound);
    Estimate result;
    result.variant = choose_variant(*bound.family, bound.args, isa_, SIZE_MAX, schedule.bytes);
    result.work_items = result.variant->work_items(bound.args);
    const uint32_t grain = task_grain(bound.step, result.work_items, plan_.profile(), schedule.grain);
    if (num_threads_ > 1 && grain > 0)
      result.tasks =
          std::clamp(result.work_items / grain, 1u, num_threads_ * tasks_per_worker(*result.variant));
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < bound.step.num_inputs(); ++i) bytes += bound.step.input(i).size_bytes;
    for (uint32_t i = 0; i < bound.step.num_outputs(); ++i) bytes += bound.step.output(i).size_bytes;
    const bool reference = result.variant->isa == QPLAN_ISA_REFERENCE;
    result.least_cycles = std::max(bound.step.step->macs() / macs_per_cycle(result.variant->isa),
                                   reference ? bytes : bytes / kBytesPerCycle);
    result.has_room =
        variant_needs(*bound.family, bound.args, plan_.profile(), schedule.bytes).scratch_bytes <=
        plan_.scratch_in_arena(step_);
    return result;
  }

  // What tells two schedules apart: the variant, how often each size divides the work, the orders of loops. A
  // size's own choice may depend on the sizes before it, so the last one shows in the number of units alone.
  std::vector<uint64_t> fingerprint(const target::StepSchedule& schedule, const Estimate& estimated) {
    std::vector<uint64_t> print = {reinterpret_cast<uintptr_t>(estimated.variant), estimated.work_items,
                                   estimated.tasks};
    uint64_t firsts = 0;  // the first setting of all sizes
    uint32_t last = 0;
    for (uint32_t k = 0; k < estimated.variant->num_knobs; ++k) {
      if (estimated.variant->knobs[k].kind != KnobKind::kTile) continue;
      firsts |= uint64_t{1} << (8 * k);
      last = k;
    }
    for (uint32_t k = 0; k < estimated.variant->num_knobs; ++k) {
      const uint64_t byte = uint64_t{0xff} << (8 * k);
      if (estimated.variant->knobs[k].kind == KnobKind::kOrder) {
        print.push_back(estimated.work_items > 1 ? schedule.bytes & byte : 0);
      } else if (k != last) {
        print.push_back(estimate({.bytes = (firsts & ~byte) | (schedule.bytes & byte)}).work_items);
      }
    }
    return print;
  }

  void consider(const target::StepSchedule& schedule) {
    const Estimate estimated = estimate(schedule);
    if (!seen_.insert(fingerprint(schedule, estimated)).second) {
      ++same_;
    } else if (estimated.tasks < num_threads_ && default_.tasks >= num_threads_) {
      ++too_few_tasks_;
    } else if (estimated.least_cycles > kWorstShare * default_.least_cycles) {
      ++slower_isa_;
    } else if (!estimated.has_room) {
      ++no_room_;
    } else {
      candidates_.push_back(inspect::schedule_json(kernel(), schedule));
    }
  }

  SchedulablePlan& plan_;
  const uint32_t step_, isa_, num_threads_;
  const uint64_t old_;
  Estimate default_;
  std::set<std::vector<uint64_t>> seen_;
  Json candidates_ = Json::array();
  uint32_t same_ = 0, too_few_tasks_ = 0, slower_isa_ = 0, no_room_ = 0;
};

}  // namespace

std::string tuning_space(const format::PlanView& view, uint32_t isa, uint32_t num_threads) {
  if (isa == QPLAN_ISA_AUTO) isa = cpu_best_isa();
  num_threads = std::max(num_threads, 1u);
  SchedulablePlan plan(view);
  const std::vector<bool> is_fallback = inspect::alternative_steps(view);
  Json json;
  json["num_steps"] = view.num_steps();
  json["steps"] = Json::array();
  for (uint32_t s = 0; s < view.num_steps(); ++s) {
    // Regions, and what runs in their place, are left alone.
    if (!plan.is_kernel(s) || is_fallback[s]) continue;
    json["steps"].push_back(StepSpace(&plan, s, isa, num_threads).json());
  }
  return ir::json_text(json) + "\n";
}

}  // namespace qplan::schedule
