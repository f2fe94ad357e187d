// qnn.quantize, qnn.dequantize, and qnn.requantize of an int32 tensor, accumulators that are the result of a
// step among them, a clip of int16: families quantize, dequantize and requantize.
#include <algorithm>
#include <numeric>
#include <string_view>

#include "src/packer/ir/cat.h"
#include "src/packer/target/cpu/lowering.h"

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
            const ir::Node& node = *node_of(match, "qnn.quantize");
            if (op::attr_string(node, "rule").empty()) return "";
            return refusal_of([&] { quantize_rule(node); });
          }};
}

void check_cast(const Matched& match) {
  const ir::Node* quantize = node_of(match, "qnn.quantize");
  const ir::Node& node = quantize != nullptr ? *quantize : *node_of(match, "qnn.dequantize");
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

// Whether a transpose, or a reshape of one channel, brings axis 1 of `planes` to the end of `last` (to_last),
// or the last axis of `last` to axis 1 of `planes`. Equal shapes do not: a step says by its shapes that it
// moves channels.
bool moves_channels(const ir::Node& node, const ir::Shape& planes, const ir::Shape& last, bool to_last) {
  const size_t rank = planes.size();
  if (rank < 3 || last.size() != rank || planes == last) return false;
  ir::Shape moved = planes;
  std::rotate(moved.begin() + 1, moved.begin() + 2, moved.end());
  if (moved != last) return false;
  if (node.op->name == "reshape") return planes[1] == 1;
  ir::Ints axes(rank);
  std::iota(axes.begin(), axes.end(), int64_t{0});
  std::rotate(axes.begin() + 1, to_last ? axes.begin() + 2 : axes.end() - 1, axes.end());
  return op::attr_ints(node, "axes") == axes;
}

// The conversion, and the transpose (or the reshape of one channel) that the kernel does in the same pass:
// the passes leave it before or after the conversion. to_last: from the planes of a source's NCHW input; else
// to those of an output.
NodeSequence with_order(const Lowering& lowering, uint32_t node, std::string_view conversion, bool to_last) {
  const auto is_order = [&](uint32_t index) {
    if (!lowering.is(index, "transpose") && !lowering.is(index, "reshape")) return false;
    const ir::Shape& from = lowering.type(lowering.node(index).operands[0]).shape;
    const ir::Shape& to = lowering.type(lowering.node(index).results[0]).shape;
    return moves_channels(lowering.node(index), to_last ? from : to, to_last ? to : from, to_last);
  };
  const bool begins = lowering.is(node, conversion);
  if (!begins && !is_order(node)) return {};
  const uint32_t user = lowering.only_user(node);
  if (begins ? is_order(user) : lowering.is(user, conversion)) return {node, user};
  return begins ? NodeSequence{node} : NodeSequence{};
}

const ir::Node& conversion_of(const Lowering& lowering, const NodeSequence& sequence, std::string_view name) {
  return lowering.node(lowering.is(sequence.front(), name) ? sequence.front() : sequence.back());
}

NodeSequence match_quantize(const Lowering& lowering, uint32_t node) {
  return with_order(lowering, node, "qnn.quantize", /*to_last=*/true);
}

std::vector<Constraint> constraints_of_quantize() {
  const std::string prefix = "cpu.quantize.";
  return {contract_among(prefix, kCastContracts, "qnn.quantize"), known_rule(prefix),
          result_is_quantized(prefix), scales_are_constants(prefix, check_cast)};
}

void lower_quantize(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = conversion_of(lowering, sequence, "qnn.quantize");
  ProgramStep step = make_step(kKernel_quantize, node);
  step.inputs = {lowering.tensor(lowering.node(sequence.front()).operands[cast::kData])};
  step.outputs = {lowering.define(sequence_result(lowering, sequence))};
  step.params =
      QuantizeParams{.rule = quantize_rule(node),
                     .scale = lowering.scale(node.operands[cast::kScale], "the scale"),
                     .zero_point = lowering.zero_point(node.operands[cast::kZeroPoint], "the zero point")};
  lowering.add_step(std::move(step));
}

NodeSequence match_dequantize(const Lowering& lowering, uint32_t node) {
  return with_order(lowering, node, "qnn.dequantize", /*to_last=*/false);
}

std::vector<Constraint> constraints_of_dequantize() {
  const std::string prefix = "cpu.dequantize.";
  return {operand_is_quantized(prefix, cast::kData), scales_are_constants(prefix, check_cast)};
}

void lower_dequantize(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = conversion_of(lowering, sequence, "qnn.dequantize");
  ProgramStep step = make_step(kKernel_dequantize, node);
  step.inputs = {lowering.tensor(lowering.node(sequence.front()).operands[cast::kData])};
  step.outputs = {lowering.define(sequence_result(lowering, sequence))};
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

// Clamps that no other step takes along; those of 8 bits are tables. A requantisation by 1: 2^30 * 2^(1 -
// 31).
NodeSequence match_clip_of_int16(const Lowering& lowering, uint32_t node) {
  const bool matches =
      lowering.is(node, "clip") && lowering.type(lowering.node(node).results[0]).dtype == ir::kInt16;
  return matches ? NodeSequence{node} : NodeSequence{};
}

void lower_clip_of_int16(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const Clamp clamp = clip_clamp(node, ir::kInt16);
  add_unary_step(lowering, kKernel_requantize, node,
                 RequantizeParams{.contract = format::Contract_TFL2,
                                  .multiplier = 1 << 30,
                                  .shift = 1,
                                  .clamp_min = clamp.min,
                                  .clamp_max = clamp.max,
                                  .float_epilogues = {}});
}

}  // namespace

std::vector<TableRow> quantize_rows() {
  // operator list: each row has the functions of its operators
  return {{"clip_of_int16", match_clip_of_int16, {}, lower_clip_of_int16},
          {"requantize", match_requantize, constraints_of_requantize(), lower_requantize},
          {"quantize", match_quantize, constraints_of_quantize(), lower_quantize},
          {"dequantize", match_dequantize, constraints_of_dequantize(), lower_dequantize}};
}

}  // namespace qplan::target::cpu
