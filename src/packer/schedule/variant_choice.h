// Why a step runs on a slower variant than its family has.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_VARIANT_CHOICE_H_
#define QPLAN_SRC_PACKER_SCHEDULE_VARIANT_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/runtime/bind/family.h"

namespace qplan::schedule {

struct RefusingVariant {
  const KernelVariant* variant;
  std::string reason;  // "it does not read weights in this layout"
};

// The variants of `isas` that are better than the one that choose_variant takes for args of the family, best
// first, each with its reason.
std::vector<RefusingVariant> better_variants(const KernelFamily& family, const void* args,
                                             const std::vector<uint32_t>& isas, uint64_t schedule);

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_VARIANT_CHOICE_H_
