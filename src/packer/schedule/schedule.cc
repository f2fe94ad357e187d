#include "src/packer/schedule/schedule.h"

#include <algorithm>
#include <string>

#include "format/plan_view.h"
#include "src/packer/error.h"
#include "src/packer/schedule/step_key.h"
#include "src/packer/schedule/step_queries.h"

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
    target::StepSchedule fastest = tuning->fastest(step_key(queries.view(s), target), step.kernel, log);
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
    step.min_units_per_task = task_grain(view, needs.units, profile, step.schedule.grain);
    scratch = std::max(scratch, needs.scratch_bytes);
  }
  if (scratch > format::kMaxScratchBytes) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, "the kernels need " + std::to_string(scratch) +
                                                 " bytes of scratch, a plan has at most " +
                                                 std::to_string(format::kMaxScratchBytes));
  }
  program->scratch_per_worker = scratch;
}

}  // namespace qplan::schedule
