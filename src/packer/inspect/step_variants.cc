#include "src/packer/inspect/step_variants.h"

#include <ranges>

#include "kernels/cpu.h"
#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/target/profile.h"
#include "src/runtime/cascade.h"

namespace qplan::inspect {
namespace {

using Json = nlohmann::ordered_json;

// The variants that a machine with this instruction set passes over before it takes `taken`.
std::vector<RefusingVariant> passed_over(const KernelFamily& family, const KernelVariant* taken,
                                         const void* args, uint32_t isa) {
  std::vector<RefusingVariant> result;
  for (const KernelVariant& variant : std::span(family.variants, family.num_variants)) {
    if (&variant == taken) break;
    if (!isa_within(variant.isa, isa)) continue;
    const Refusal refusal = variant.refusal(args);
    result.push_back({&variant, refusal == Refusal::kNone
                                    ? "the step's schedule asks for another instruction set"
                                    : refusal_text(refusal)});
  }
  return result;
}

}  // namespace

std::vector<IsaVariant> variants_by_isa(const KernelFamily& family, const void* args,
                                        std::span<const uint32_t> isas, uint64_t schedule) {
  std::vector<IsaVariant> result;
  for (const uint32_t isa : isas | std::views::reverse) {
    const KernelVariant* taken = choose_variant(family, args, isa, SIZE_MAX, schedule);
    result.push_back({isa, taken, passed_over(family, taken, args, isa)});
  }
  return result;
}

std::vector<uint32_t> target_isas(const format::PlanView& view) {
  const auto* targets = view.plan().targets();
  if (format::count_of(targets) == 0 || targets->Get(0)->name() == nullptr) return {};
  const auto* options = targets->Get(0)->options();
  std::string text = targets->Get(0)->name()->str();
  if (options != nullptr && options->size() != 0) text += "," + options->str();
  try {
    return target::parse_target(text).isas;
  } catch (const PackError&) {
    return {};
  }
}

Json variants_json(const StepView& step, std::span<const uint32_t> isas) {
  const qplan_kernel_set& all = *qplan_kernels_all();
  const uint16_t kernel = step.step->kernel();
  const KernelFamily* family = kernel < all.num_families ? all.families[kernel] : nullptr;
  if (family == nullptr) return nullptr;
  Error error;
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  if (family->bind(step, true, args, &error) < 0) return nullptr;
  Json json = Json::array();
  for (const IsaVariant& of_isa : variants_by_isa(*family, args, isas, step.step->schedule())) {
    json.push_back({{"isa", qplan_isa_name(of_isa.isa)}, {"kernel", of_isa.variant->name}});
    if (of_isa.better.empty()) continue;
    Json& refused = json.back()["refused"] = Json::array();
    for (const RefusingVariant& better : of_isa.better)
      refused.push_back({{"kernel", better.variant->name}, {"reason", better.reason}});
  }
  return json;
}

void add_variants(const format::PlanView& view, uint32_t index, std::span<const uint32_t> isas, Json* json) {
  const format::KernelStep& step = view.step(index);
  const StepView of_step = StepView::without_addresses(view.plan(), step, view.bytes());
  (*json)["variants"] = variants_json(of_step, isas);
  const format::CascadeParams* cascade = step.params_as_CascadeParams();
  if (cascade == nullptr || (*json)["variants"].is_null()) return;
  Json& layers = (*json)["layers"] = Json::array();
  for (uint32_t i = 0; i < cascade->layers()->size(); ++i) {
    const StepView layer = cascade_layer(of_step, i);
    layers.push_back({{"op", kernel_name(layer.step->kernel())}, {"variants", variants_json(layer, isas)}});
  }
}

}  // namespace qplan::inspect
