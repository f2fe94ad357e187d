// Which schedules are worth a measurement: all that can be set, less what a model of cost knows to be no
// better.
#include <algorithm>
#include <set>
#include <vector>

#include "kernels/cpu.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/ir/json.h"
#include "src/packer/schedule/schedule.h"
#include "src/packer/schedule/tuning_log.h"

namespace qplan::schedule {
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
    for (const target::StepSchedule& schedule : legal()) consider(schedule);
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
    json["pruned"] = {{"same", same_}, {"too_few_tasks", too_few_tasks_}, {"slower_isa", slower_isa_}};
    return json;
  }

 private:
  std::span<const Knob> knobs() const { return {default_.variant->knobs, default_.variant->num_knobs}; }

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
    const KernelFamily& family = family_of(plan_.view().step(step_).kernel());
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
    } else {
      candidates_.push_back(inspect::schedule_json(plan_.view().step(step_).kernel(), schedule));
    }
  }

  SchedulablePlan& plan_;
  const uint32_t step_, isa_, num_threads_;
  const uint64_t old_;
  Estimate default_;
  std::set<std::vector<uint64_t>> seen_;
  Json candidates_ = Json::array();
  uint32_t same_ = 0, too_few_tasks_ = 0, slower_isa_ = 0;
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
