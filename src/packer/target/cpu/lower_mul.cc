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
  step.params = MulParams{
      .contract = contract,
      .input1_zero_point = zero_point1,
      .input2_zero_point = zero_point2,
      .output_zero_point = output_zero_point,
      .output_multiplier = multiplier.multiplier,
      .output_shift = multiplier.shift,
      .clamp_min = clamp.min,
      .clamp_max = clamp.max,
      .input1_scale = is_f32e ? scale1 : 0.0f,
      .input2_scale = is_f32e ? scale2 : 0.0f,
      .output_scale = is_f32e ? output_scale : 0.0f,
  };
  lowering.add_step(std::move(step));
}

}  // namespace qplan::target::cpu
