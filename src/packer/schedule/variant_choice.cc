#include "src/packer/schedule/variant_choice.h"

#include <algorithm>

#include "kernels/cpu.h"

namespace qplan::schedule {

std::vector<RefusingVariant> better_variants(const KernelFamily& family, const void* args,
                                             const std::vector<uint32_t>& isas, uint64_t schedule) {
  const uint32_t wanted = schedule_isa(schedule);
  std::vector<RefusingVariant> better;
  for (uint32_t v = 0; v < family.num_variants; ++v) {
    const KernelVariant& variant = family.variants[v];
    if (std::ranges::find(isas, variant.isa) == isas.end()) continue;
    const Refusal refusal = variant.refusal(args);
    const bool is_wanted = wanted == 0 || isa_within(variant.isa, wanted);
    if (refusal == Refusal::kNone && is_wanted) break;
    better.push_back({&variant, refusal == Refusal::kNone ? "the schedule wants a lower instruction set"
                                                          : refusal_text(refusal)});
  }
  return better;
}

}  // namespace qplan::schedule
