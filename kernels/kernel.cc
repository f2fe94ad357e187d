#include "kernels/kernel.h"

#include "kernels/cpu.h"

namespace qplan {

const KernelVariant* choose_variant(const KernelVariant* variants, uint32_t num_variants, const void* args,
                                    uint32_t isa_limit, size_t scratch_limit, uint64_t schedule) {
  const uint32_t wanted = schedule_isa(schedule);
  for (uint32_t i = 0; i + 1 < num_variants; ++i) {
    const KernelVariant& variant = variants[i];
    if (isa_within(variant.isa, isa_limit) && (wanted == 0 || isa_within(variant.isa, wanted)) &&
        variant.accepts(args) && variant.scratch_bytes(args) <= scratch_limit) {
      return &variant;
    }
  }
  return &variants[num_variants - 1];
}

}  // namespace qplan
