#include "src/packer/schedule/schedule.h"

#include <algorithm>
#include <string>

#include "format/plan_view.h"
#include "kernels/conv2d/conv2d.h"
#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/json.h"

namespace qplan::schedule {
namespace {

// Plans for one profile are the same whatever this build can run, or they are not made.
void check_isas(const target::TargetProfile& profile) {
  const qplan_kernel_set& all = *qplan_kernels_all();
  for (const uint32_t isa : profile.asked_isas) {
    bool found = false;
    for (uint32_t f = 0; f < all.num_families && !found; ++f) {
      const KernelFamily* family = all.families[f];
      for (uint32_t v = 0; family != nullptr && v < family->num_variants; ++v) {
        found = found || family->variants[v].isa == isa;
      }
    }
    if (!found) {
      throw PackError(QPLAN_KERNEL_MISSING,
                      "target '" + profile.name + "," + profile.options +
                          "': this build of the packer lacks the kernels of isa '" + qplan_isa_name(isa) +
                          "' and cannot tell their scratch memory; choose a lower isa=");
    }
  }
}

void take_fastest(target::Program* program, const target::TargetProfile& profile, TuningLog* tuning,
                  const LogFunction& log) {
  const StepQueries queries(*program);
  const std::string target = target_text(profile);
  size_t num_set = 0;
  for (uint32_t s = 0; s < program->steps.size(); ++s) {
    target::ProgramStep& step = program->steps[s];
    if (step.npu != nullptr) continue;
    target::StepSchedule fastest = tuning->fastest(step_key(queries.planned(s), target), step.kernel, log);
    if (step.schedule.bytes != 0) fastest.bytes = step.schedule.bytes;
    step.schedule = fastest;
    if (step.schedule != target::StepSchedule()) ++num_set;
  }
  if (log) {
    log(QPLAN_LOG_INFO, "tuning: " + std::to_string(num_set) + " of " +
                            std::to_string(program->steps.size()) +
                            " steps have another schedule than the default");
  }
}

}  // namespace

void schedule_steps(target::Program* program, const target::TargetProfile& profile, TuningLog* tuning,
                    const LogFunction& log) {
  check_isas(profile);
  if (tuning != nullptr) take_fastest(program, profile, tuning, log);
  const StepQueries queries(*program);
  uint64_t scratch = 0;
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  for (uint32_t s = 0; s < program->steps.size(); ++s) {
    target::ProgramStep& step = program->steps[s];
    if (step.npu != nullptr) continue;
    const StepView view = queries.view(s);
    const KernelFamily& family = family_of(step.kernel);
    Error error;
    if (family.bind(view, true, args, &error) < 0) {
      throw PackError(QPLAN_MODEL_UNSUPPORTED,
                      std::string(family.name) + " '" + step.name + "': its kernel refuses: " + error.text());
    }
    const VariantNeeds needs = variant_needs(family, args, profile, step.schedule.bytes);
    step.scratch_bytes = step.in_place_scratch_bytes = needs.scratch_bytes;
    if ((step.kernel == kKernel_conv2d || step.kernel == kKernel_depthwise_conv2d) &&
        (queries.may_be_in_place(s, 0, 0) || queries.may_overwrite(s, 0, 0))) {
      auto& layer = *reinterpret_cast<Conv2dArgs*>(args);
      layer.input = layer.output = &layer;  // any address that both have
      step.in_place_scratch_bytes = variant_needs(family, args, profile, step.schedule.bytes).scratch_bytes;
    }
    step.min_units_per_task = task_grain(view, needs.work_items, profile, step.schedule.grain);
    scratch = std::max({scratch, step.scratch_bytes, step.in_place_scratch_bytes});
  }
  if (scratch > format::kMaxScratchBytes) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, "the kernels need " + std::to_string(scratch) +
                                                 " bytes of scratch, a plan has at most " +
                                                 std::to_string(format::kMaxScratchBytes));
  }
  program->scratch_per_worker = scratch;
}

namespace {

using ir::Json;

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
  if (needs.scratch_bytes > plan->scratch_in_arena(step)) {
    fail(cat("step ", step, " would take ", needs.scratch_bytes,
             " bytes of scratch, the plan's arena has room for ", plan->scratch_in_arena(step),
             "; pack the model again with the tuning log (--tuning)"));
  }
  plan->raise_scratch_per_worker(needs.scratch_bytes);
  plan->set_min_units_per_task(step, task_grain(bound.step, needs.work_items, profile, schedule.grain));
}

}  // namespace

AlignedBytes reschedule(const format::PlanView& view, std::string_view schedules) {
  std::string reason;
  const Json list = ir::parse_json(schedules, &reason);
  if (list.is_discarded()) fail("the text " + reason);
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
