// qnn.mean, argmax: families mean and arg_max.
#include "src/packer/ir/cat.h"
#include "src/packer/layer/operands.h"
#include "src/packer/op/shape.h"
#include "src/packer/target/cpu/requantization.h"
#include "src/packer/target/cpu/table.h"

namespace qplan::target::cpu {
namespace {

constexpr std::initializer_list<format::Contract> kMeanContracts = {format::Contract_TFL2,
                                                                    format::Contract_F32E};

struct ReducedAxes {
  uint32_t mask = 0;   // bit i: axis i is reduced
  uint64_t count = 1;  // elements that become one
};

ReducedAxes reduced_axes(const Lowering& lowering, const ir::Node& node) {
  const ir::Shape& shape = lowering.type(node.operands[unary::kData]).shape;
  ReducedAxes axes;
  for (const int64_t axis : op::normalized_axes(op::attr_ints(node, "axis"), shape.size())) {
    axes.mask |= uint32_t{1} << axis;
    axes.count *= static_cast<uint64_t>(shape[static_cast<size_t>(axis)]);
  }
  return axes;
}

// Under another contract than f32e with multiplier and shift.
MeanParams mean_params(const Lowering& lowering, const ir::Node& node, format::Contract contract) {
  const ReducedAxes axes = reduced_axes(lowering, node);
  MeanParams params = {.contract = contract,
                       .axes = axes.mask,
                       .input_zero_point = lowering.zero_point(node.operands[unary::kInputZeroPoint],
                                                               "the input's zero point"),
                       .output_zero_point = lowering.zero_point(node.operands[unary::kOutputZeroPoint],
                                                                "the output's zero point")};
  const float input_scale = lowering.scale(node.operands[unary::kInputScale], "the input's scale");
  const float output_scale = lowering.scale(node.operands[unary::kOutputScale], "the output's scale");
  if (contract == format::Contract_F32E) {
    params.scale = input_scale / (output_scale * static_cast<float>(axes.count));
    return params;
  }
  const QuantizedMultiplier multiplier = layer::mean_multiplier(input_scale, output_scale, axes.count);
  params.output_multiplier = multiplier.multiplier;
  params.output_shift = multiplier.shift;
  return params;
}

void check_mean(const Matched& match) {
  const ir::Node& node = *node_of(match);
  const bool is_f32e = op::attr_string(node, "contract") == contract_name(format::Contract_F32E);
  (void)mean_params(match.lowering, node, is_f32e ? format::Contract_F32E : format::Contract_TFL2);
}

NodeSequence match_mean(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.mean") ? NodeSequence{node} : NodeSequence{};
}

std::vector<Constraint> constraints_of_mean() {
  return {contract_among("cpu.mean.", kMeanContracts), scales_are_constants("cpu.mean.", check_mean)};
}

void lower_mean(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const MeanParams params = mean_params(lowering, node, contract_of(node, kMeanContracts));
  ProgramStep step = make_step(kKernel_mean, node);
  step.inputs = {lowering.tensor(node.operands[unary::kData])};
  step.outputs = {lowering.define(node.results[0])};
  step.params = params;
  lowering.add_step(std::move(step));
}

NodeSequence match_arg_max(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "argmax") ? NodeSequence{node} : NodeSequence{};
}

std::vector<Constraint> constraints_of_arg_max() {
  return {{"cpu.argmax.dtype", "the input is int8, uint8 or float32", kQuantizeTo8Bits,
           [](const Matched& match) -> std::string {
             const ir::DType dtype = match.lowering.type(node_of(match)->operands[0]).dtype;
             if (is_8_bit(dtype) || dtype == ir::kFloat32) return "";
             return cat("its dtype is ", dtype, ", expected int8, uint8 or float32");
           }}};
}

void lower_arg_max(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const size_t rank = lowering.type(node.operands[0]).shape.size();
  ProgramStep step = make_step(kKernel_arg_max, node);
  step.inputs = {lowering.tensor(node.operands[0])};
  step.outputs = {lowering.define(node.results[0])};
  step.params =
      ArgMaxParams{.axis = static_cast<uint32_t>(op::normalized_axis(op::attr_int(node, "axis"), rank))};
  lowering.add_step(std::move(step));
}

}  // namespace

std::vector<TableRow> reduce_rows() {
  return {{"mean", match_mean, constraints_of_mean(), lower_mean},
          {"arg_max", match_arg_max, constraints_of_arg_max(), lower_arg_max}};
}

}  // namespace qplan::target::cpu
