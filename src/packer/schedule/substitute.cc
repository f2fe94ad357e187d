#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/layout.h"
#include "src/packer/schedule/schedule.h"
#include "src/packer/target/program.h"

namespace qplan::schedule {
namespace {

uint16_t layout_of_fours(uint16_t layout, uint64_t tap_bytes) {
  if (layout == kLayout_o16z8) return kLayout_o16z4;
  if (tap_bytes % 4 == 0 && layout_group(layout) == 8) return kLayout_o16k4;
  if (layout == kLayout_o16r8) return kLayout_o16r4;
  return layout == kLayout_o16i8 ? uint16_t{kLayout_o16i4} : layout;
}

template <typename Params>
void set_minimum(const ir::TensorType& input, Params* params) {
  if (input.dtype.bits == 8) params->input_zero_point = static_cast<int32_t>(input.dtype.min());
}

class Substitution {
 public:
  Substitution(const target::Program& program, const target::ProgramStep& step)
      : tensors_(program.tensors), tiles_(step.tiles) {
    result_.step = step;
    for (target::ProgramStep& layer : result_.step.layers) change(&layer);
    change(&result_.step);
    for (target::ProgramStep& layer : result_.step.layers) renumber(&layer);
    renumber(&result_.step);
    for (auto& [tensor, bytes] : result_.weights) tensor = own_number(tensor);
  }
  SubstituteStep result() { return std::move(result_); }

 private:
  const ir::TensorType& type(target::TensorId id) const {
    return id < target::kFirstTile ? tensors_[id].type : tiles_[id - target::kFirstTile].type;
  }

  target::TensorId own_number(target::TensorId id) {
    if (id >= target::kFirstTile) return id;
    const auto at = numbers_.try_emplace(id, static_cast<target::TensorId>(result_.tensors.size()));
    if (at.second) result_.tensors.push_back(id);
    return at.first->second;
  }

  void renumber(target::ProgramStep* step) {
    for (target::TensorId& id : step->inputs) id = own_number(id);
    for (target::TensorId& id : step->outputs) id = own_number(id);
  }

  void set_layout(const target::ProgramStep& step, uint16_t layout, const LayoutWindow& window,
                  uint16_t* current) {
    if (layout == *current) return;
    *current = layout;
    const auto num_o = static_cast<uint64_t>(type(step.outputs[0]).shape.back());
    result_.weights.emplace_back(step.inputs[1], layout_bytes(layout, num_o, window));
  }

  void change(target::ProgramStep* step) {
    if (const auto* conv = step->params.get_if<target::Conv2dParams>()) {
      target::Conv2dParams params = *conv;
      const ir::TensorType& input = type(step->inputs[0]);
      set_minimum(input, &params);
      const LayoutWindow window = {params.kernel_h, params.kernel_w,
                                   static_cast<uint64_t>(input.shape.back()) / params.groups};
      const bool is_pixel = params.weights_layout == kLayout_o16i8;
      const uint64_t tap_bytes = is_pixel ? window.channels : window.w * window.channels;
      set_layout(*step, layout_of_fours(params.weights_layout, tap_bytes), window, &params.weights_layout);
      step->params = std::move(params);
    } else if (const auto* dense = step->params.get_if<target::FullyConnectedParams>()) {
      target::FullyConnectedParams params = *dense;
      const ir::TensorType& input = type(step->inputs[0]);
      set_minimum(input, &params);
      const uint16_t layout =
          params.weights_layout == kLayout_o16r8 ? uint16_t{kLayout_o16k4} : params.weights_layout;
      set_layout(*step, layout, {1, 1, static_cast<uint64_t>(input.shape.back())}, &params.weights_layout);
      step->params = std::move(params);
    }
  }

  const std::vector<target::ProgramTensor>& tensors_;
  const std::vector<target::ProgramTensor>& tiles_;
  std::unordered_map<target::TensorId, target::TensorId>
      numbers_;  // of the program's tensors, the step's own
  SubstituteStep result_;
};

}  // namespace

SubstituteStep substitute_step(const target::Program& program, const target::ProgramStep& step) {
  return Substitution(program, step).result();
}

}  // namespace qplan::schedule
