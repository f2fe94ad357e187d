#include "src/packer/schedule/step_facts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "format/plan_view.h"
#include "kernels/kernel.h"
#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/schedule/step_key.h"

namespace qplan::emit {
namespace {

constexpr uint64_t kScratchAlignment = 64;
// Moving a byte takes about as long as this many multiply-accumulates.
constexpr uint64_t kMacsPerByte = 4;

// Plans for one profile are the same whatever this build can run, or they are not made.
void check_isas(const target::TargetProfile& profile) {
  const qplan_kernel_set& all = *qplan_kernels_all();
  for (const uint32_t isa : profile.isas) {
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

}  // namespace

const KernelFamily& family_of(uint16_t kernel) {
  const qplan_kernel_set& all = *qplan_kernels_all();
  const KernelFamily* family = kernel < all.num_families ? all.families[kernel] : nullptr;
  if (family == nullptr) {
    throw PackError(QPLAN_INTERNAL,
                    "emit: kernel family " + std::to_string(kernel) + " is not in this build");
  }
  return *family;
}

uint32_t task_grain(const StepView& step, uint32_t units, const target::TargetProfile& profile,
                    double factor) {
  const uint64_t task_work = profile.task_work;
  uint64_t work = step.step->macs();
  for (uint32_t i = 0; i < step.num_inputs(); ++i) work += kMacsPerByte * step.input(i).size_bytes;
  for (uint32_t i = 0; i < step.num_outputs(); ++i) work += kMacsPerByte * step.output(i).size_bytes;
  if (task_work == 0 || units < 2 || work < 2 * task_work) return 0;
  const uint64_t work_per_unit = std::max<uint64_t>(work / units, 1);
  const uint64_t grain = (task_work + work_per_unit - 1) / work_per_unit;
  const double scaled = static_cast<double>(std::clamp<uint64_t>(grain, 1, units)) * factor;
  return static_cast<uint32_t>(std::clamp<uint64_t>(static_cast<uint64_t>(scaled), 1, units));
}

DraftPlan::DraftPlan(const target::Program& program, const target::TargetProfile& profile,
                     const ConstantSegment& constants, std::vector<StepSchedule> schedules)
    : program_(program),
      profile_(profile),
      schedules_(std::move(schedules)),
      root_(build_root({.program = program,
                        .profile = profile,
                        .constants = constants,
                        .schedules = schedules_.empty() ? nullptr : &schedules_})),
      plan_(flatbuffers::GetRoot<format::Plan>(root_.data())) {
  for (const target::ProgramTensor& tensor : program.tensors) {
    // Nobody writes through it: a step's output is never a constant.
    data_.push_back(tensor.is_constant() ? const_cast<uint8_t*>(tensor.constant->data())
                                         : nullptr);  // NOLINT
  }
}

StepFacts DraftPlan::step_facts() const {
  check_isas(profile_);
  const uint32_t best_isa = *std::ranges::max_element(profile_.isas);
  StepFacts facts;
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  for (uint32_t s = 0; s < program_.steps.size(); ++s) {
    if (program_.steps[s].npu != nullptr) {
      facts.min_units_per_task.push_back(0);
      continue;
    }
    const StepView view = step_view(s);
    const KernelFamily& family = family_of(view.step->kernel());
    Error error;
    if (family.bind(view, true, args, &error) < 0) {
      throw PackError(QPLAN_MODEL_UNSUPPORTED, std::string(family.name) + " '" + program_.steps[s].name +
                                                   "': its kernel refuses: " + error.text());
    }
    for (uint32_t v = 0; v < family.num_variants; ++v) {
      const KernelVariant& variant = family.variants[v];
      if (std::ranges::find(profile_.isas, variant.isa) == profile_.isas.end() || !variant.accepts(args))
        continue;
      facts.scratch_per_worker = std::max<uint64_t>(facts.scratch_per_worker, variant.scratch_bytes(args));
    }
    const KernelVariant* variant = choose_variant(family, args, best_isa, SIZE_MAX, view.step->schedule());
    facts.min_units_per_task.push_back(
        task_grain(view, variant->units(args), profile_, schedules_.empty() ? 1 : schedules_[s].grain));
  }
  facts.scratch_per_worker = round_up(facts.scratch_per_worker, kScratchAlignment);
  if (facts.scratch_per_worker > format::kMaxScratchBytes) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, "the kernels need " + std::to_string(facts.scratch_per_worker) +
                                                 " bytes of scratch, a plan has at most " +
                                                 std::to_string(format::kMaxScratchBytes));
  }
  return facts;
}

std::vector<StepSchedule> DraftPlan::fastest_schedules(TuningLog* tuning, const LogFunction& log) const {
  std::vector<StepSchedule> schedules(program_.steps.size());
  size_t num_set = 0;
  for (uint32_t s = 0; s < schedules.size(); ++s) {
    if (program_.steps[s].npu != nullptr) continue;
    const StepView view = step_view(s);
    schedules[s] = tuning->fastest(step_key(view), view.step->kernel(), log);
    if (schedules[s] != StepSchedule()) ++num_set;
  }
  if (log) {
    log(QPLAN_LOG_INFO, "tuning: " + std::to_string(num_set) + " of " + std::to_string(schedules.size()) +
                            " steps have another schedule than the default");
  }
  return schedules;
}

StepView DraftPlan::step_view(uint32_t step) const {
  return {plan_, plan_->steps()->Get(step)->body_as_KernelStep(), data_.data()};
}

bool DraftPlan::may_be_in_place(uint32_t step, uint32_t output, uint32_t input) const {
  if (program_.steps[step].npu != nullptr) return false;
  const StepView view = step_view(step);
  const KernelFamily& family = family_of(view.step->kernel());
  return family.in_place != nullptr && family.in_place(view, output, input);
}

std::optional<uint64_t> DraftPlan::part_offset(uint32_t step, uint32_t output, uint32_t input) const {
  if (program_.steps[step].npu != nullptr) return std::nullopt;
  const StepView view = step_view(step);
  const KernelFamily& family = family_of(view.step->kernel());
  uint64_t offset = 0;
  if (family.part == nullptr || !family.part(view, output, input, &offset)) return std::nullopt;
  return offset;
}

}  // namespace qplan::emit
