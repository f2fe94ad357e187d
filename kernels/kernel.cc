#include "kernels/kernel.h"

#include "kernels/cpu.h"

namespace qplan {

const KernelVariant* choose_variant(const KernelVariant* variants, uint32_t num_variants, const void* args,
                                    uint32_t isa_limit, size_t scratch_limit, uint64_t schedule) {
  const uint32_t wanted = schedule_isa(schedule);
  for (uint32_t i = 0; i < num_variants; ++i) {
    const KernelVariant& variant = variants[i];
    if (variant.isa == QPLAN_ISA_REFERENCE) return &variant;
    if (isa_within(variant.isa, isa_limit) && (wanted == 0 || isa_within(variant.isa, wanted)) &&
        variant.accepts(args) &&
        (scratch_limit == SIZE_MAX || variant.scratch_bytes(args) <= scratch_limit)) {
      return &variant;
    }
  }
  return nullptr;
}

const char* refusal_text(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone:
      break;
    case Refusal::kContract:
      return "it computes another contract";
    case Refusal::kDtype:
      return "it does not read this dtype";
    case Refusal::kLayout:
      return "it does not read weights in this layout";
    case Refusal::kInputZeroPoint:
      return "it does not compute with this input zero point";
    case Refusal::kWeightsZeroPoint:
      return "it does not compute with this weights zero point";
    case Refusal::kWeightRests:
      return "it does not add rests of weights";
    case Refusal::kGroups:
      return "the channels of a group are not whole blocks of 16";
    case Refusal::kWindow:
      return "it has no code for this window, stride or dilation";
    case Refusal::kAxes:
      return "it does not work along these axes";
    case Refusal::kScale:
      return "the positions are not multiples of a sixteenth";
    case Refusal::kLayers:
      return "it computes other layers";
    case Refusal::kTooSmall:
      return "the tensor is too small to gain from it";
    case Refusal::kTooLarge:
      return "the tensor or window is larger than it computes with";
  }
  return "";
}

}  // namespace qplan
