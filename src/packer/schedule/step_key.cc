#include "src/packer/schedule/step_key.h"

#include <algorithm>
#include <string_view>

#include "src/packer/inspect/plan_reader.h"

namespace qplan::schedule {
namespace {

// Parts of the names of parameters that say with which numbers, not how much is computed.
constexpr std::string_view kNumbers[] = {"zero_point", "multiplier", "shift",   "scale",
                                         "clamp",      "value",      "diff_min"};

bool is_number(std::string_view name) {
  return std::ranges::any_of(kNumbers, [&](std::string_view part) { return name.find(part) != name.npos; });
}

std::string tensor_text(const format::Tensor& tensor) {
  return inspect::dtype_text(tensor) + "[" + inspect::shape_text(tensor) + "]";
}

std::string tensor_text(const StepTensor& tensor) {
  std::string text = std::string(dtype_name(tensor.dtype)) + "[";
  for (uint32_t i = 0; i < tensor.rank; ++i) text += (i == 0 ? "" : "x") + std::to_string(tensor.extents[i]);
  return text + (tensor.rank == 0 ? "scalar]" : "]");
}

std::string params_text(const format::KernelStep& step);

// "stage0=conv2d {..}, tile0=int8[1x8x8x24], stage1=.."; which of its operands a stage has from the tile
// matters to its meaning alone.
std::string chain_text(const format::ChainParams& chain) {
  std::string text;
  for (uint32_t i = 0; i < chain.stages()->size(); ++i) {
    const format::KernelStep& stage = *chain.stages()->Get(i);
    const std::string number = std::to_string(i);
    text += (i == 0 ? "stage" : ", stage") + number + "=" + inspect::kernel_name(stage.kernel()) + " {" +
            params_text(stage) + "}";
    if (i < chain.tiles()->size()) text += ", tile" + number + "=" + tensor_text(*chain.tiles()->Get(i));
  }
  return text;
}

std::string params_text(const format::KernelStep& step) {
  if (const auto* chain = step.params_as_ChainParams()) return chain_text(*chain);
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value) {
    text += (text.empty() ? "" : ", ") + name + "=" + value;
  };
  for (const auto& [name, value] : inspect::step_params(step)) {
    // Weights with a zero point take a sum over each window besides.
    if (name == "weights_zero_point") {
      add("has_weights_zero_point", value == "0" ? "false" : "true");
    } else if (!is_number(name)) {
      add(name, value);
    }
  }
  // A sum with a float form is another computation than one without.
  const format::AddParams* sum = step.residual() != nullptr ? step.residual() : step.params_as_AddParams();
  if (sum != nullptr) add("has_float_form", sum->float_scale1() > 0.0f ? "true" : "false");
  return text;
}

}  // namespace

std::string step_key(const StepView& step, const std::string& target) {
  std::string key = inspect::kernel_name(step.step->kernel()) + " {" + params_text(*step.step) + "}";
  for (uint32_t i = 0; i < step.num_inputs(); ++i) {
    const StepTensor input = step.input(i);
    key += (i == 0 ? " " : ", ") + tensor_text(input) + (input.is_constant ? " constant" : "");
  }
  for (uint32_t o = 0; o < step.num_outputs(); ++o) {
    key += (o == 0 ? " -> " : ", ") + tensor_text(step.output(o));
  }
  return target.empty() ? key : key + " on " + target;
}

std::string target_text(const target::TargetProfile& profile) { return profile.name + "," + profile.options; }

std::string target_text(const format::Plan& plan) {
  const auto* targets = plan.targets();
  if (format::count_of(targets) == 0 || targets->Get(0)->name() == nullptr) return "";
  const format::Target& cpu = *targets->Get(0);
  return cpu.name()->str() + (cpu.options() == nullptr ? "" : "," + cpu.options()->str());
}

}  // namespace qplan::schedule
