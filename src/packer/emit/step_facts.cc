#include "src/packer/emit/step_facts.h"

#include <algorithm>
#include <string>

#include "format/plan_view.h"
#include "kernels/kernel.h"
#include "src/base/checked.h"
#include "src/packer/error.h"

namespace qplan::emit {
namespace {

constexpr uint64_t kScratchAlignment = 64;
// Moving a byte takes about as long as this many multiply-accumulates.
constexpr uint64_t kMacsPerByte = 16;

const KernelFamily& family_of(uint16_t kernel) {
  const qplan_kernel_set& all = *qplan_kernels_all();
  const KernelFamily* family = kernel < all.num_families ? all.families[kernel] : nullptr;
  if (family == nullptr) {
    throw PackError(QPLAN_INTERNAL,
                    "emit: kernel family " + std::to_string(kernel) + " is not in this build");
  }
  return *family;
}

StepView view_of(const format::Plan& plan, uint32_t step, const std::vector<void*>& data) {
  return {&plan, plan.steps()->Get(step)->body_as_KernelStep(), data.data()};
}

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

// Units so large that a task takes about the profile's task_work; 0 where two such tasks would be too many.
uint32_t task_grain(uint64_t work, uint32_t units, uint64_t task_work) {
  if (task_work == 0 || units < 2 || work < 2 * task_work) return 0;
  const uint64_t work_per_unit = std::max<uint64_t>(work / units, 1);
  const uint64_t grain = (task_work + work_per_unit - 1) / work_per_unit;
  return static_cast<uint32_t>(std::clamp<uint64_t>(grain, 1, units));
}

}  // namespace

DraftPlan::DraftPlan(const target::Program& program, const target::TargetProfile& profile,
                     const ConstantSegment& constants)
    : program_(program),
      profile_(profile),
      root_(build_root({program, profile, constants})),
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
    const StepView view = view_of(*plan_, s, data_);
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
    uint64_t work = view.step->macs();
    for (uint32_t i = 0; i < view.num_inputs(); ++i) work += kMacsPerByte * view.input(i).size();
    for (uint32_t i = 0; i < view.num_outputs(); ++i) work += kMacsPerByte * view.output(i).size();
    facts.min_units_per_task.push_back(task_grain(work, variant->units(args), profile_.task_work));
  }
  facts.scratch_per_worker = round_up(facts.scratch_per_worker, kScratchAlignment);
  if (facts.scratch_per_worker > format::kMaxScratchBytes) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, "the kernels need " + std::to_string(facts.scratch_per_worker) +
                                                 " bytes of scratch, a plan has at most " +
                                                 std::to_string(format::kMaxScratchBytes));
  }
  return facts;
}

bool DraftPlan::may_be_in_place(uint32_t step, uint32_t output, uint32_t input) const {
  if (program_.steps[step].npu != nullptr) return false;
  const StepView view = view_of(*plan_, step, data_);
  const KernelFamily& family = family_of(view.step->kernel());
  return family.in_place != nullptr && family.in_place(view, output, input);
}

}  // namespace qplan::emit
