// qnn.quantize, qnn.dequantize: families quantize and dequantize.
#include "src/packer/target/cpu/families.h"

namespace qplan::target::cpu {
namespace {

enum Operand { kData, kScale, kZeroPoint };

}  // namespace

Chain match_quantize(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.quantize") ? Chain{node} : Chain{};
}

void lower_quantize(Lowering& lowering, const Chain& chain) {
  const ir::Node& node = lowering.node(chain.front());
  tfl2_contract(node);
  const ir::DType dtype = lowering.type(node.results[0]).dtype;
  if (!is_8_bit(dtype)) refuse("its dtype is " + ir::to_string(dtype) + ", expected int8 or uint8");
  const float scale = lowering.scale(node.operands[kScale], "the scale");
  const int32_t zero_point = lowering.zero_point(node.operands[kZeroPoint], "the zero point");
  ProgramStep step = make_step(kKernel_quantize, node);
  step.inputs = {lowering.tensor(node.operands[kData])};
  step.outputs = {lowering.define(node.results[0])};
  step.params_type = format::KernelParams_QuantizeParams;
  step.write_params = params_writer<format::QuantizeParamsBuilder>([=](format::QuantizeParamsBuilder& p) {
    p.add_rule(format::QuantizeRule_DIV_AWAY);
    p.add_scale(scale);
    p.add_zero_point(zero_point);
  });
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
  step.params_type = format::KernelParams_DequantizeParams;
  step.write_params = params_writer<format::DequantizeParamsBuilder>([=](format::DequantizeParamsBuilder& p) {
    p.add_scale(scale);
    p.add_zero_point(zero_point);
  });
  lowering.add_step(std::move(step));
}

}  // namespace qplan::target::cpu
