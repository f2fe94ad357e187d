// qnn.requantize of an int32 tensor that is no layer's accumulator: family requantize.
#include "src/packer/target/cpu/families.h"
#include "src/packer/target/cpu/requantization.h"

namespace qplan::target::cpu {
namespace {

enum Operand { kData, kInputScale, kInputZeroPoint, kOutputScale, kOutputZeroPoint };

}  // namespace

Chain match_requantize(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.requantize") ? with_clip(lowering, node) : Chain{};
}

void lower_requantize(Lowering& lowering, const Chain& chain) {
  const ir::Node& node = lowering.node(chain.front());
  const format::Contract contract =
      contract_of(node, {format::Contract_TFL2, format::Contract_TFL1, format::Contract_F32E});
  if (!is_8_bit(lowering.type(node.results[0]).dtype)) refuse("the kernel's output is int8 or uint8");
  const Clamp clamp = chain_clamp(lowering, chain);
  const int32_t input_zero_point =
      lowering.zero_point(node.operands[kInputZeroPoint], "the input's zero point");
  const int32_t output_zero_point =
      lowering.zero_point(node.operands[kOutputZeroPoint], "the output's zero point");
  const Rescale scaling = rescale(contract, lowering.scale(node.operands[kInputScale], "the input's scale"),
                                  lowering.scale(node.operands[kOutputScale], "the output's scale"));

  ProgramStep step = make_step(kKernel_requantize, node);
  step.inputs = {lowering.tensor(node.operands[kData])};
  step.outputs = {lowering.define(chain_result(lowering, chain))};
  step.params_type = format::KernelParams_RequantizeParams;
  step.write_params = params_writer<format::RequantizeParamsBuilder>([=](format::RequantizeParamsBuilder& p) {
    p.add_contract(contract);
    p.add_input_zero_point(input_zero_point);
    p.add_output_zero_point(output_zero_point);
    p.add_multiplier(scaling.quantized.multiplier);
    p.add_shift(scaling.quantized.shift);
    p.add_clamp_min(clamp.min);
    p.add_clamp_max(clamp.max);
    p.add_scale(scaling.scale);
  });
  lowering.add_step(std::move(step));
}

}  // namespace qplan::target::cpu
