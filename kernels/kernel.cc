#include "kernels/kernel.h"

#include "kernels/cpu.h"

namespace qplan {

void* StepView::unusual_address(uint32_t t) const {
  if (is_tile(t)) return nullptr;
  if (data != nullptr) return data[t];
  const format::Tensor& tensor = *plan->tensors()->Get(t);
  const format::Bank& bank = *plan->banks()->Get(tensor.bank());
  if (file == nullptr || bank.kind() != format::BankKind_CONSTANT) return nullptr;
  // NOLINTNEXTLINE: nobody writes to a constant.
  return const_cast<uint8_t*>(file) + bank.file_offset() + tensor.offset();
}

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
