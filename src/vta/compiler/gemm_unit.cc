#include "src/vta/compiler/gemm_unit.h"

#include <memory>
#include <utility>

#include "src/vta/compiler/compile.h"
#include "src/vta/compiler/read_layer.h"

namespace qplan::target::vta {

UnitPlan read_gemm_unit(const Config& /*config*/, const Candidate& candidate) {
  const auto read = std::make_shared<ReadLayer>(read_layer(candidate));
  const GemmLayer& layer = read->layer;
  const Geometry& g = layer.geometry;
  const op::Window2d& w = g.window;
  UnitPlan plan;
  plan.name = layer.name;
  UnitActivation input;
  input.value = candidate.matches["data"].id;
  input.h = g.in_h, input.w = g.in_w, input.channels = g.in_c;
  input.needed = {w.pad_top, w.pad_left, w.pad_bottom, w.pad_right};
  if (w.pad_top + w.pad_left + w.pad_bottom + w.pad_right != 0)
    input.border_value = layer.padding.value_or(static_cast<int8_t>(layer.input_zero_point));
  input.is_unsigned = read->flips_input;
  plan.inputs.push_back(input);
  plan.output.h = g.out_h, plan.output.w = g.out_w, plan.output.channels = g.out_c;
  plan.output.is_unsigned = read->flips_output;
  plan.output.is_int32 = layer.leaves_int32;
  plan.compile = [read](const Config& config, std::span<const ActivationLayout> inputs,
                        const ActivationLayout& output) {
    return compile_gemm(config, read->layer, inputs[0], output).unit;
  };
  return plan;
}

}  // namespace qplan::target::vta
