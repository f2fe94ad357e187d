// qnn.quantize, qnn.dequantize: families quantize and dequantize.
#include "src/packer/target/cpu/families.h"

namespace qplan::target::cpu {
namespace {

enum Operand { kData, kScale, kZeroPoint };

// The attribute names a rule where the source's differs from its contract's (PyTorch).
format::QuantizeRule quantize_rule(const ir::Node& node) {
  const format::Contract contract =
      contract_of(node, {format::Contract_TFL2, format::Contract_TFL1, format::Contract_F32E});
  const std::string& rule = op::attr_string(node, "rule");
  if (rule == "div_away") return format::QuantizeRule_DIV_AWAY;
  if (rule == "div_even") return format::QuantizeRule_DIV_EVEN;
  if (rule == "mul_even") return format::QuantizeRule_MUL_EVEN;
  if (!rule.empty()) {
    refuse("rounding rule '" + rule + "' is not known, expected 'div_away', 'div_even' or 'mul_even'");
  }
  return contract == format::Contract_F32E ? format::QuantizeRule_DIV_EVEN : format::QuantizeRule_DIV_AWAY;
}

}  // namespace

Chain match_quantize(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.quantize") ? Chain{node} : Chain{};
}

void lower_quantize(Lowering& lowering, const Chain& chain) {
  const ir::Node& node = lowering.node(chain.front());
  const format::QuantizeRule rule = quantize_rule(node);
  const ir::DType dtype = lowering.type(node.results[0]).dtype;
  if (!is_8_bit(dtype)) refuse("its dtype is " + ir::to_string(dtype) + ", expected int8 or uint8");
  const float scale = lowering.scale(node.operands[kScale], "the scale");
  const int32_t zero_point = lowering.zero_point(node.operands[kZeroPoint], "the zero point");
  ProgramStep step = make_step(kKernel_quantize, node);
  step.inputs = {lowering.tensor(node.operands[kData])};
  step.outputs = {lowering.define(node.results[0])};
  step.params = QuantizeParams{
      .rule = rule,
      .scale = scale,
      .zero_point = zero_point,
  };
  lowering.add_step(std::move(step));
}

Chain match_dequantize(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.dequantize") ? Chain{node} : Chain{};
}

void lower_dequantize(Lowering& lowering, const Chain& chain) {
  const ir::Node& node = lowering.node(chain.front());
  const ir::DType dtype = lowering.type(node.operands[kData]).dtype;
  if (!is_8_bit(dtype)) refuse("its dtype is " + ir::to_string(dtype) + ", expected int8 or uint8");
  const float scale = lowering.scale(node.operands[kScale], "the scale");
  const int32_t zero_point = lowering.zero_point(node.operands[kZeroPoint], "the zero point");
  ProgramStep step = make_step(kKernel_dequantize, node);
  step.inputs = {lowering.tensor(node.operands[kData])};
  step.outputs = {lowering.define(node.results[0])};
  step.params = DequantizeParams{
      .scale = scale,
      .zero_point = zero_point,
  };
  lowering.add_step(std::move(step));
}

}  // namespace qplan::target::cpu
