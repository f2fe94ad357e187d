#include "src/packer/schedule/step_key.h"

#include <algorithm>
#include <string_view>

#include "src/packer/inspect/plan_reader.h"

namespace qplan::emit {
namespace {

// Parts of the names of parameters that say with which numbers, not how much is computed.
constexpr std::string_view kNumbers[] = {"zero_point", "multiplier", "shift",   "scale",
                                         "clamp",      "value",      "diff_min"};

bool is_number(std::string_view name) {
  return std::ranges::any_of(kNumbers, [&](std::string_view part) { return name.find(part) != name.npos; });
}

std::string tensor_text(const format::Tensor& tensor) {
  return dtype_text(tensor) + "[" + shape_text(tensor) + "]";
}

std::string params_text(const format::KernelStep& step);

// "stage0=conv2d {..}, tile0=int8[1x8x8x24], stage1=.."; which of its operands a stage has from the tile
// matters to its meaning alone.
std::string chain_text(const format::ChainParams& chain) {
  std::string text;
  for (uint32_t i = 0; i < chain.stages()->size(); ++i) {
    const format::KernelStep& stage = *chain.stages()->Get(i);
    const std::string number = std::to_string(i);
    text += (i == 0 ? "stage" : ", stage") + number + "=" + kernel_name(stage.kernel()) + " {" +
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
  for (const auto& [name, value] : step_params(step)) {
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

std::string step_key(const StepView& step) {
  std::string key = kernel_name(step.step->kernel()) + " {" + params_text(*step.step) + "}";
  for (uint32_t i = 0; i < step.num_inputs(); ++i) {
    key +=
        (i == 0 ? " " : ", ") + tensor_text(step.input(i)) + (step.input_is_constant(i) ? " constant" : "");
  }
  for (uint32_t o = 0; o < step.num_outputs(); ++o) {
    key += (o == 0 ? " -> " : ", ") + tensor_text(step.output(o));
  }
  const auto* targets = step.plan->targets();
  if (format::count_of(targets) > 0 && targets->Get(0)->name() != nullptr) {
    key += " on " + targets->Get(0)->name()->str();
    if (targets->Get(0)->options() != nullptr) key += "," + targets->Get(0)->options()->str();
  }
  return key;
}

}  // namespace qplan::emit
