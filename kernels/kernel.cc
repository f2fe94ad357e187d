#include "kernels/kernel.h"

#include "kernels/cpu.h"

namespace qplan {

const KernelVariant* choose_variant(const KernelFamily& family, const void* args, uint32_t isa_limit,
                                    size_t scratch_limit, uint64_t schedule) {
  const uint32_t wanted = schedule_isa(schedule);
  for (uint32_t i = 0; i + 1 < family.num_variants; ++i) {
    const KernelVariant& variant = family.variants[i];
    if (isa_within(variant.isa, isa_limit) && (wanted == 0 || isa_within(variant.isa, wanted)) &&
        variant.accepts(args) && variant.scratch_bytes(args) <= scratch_limit) {
      return &variant;
    }
  }
  return &family.variants[family.num_variants - 1];
}

}  // namespace qplan
