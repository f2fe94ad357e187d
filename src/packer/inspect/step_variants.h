// Which variant of its family each instruction set of a plan's target would run a step with, and why not a
// better one.
#ifndef QPLAN_SRC_PACKER_INSPECT_STEP_VARIANTS_H_
#define QPLAN_SRC_PACKER_INSPECT_STEP_VARIANTS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "format/plan_view.h"
#include "src/runtime/bind/family.h"

namespace qplan::inspect {

struct RefusingVariant {
  const KernelVariant* variant;
  std::string reason;  // "it does not read weights in this layout"
};

// What a machine takes whose best instruction set is `isa`.
struct IsaVariant {
  uint32_t isa;                         // QPLAN_ISA_*
  const KernelVariant* variant;         // as choose_variant, with all the scratch that it wants
  std::vector<RefusingVariant> better;  // the variants that come before it on that machine, best first
};

// isas: QPLAN_ISA_*, lowest first; the result has the best first.
std::vector<IsaVariant> variants_by_isa(const KernelFamily& family, const void* args,
                                        std::span<const uint32_t> isas, uint64_t schedule);

// The instruction sets of the CPU that the plan was packed for, lowest first. Empty where this build does not
// know that target.
std::vector<uint32_t> target_isas(const format::PlanView& view);

// The same of a kernel's step, without addresses or with them:
//   [{"isa": "avx2", "kernel": "conv2d_ref", "refused": [{"kernel": "conv2d_avx2", "reason": "it ..."}]},
//   ...]
// Null where this build does not know the kernel, or where the kernel refuses the step.
nlohmann::ordered_json variants_json(const StepView& step, std::span<const uint32_t> isas);
// Adds "variants" of step `index` to its object; of a cascade also "layers": [{"op", "variants"}, ...].
void add_variants(const format::PlanView& view, uint32_t index, std::span<const uint32_t> isas,
                  nlohmann::ordered_json* json);

}  // namespace qplan::inspect

#endif  // QPLAN_SRC_PACKER_INSPECT_STEP_VARIANTS_H_
