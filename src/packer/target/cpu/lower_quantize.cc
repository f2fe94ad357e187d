// qnn.quantize, qnn.dequantize, and qnn.requantize of an int32 tensor, accumulators that are the result of a
// step among them: families quantize, dequantize and requantize.
#include "src/packer/ir/cat.h"
#include "src/packer/target/cpu/requantization.h"
#include "src/packer/target/cpu/table.h"

namespace qplan::target::cpu {
namespace {

constexpr std::initializer_list<format::Contract> kCastContracts = {
    format::Contract_TFL2, format::Contract_TFL1, format::Contract_F32E};

// The attribute names a rule where the source's differs from its contract's (PyTorch).
format::QuantizeRule quantize_rule(const ir::Node& node) {
  const std::string& rule = op::attr_string(node, "rule");
  if (rule == "div_away") return format::QuantizeRule_DIV_AWAY;
  if (rule == "div_even") return format::QuantizeRule_DIV_EVEN;
  if (rule == "mul_even") return format::QuantizeRule_MUL_EVEN;
  if (!rule.empty()) {
    refuse("rounding rule '" + rule + "' is not known, expected 'div_away', 'div_even' or 'mul_even'");
  }
  return contract_of(node, kCastContracts) == format::Contract_F32E ? format::QuantizeRule_DIV_EVEN
                                                                    : format::QuantizeRule_DIV_AWAY;
}

Constraint known_rule(const std::string& prefix) {
  return {prefix + "rule", "the rounding rule is `div_away`, `div_even` or `mul_even`, or the contract's",
          kNothingToChange, [](const Matched& match) -> std::string {
            const ir::Node& node = *node_of(match);
            if (op::attr_string(node, "rule").empty()) return "";
            return refusal_of([&] { quantize_rule(node); });
          }};
}

void check_cast(const Matched& match) {
  const ir::Node& node = *node_of(match);
  (void)match.lowering.scale(node.operands[cast::kScale], "the scale");
  (void)match.lowering.zero_point(node.operands[cast::kZeroPoint], "the zero point");
}

// One entry per channel: multiplier and shift, or scale.
void append_multipliers(Lowering& lowering, const std::string& name, const AccumulatorScales& scales,
                        std::vector<TensorId>* inputs) {
  if (!scales.scale.empty()) {
    inputs->push_back(add_values<float>(lowering, ir::kFloat32, scales.scale, name + "/scale"));
    return;
  }
  std::vector<int32_t> multiplier, shift;
  for (const QuantizedMultiplier& quantized : scales.quantized) {
    multiplier.push_back(quantized.multiplier);
    shift.push_back(quantized.shift);
  }
  inputs->push_back(add_values<int32_t>(lowering, ir::kInt32, multiplier, name + "/multiplier"));
  inputs->push_back(add_values<int32_t>(lowering, ir::kInt32, shift, name + "/shift"));
}

void check_requantize(const Matched& match) {
  const ir::Node& node = *node_of(match);
  (void)match.lowering.zero_point(node.operands[unary::kInputZeroPoint], "the input's zero point");
  (void)match.lowering.zero_point(node.operands[unary::kOutputZeroPoint], "the output's zero point");
  const bool is_f32e = op::attr_string(node, "contract") == contract_name(format::Contract_F32E);
  (void)accumulator_scales(match.lowering, node, is_f32e ? format::Contract_F32E : format::Contract_TFL2);
}

// Whether a transpose brings axis 1 to the end, where its operand has another shape than its result: by their
// shapes the step says that it moves channels.
bool moves_channels_last(const Lowering& lowering, const ir::Node& transpose) {
  const std::vector<int64_t>& axes = op::attr_ints(transpose, "axes");
  bool moves = axes.size() >= 3 && axes.front() == 0 && axes.back() == 1;
  for (size_t i = 1; i + 1 < axes.size(); ++i) moves = moves && axes[i] == static_cast<int64_t>(i) + 1;
  return moves && lowering.type(transpose.operands[0]).shape != lowering.type(transpose.results[0]).shape;
}

// With the transpose of a source's NCHW input, which the kernel does in the same pass.
NodeSequence match_quantize(const Lowering& lowering, uint32_t node) {
  if (!lowering.is(node, "qnn.quantize")) return {};
  const uint32_t user = lowering.only_user(node);
  if (!lowering.is(user, "transpose") || !moves_channels_last(lowering, lowering.node(user))) return {node};
  return {node, user};
}

std::vector<Constraint> constraints_of_quantize() {
  const std::string prefix = "cpu.quantize.";
  return {contract_among(prefix, kCastContracts), known_rule(prefix), result_is_quantized(prefix),
          scales_are_constants(prefix, check_cast)};
}

void lower_quantize(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  ProgramStep step = make_step(kKernel_quantize, node);
  step.inputs = {lowering.tensor(node.operands[cast::kData])};
  step.outputs = {lowering.define(sequence_result(lowering, sequence))};
  step.params =
      QuantizeParams{.rule = quantize_rule(node),
                     .scale = lowering.scale(node.operands[cast::kScale], "the scale"),
                     .zero_point = lowering.zero_point(node.operands[cast::kZeroPoint], "the zero point")};
  lowering.add_step(std::move(step));
}

NodeSequence match_dequantize(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.dequantize") ? NodeSequence{node} : NodeSequence{};
}

std::vector<Constraint> constraints_of_dequantize() {
  const std::string prefix = "cpu.dequantize.";
  return {operand_is_quantized(prefix, cast::kData), scales_are_constants(prefix, check_cast)};
}

void lower_dequantize(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  ProgramStep step = make_step(kKernel_dequantize, node);
  step.inputs = {lowering.tensor(node.operands[cast::kData])};
  step.outputs = {lowering.define(node.results[0])};
  step.params =
      DequantizeParams{.scale = lowering.scale(node.operands[cast::kScale], "the scale"),
                       .zero_point = lowering.zero_point(node.operands[cast::kZeroPoint], "the zero point")};
  lowering.add_step(std::move(step));
}

NodeSequence match_requantize(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.requantize") ? with_clip(lowering, node) : NodeSequence{};
}

std::vector<Constraint> constraints_of_requantize() {
  const std::string prefix = "cpu.requantize.";
  return {contract_among(prefix, kCastContracts),
          {prefix + "dtype", "the output is int8, uint8 or int16, or int32 under `tfl2`", kQuantizeTo8Bits,
           [](const Matched& match) -> std::string {
             const ir::Node& node = *node_of(match);
             const ir::DType dtype = match.lowering.type(node.results[0]).dtype;
             const bool is_wide = dtype == ir::kInt32 && op::attr_string(node, "contract") == "tfl2";
             return is_quantized(dtype) || is_wide
                        ? ""
                        : cat("its dtype is ", dtype, ", expected int8, uint8 or int16");
           }},
          int16_contract(prefix),
          {prefix + "input", "the input is int8, uint8, int16 or int32", kQuantizeTo8Bits,
           [](const Matched& match) -> std::string {
             const ir::DType dtype = match.lowering.type(node_of(match)->operands[unary::kData]).dtype;
             if (is_quantized(dtype) || dtype == ir::kInt32) return "";
             return cat("its dtype is ", dtype, ", expected int8, uint8, int16 or int32");
           }},
          scales_are_constants(prefix, check_requantize)};
}

void lower_requantize(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const format::Contract contract = contract_of(node, kCastContracts);
  const Clamp clamp = sequence_clamp(lowering, sequence);
  const AccumulatorScales scales = accumulator_scales(lowering, node, contract);
  const bool is_f32e = contract == format::Contract_F32E;
  RequantizeParams params = {.contract = contract,
                             .input_zero_point = lowering.zero_point(node.operands[unary::kInputZeroPoint],
                                                                     "the input's zero point"),
                             .output_zero_point = lowering.zero_point(node.operands[unary::kOutputZeroPoint],
                                                                      "the output's zero point"),
                             .clamp_min = clamp.min,
                             .clamp_max = clamp.max,
                             .float_epilogues = {}};
  if (lowering.type(node.results[0]).dtype != ir::kInt32)
    params.float_epilogues = prove_float_epilogues(lowering, node, scales, clamp, contract);

  ProgramStep step = make_step(kKernel_requantize, node);
  step.inputs = {lowering.tensor(node.operands[unary::kData])};
  // One multiplier for all is a parameter, more are constants.
  if ((is_f32e ? scales.scale.size() : scales.quantized.size()) != 1) {
    params.axis = scales.axis;
    append_multipliers(lowering, node.name, scales, &step.inputs);
  } else if (is_f32e) {
    params.scale = scales.scale.front();
  } else {
    params.multiplier = scales.quantized.front().multiplier;
    params.shift = scales.quantized.front().shift;
  }
  step.outputs = {lowering.define(sequence_result(lowering, sequence))};
  step.params = std::move(params);
  lowering.add_step(std::move(step));
}

}  // namespace

std::vector<TableRow> quantize_rows() {
  return {{"requantize", match_requantize, constraints_of_requantize(), lower_requantize},
          {"quantize", match_quantize, constraints_of_quantize(), lower_quantize},
          {"dequantize", match_dequantize, constraints_of_dequantize(), lower_dequantize}};
}

}  // namespace qplan::target::cpu
