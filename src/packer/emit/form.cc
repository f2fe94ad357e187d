#include <utility>

#include "src/packer/emit/emit.h"
#include "src/runtime/cascade.h"

namespace qplan::emit {
namespace {

// The variant <family>_dsp_form; null for families that have none.
const KernelVariant* form_of(uint16_t kernel) {
  switch (kernel) {
    case kKernel_conv2d:
      return &kConv2dFamilyForm.variants[0];
    case kKernel_depthwise_conv2d:
      return &kDepthwiseConv2dFamilyForm.variants[0];
    case kKernel_fully_connected:
      return &kFullyConnectedFamilyForm.variants[0];
    default:
      return nullptr;
  }
}

// Whether the variant computes a step that <family>_dsp would compute.
bool is_enough(const KernelVariant& form, const StepView& step, uint32_t isa) {
  const KernelFamily& family = *qplan_kernels_all()->families[step.step->kernel()];
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  Error error;
  if (family.bind(step, true, args, &error) < 0) return false;
  const KernelVariant* chosen = choose_variant(family, args, isa, SIZE_MAX, step.step->schedule());
  return chosen->isa == QPLAN_ISA_DSP && form.accepts(args);
}

// Whether the output is written over the beginning of a larger input, which no form does.
bool overwrites_input(const format::PlanView& view, const format::KernelStep& step) {
  if (step.kernel() != kKernel_conv2d) return false;
  const format::Tensor &from = view.tensor(step.inputs()->Get(0)), &to = view.tensor(step.outputs()->Get(0));
  return from.size() != to.size() && format::ranges_overlap(from, to);
}

}  // namespace

std::map<uint16_t, const KernelVariant*> form_variants(const format::PlanView& view, uint32_t isa,
                                                       bool has_direct_layers) {
  std::map<uint16_t, const KernelVariant*> variants;  // null: not enough for a step
  const auto look = [&](const StepView& step, bool is_excluded) {
    const uint16_t kernel = step.step->kernel();
    const KernelVariant* const form = form_of(kernel);
    if (form == nullptr) return;
    const auto found = variants.emplace(kernel, form).first;
    if (is_excluded || !is_enough(*form, step, isa)) found->second = nullptr;
  };
  const format::Function& main = *view.find_function(nullptr);
  for (uint32_t i = 0; i < main.num_steps(); ++i) {
    const uint32_t index = main.first_step() + i;
    if (view.npu_step(index) != nullptr) continue;
    const StepView step = StepView::without_addresses(view.plan(), view.step(index), view.bytes());
    look(step, overwrites_input(view, *step.step));
    const format::CascadeParams* cascade = step.step->params_as_CascadeParams();
    for (uint32_t k = 0; k < (cascade == nullptr ? 0 : cascade->layers()->size()); ++k) {
      look(cascade_layer(step, k), !has_direct_layers);
    }
  }
  std::erase_if(variants, [](const auto& entry) { return entry.second == nullptr; });
  return variants;
}

}  // namespace qplan::emit
