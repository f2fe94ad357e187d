// qnn.mul: family mul.
#include "src/packer/target/cpu/families.h"
#include "src/packer/target/cpu/requantization.h"

namespace qplan::target::cpu {
namespace {

enum Operand {
  kLhs,
  kRhs,
  kLhsScale,
  kLhsZeroPoint,
  kRhsScale,
  kRhsZeroPoint,
  kOutputScale,
  kOutputZeroPoint
};

}  // namespace

Chain match_mul(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.mul") ? with_clip(lowering, node) : Chain{};
}

void lower_mul(Lowering& lowering, const Chain& chain) {
  const ir::Node& node = lowering.node(chain.front());
  const ir::DType dtype = lowering.type(node.results[0]).dtype;
  if (!is_8_bit(dtype) || lowering.type(node.operands[kRhs]).dtype != dtype) {
    refuse("the kernel takes inputs and output of one dtype, int8 or uint8");
  }
  const format::Contract contract = contract_of(node, {format::Contract_TFL2, format::Contract_F32E});
  const Clamp clamp = chain_clamp(lowering, chain);
  const int32_t zero_point1 = lowering.zero_point(node.operands[kLhsZeroPoint], "the left zero point");
  const int32_t zero_point2 = lowering.zero_point(node.operands[kRhsZeroPoint], "the right zero point");
  const int32_t output_zero_point =
      lowering.zero_point(node.operands[kOutputZeroPoint], "the output's zero point");
  const float scale1 = lowering.scale(node.operands[kLhsScale], "the left scale");
  const float scale2 = lowering.scale(node.operands[kRhsScale], "the right scale");
  const float output_scale = lowering.scale(node.operands[kOutputScale], "the output's scale");
  const bool is_f32e = contract == format::Contract_F32E;
  // float32 throughout, as TFLite's Prepare: docs/numerics/mul.md.
  const float real = scale1 * scale2 / output_scale;
  const QuantizedMultiplier multiplier =
      is_f32e ? QuantizedMultiplier{} : checked_multiplier(static_cast<double>(real));

  ProgramStep step = make_step(kKernel_mul, node);
  step.inputs = {lowering.tensor(node.operands[kLhs]), lowering.tensor(node.operands[kRhs])};
  step.outputs = {lowering.define(chain_result(lowering, chain))};
  step.params_type = format::KernelParams_MulParams;
  step.write_params = params_writer<format::MulParamsBuilder>([=](format::MulParamsBuilder& p) {
    p.add_contract(contract);
    p.add_input1_zero_point(zero_point1);
    p.add_input2_zero_point(zero_point2);
    p.add_output_zero_point(output_zero_point);
    p.add_output_multiplier(multiplier.multiplier);
    p.add_output_shift(multiplier.shift);
    p.add_clamp_min(clamp.min);
    p.add_clamp_max(clamp.max);
    if (!is_f32e) return;
    p.add_input1_scale(scale1);
    p.add_input2_scale(scale2);
    p.add_output_scale(output_scale);
  });
  lowering.add_step(std::move(step));
}

}  // namespace qplan::target::cpu
