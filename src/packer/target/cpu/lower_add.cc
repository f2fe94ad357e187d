// qnn.add, qnn.subtract: families add and sub; under tfl2 with the parameters that TFLite's Prepare computes
// for 8 bits.
#include <algorithm>

#include "kernels/numeric/quantize_multiplier.h"
#include "src/packer/target/cpu/families.h"
#include "src/packer/target/cpu/prove_sum.h"

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

constexpr int32_t kLeftShift = 20;

QuantizedMultiplier smaller_than_one(double real) {
  const QuantizedMultiplier result = quantize_multiplier(real);
  if (result.shift > 0) refuse("the output's scale is too small for those of the inputs");
  return result;
}

void check_dtypes(const Lowering& lowering, const ir::Node& node) {
  const ir::DType dtype = lowering.type(node.results[0]).dtype;
  if (!is_8_bit(dtype) || lowering.type(node.operands[kRhs]).dtype != dtype ||
      lowering.type(node.operands[kLhs]).dtype != dtype) {
    refuse("the kernel takes inputs and output of one dtype, int8 or uint8");
  }
}

// What stands in the plan; the other contract's fields are 0.
struct Scaling {
  int32_t left_shift = 0;  // tfl2: this and the multipliers
  QuantizedMultiplier multiplier1 = {}, multiplier2 = {}, output_multiplier = {};
  float scale1 = 0.0f, scale2 = 0.0f, output_scale = 0.0f;  // f32e
};

Scaling tfl2_scaling(double scale1, double scale2, double output_scale) {
  const double twice_max_scale = 2.0 * std::max(scale1, scale2);
  Scaling scaling;
  scaling.left_shift = kLeftShift;
  scaling.multiplier1 = smaller_than_one(scale1 / twice_max_scale);
  scaling.multiplier2 = smaller_than_one(scale2 / twice_max_scale);
  scaling.output_multiplier =
      smaller_than_one(twice_max_scale / (static_cast<double>(1 << kLeftShift) * output_scale));
  return scaling;
}

Scaling read_scaling(const Lowering& lowering, const ir::Node& node, format::Contract contract) {
  Scaling scaling;
  scaling.scale1 = lowering.scale(node.operands[kLhsScale], "the left scale");
  scaling.scale2 = lowering.scale(node.operands[kRhsScale], "the right scale");
  scaling.output_scale = lowering.scale(node.operands[kOutputScale], "the output's scale");
  if (contract == format::Contract_F32E) return scaling;
  return tfl2_scaling(static_cast<double>(scaling.scale1), static_cast<double>(scaling.scale2),
                      static_cast<double>(scaling.output_scale));
}

void lower_sum(Lowering& lowering, const Chain& chain, KernelId kernel) {
  const ir::Node& node = lowering.node(chain.front());
  check_dtypes(lowering, node);
  const format::Contract contract = contract_of(node, {format::Contract_TFL2, format::Contract_F32E});
  const Clamp clamp = chain_clamp(lowering, chain);
  const Scaling scaling = read_scaling(lowering, node, contract);
  const int32_t zero_point1 = lowering.zero_point(node.operands[kLhsZeroPoint], "the left zero point");
  const int32_t zero_point2 = lowering.zero_point(node.operands[kRhsZeroPoint], "the right zero point");
  const int32_t output_zero_point =
      lowering.zero_point(node.operands[kOutputZeroPoint], "the output's zero point");

  // For profiles that have vector kernels: the reference has no use for it.
  SumConstants form;
  if (contract == format::Contract_TFL2 && lowering.profile().isas.size() > 1) {
    SumRequantization sum;
    sum.subtract = kernel == kKernel_sub;
    sum.dtype_min = static_cast<int32_t>(lowering.type(node.results[0]).dtype.min());
    sum.left_shift = scaling.left_shift;
    sum.zero_point1 = zero_point1;
    sum.zero_point2 = zero_point2;
    sum.output_zero_point = output_zero_point;
    sum.multiplier1 = scaling.multiplier1;
    sum.multiplier2 = scaling.multiplier2;
    sum.output_multiplier = scaling.output_multiplier;
    sum.clamp_min = clamp.min;
    sum.clamp_max = clamp.max;
    form = lowering.sum_proofs().prove(sum).value_or(SumConstants{});
  }

  ProgramStep step = make_step(kernel, node);
  step.inputs = {lowering.tensor(node.operands[kLhs]), lowering.tensor(node.operands[kRhs])};
  step.outputs = {lowering.define(chain_result(lowering, chain))};
  step.params = AddParams{
      .contract = contract,
      .left_shift = scaling.left_shift,
      .input1_zero_point = zero_point1,
      .input1_multiplier = scaling.multiplier1.multiplier,
      .input1_shift = scaling.multiplier1.shift,
      .input2_zero_point = zero_point2,
      .input2_multiplier = scaling.multiplier2.multiplier,
      .input2_shift = scaling.multiplier2.shift,
      .output_zero_point = output_zero_point,
      .output_multiplier = scaling.output_multiplier.multiplier,
      .output_shift = scaling.output_multiplier.shift,
      .clamp_min = clamp.min,
      .clamp_max = clamp.max,
      .input1_scale = scaling.scale1,
      .input2_scale = scaling.scale2,
      .output_scale = scaling.output_scale,
      .float_scale1 = form.scale1,
      .float_scale2 = form.scale2,
      .float_offset = form.offset,
  };
  lowering.add_step(std::move(step));
}

}  // namespace

Chain match_add(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.add") ? with_clip(lowering, node) : Chain{};
}
void lower_add(Lowering& lowering, const Chain& chain) { lower_sum(lowering, chain, kKernel_add); }

Chain match_subtract(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.subtract") ? with_clip(lowering, node) : Chain{};
}
void lower_subtract(Lowering& lowering, const Chain& chain) { lower_sum(lowering, chain, kKernel_sub); }

}  // namespace qplan::target::cpu
