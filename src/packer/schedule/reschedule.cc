#include "src/packer/schedule/reschedule.h"

#include <nlohmann/json.hpp>

#include "src/packer/error.h"
#include "src/packer/inspect/schedule_names.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/json_depth.h"
#include "src/packer/schedule/schedulable_plan.h"
#include "src/packer/schedule/step_queries.h"

namespace qplan::schedule {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void fail(const std::string& text) {
  throw PackError(QPLAN_INVALID_ARGUMENT, "schedules: " + text);
}

target::StepSchedule parse_step(uint32_t step, uint16_t kernel, const Json& settings) {
  try {
    return inspect::parse_schedule(kernel, settings);
  } catch (const PackError& error) {
    fail("step " + std::to_string(step) + ": " + error.what());
  }
}

void set_step(uint32_t step, const Json& settings, SchedulablePlan* plan) {
  const target::TargetProfile& profile = plan->profile();
  const target::StepSchedule schedule = parse_step(step, plan->view().step(step).kernel(), settings);
  plan->set_schedule(step, schedule.bytes);
  SchedulablePlan::Bound bound;
  plan->bind(step, &bound);
  const VariantNeeds needs = variant_needs(*bound.family, bound.args, profile, schedule.bytes);
  plan->raise_scratch_per_worker(needs.scratch_bytes);
  plan->set_min_units_per_task(step, task_grain(bound.step, needs.units, profile, schedule.grain));
}

}  // namespace

AlignedBytes reschedule(const format::PlanView& view, std::string_view schedules) {
  if (ir::exceeds_json_depth(schedules)) fail(cat("they nest more than ", ir::kMaxJsonDepth, " deep"));
  const Json list = Json::parse(schedules, nullptr, false);
  if (!list.is_array()) fail("expected a JSON list with an object for each step");
  if (list.size() != view.num_steps()) {
    fail("there are " + std::to_string(list.size()) + " of them, the plan has " +
         std::to_string(view.num_steps()) + " steps");
  }
  SchedulablePlan plan(view);
  for (uint32_t s = 0; s < view.num_steps(); ++s) {
    if (list[s].is_null()) continue;
    if (!plan.is_kernel(s)) fail("step " + std::to_string(s) + " is a region, which has none");
    set_step(s, list[s], &plan);
  }
  return plan.file();
}

}  // namespace qplan::schedule
