// Functions of one 8-bit value, and compositions of them: family lut8. The table is what the operators' own
// arithmetic gives for each of the 256 values.
#include "kernels/logistic/logistic.h"
#include "kernels/numeric/exp.h"
#include "kernels/numeric/requantize.h"
#include "kernels/numeric/saturate.h"
#include "src/packer/target/cpu/requantization.h"
#include "src/packer/target/cpu/table.h"

namespace qplan::target::cpu {
namespace {

bool is_unary(const Lowering& lowering, uint32_t index) {
  // operator list: each has an apply function below
  if (!lowering.is(index, "qnn.requantize") && !lowering.is(index, "qnn.sigmoid") &&
      !lowering.is(index, "qnn.lookup") && !lowering.is(index, "clip")) {
    return false;
  }
  const ir::Node& node = lowering.node(index);
  return is_8_bit(lowering.type(node.operands[0]).dtype) && is_8_bit(lowering.type(node.results[0]).dtype);
}

// Values of a table are kept as the integers they stand for.
using UnaryTable = std::vector<int32_t>;

void apply_clip(const Lowering& lowering, const ir::Node& node, UnaryTable* table) {
  const Clamp clamp = clip_clamp(node, lowering.type(node.results[0]).dtype);
  for (int32_t& value : *table) value = value < clamp.min ? clamp.min : value > clamp.max ? clamp.max : value;
}

struct UnaryScales {
  float input;
  int32_t input_zero_point;
  float output;
  int32_t output_zero_point;
};

UnaryScales read_unary_scales(const Lowering& lowering, const ir::Node& node) {
  return {lowering.scale(node.operands[unary::kInputScale], "the input's scale"),
          lowering.zero_point(node.operands[unary::kInputZeroPoint], "the input's zero point"),
          lowering.scale(node.operands[unary::kOutputScale], "the output's scale"),
          lowering.zero_point(node.operands[unary::kOutputZeroPoint], "the output's zero point")};
}

// f32e: the real number that the value stands for, the function of it, rounded to float32, and that
// quantised.
template <typename Function>
void apply_f32e(const UnaryScales& scales, Clamp clamp, Function function, UnaryTable* table) {
  for (int32_t& value : *table) {
    const float real = static_cast<float>(value - scales.input_zero_point) * scales.input;
    value = quantize_f32e(function(real) / scales.output, scales.output_zero_point, clamp.min, clamp.max);
  }
}

void apply_requantize(const Lowering& lowering, const ir::Node& node, UnaryTable* table) {
  const format::Contract contract =
      contract_of(node, {format::Contract_TFL2, format::Contract_TFL1, format::Contract_F32E});
  const Clamp clamp = full_clamp(lowering.type(node.results[0]).dtype);
  const UnaryScales scales = read_unary_scales(lowering, node);
  if (contract == format::Contract_F32E) {
    return apply_f32e(
        scales, clamp, [](float real) { return real; }, table);
  }
  const QuantizedMultiplier multiplier = rescale(contract, scales.input, scales.output).quantized;
  for (int32_t& value : *table) {
    const int32_t centered = value - scales.input_zero_point;
    const int32_t scaled = contract == format::Contract_TFL1
                               ? requantize_tfl1(centered, multiplier.multiplier, multiplier.shift)
                               : requantize_tfl2(centered, multiplier.multiplier, multiplier.shift);
    value = add_clamp(scaled, scales.output_zero_point, clamp.min, clamp.max);
  }
}

void apply_sigmoid(const Lowering& lowering, const ir::Node& node, UnaryTable* table) {
  const format::Contract contract = contract_of(node, {format::Contract_TFL2, format::Contract_F32E});
  const ir::DType dtype = lowering.type(node.results[0]).dtype;
  const UnaryScales scales = read_unary_scales(lowering, node);
  if (contract == format::Contract_F32E) {
    const auto logistic = [](float real) {
      return static_cast<float>(1.0 / (1.0 + exp_double(-static_cast<double>(real))));
    };
    return apply_f32e(scales, full_clamp(dtype), logistic, table);
  }
  if (scales.output != 1.0f / 256.0f || scales.output_zero_point != dtype.min()) {
    refuse("its output must have scale 1/256 and zero point " + std::to_string(dtype.min()));
  }
  for (int32_t& value : *table) {
    value = dtype == ir::kInt8
                ? int32_t{logistic_s8(static_cast<int8_t>(value), scales.input, scales.input_zero_point)}
                : int32_t{logistic_u8(static_cast<uint8_t>(value), scales.input, scales.input_zero_point)};
  }
}

// The integer that a byte stands for.
int32_t byte_value(ir::DType dtype, uint8_t byte) {
  return dtype == ir::kInt8 ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte};
}

void apply_lookup(const Lowering& lowering, const ir::Node& node, UnaryTable* table) {
  const ir::Constant& entries = lowering.constant(node.operands[1], "the table");
  if (!is_8_bit(entries.type().dtype) || entries.type().num_elements() != 256) {
    refuse("its table is " + ir::to_string(entries.type()) + ", expected 256 values of 8 bits");
  }
  for (int32_t& value : *table) {
    value = byte_value(entries.type().dtype, entries.bytes()[static_cast<uint8_t>(value)]);
  }
}

// The values that the bytes 0 to 255 stand for.
UnaryTable identity(ir::DType dtype) {
  UnaryTable table(256);
  for (int32_t byte = 0; byte < 256; ++byte) {
    table[static_cast<size_t>(byte)] = byte_value(dtype, static_cast<uint8_t>(byte));
  }
  return table;
}

// What the node sequence makes of them.
UnaryTable composed(const Lowering& lowering, const NodeSequence& sequence) {
  UnaryTable table = identity(lowering.type(lowering.node(sequence.front()).operands[0]).dtype);
  for (const uint32_t index : sequence) {
    const ir::Node& node = lowering.node(index);
    if (node.op->name == "clip") {
      apply_clip(lowering, node, &table);
    } else if (node.op->name == "qnn.requantize") {
      apply_requantize(lowering, node, &table);
    } else if (node.op->name == "qnn.lookup") {
      apply_lookup(lowering, node, &table);
    } else {
      apply_sigmoid(lowering, node, &table);
    }
  }
  return table;
}

NodeSequence match_unary_chain(const Lowering& lowering, uint32_t node) {
  NodeSequence sequence;
  while (node != Lowering::kNoNode && is_unary(lowering, node)) {
    sequence.push_back(node);
    node = lowering.only_user(node);
  }
  return sequence;
}

std::vector<Constraint> constraints_of_unary_chain() {
  return {{"cpu.unary.values",
           "scales, zero points and tables are constants, and each operator's contract has a rule for it",
           kNothingToChange, [](const Matched& match) {
             return refusal_of([&] { (void)composed(match.lowering, match.sequence); });
           }}};
}

void lower_unary_chain(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& first = lowering.node(sequence.front());
  const UnaryTable table = composed(lowering, sequence);
  std::vector<uint8_t> bytes;
  for (const int32_t value : table) bytes.push_back(static_cast<uint8_t>(value));

  const ir::ValueId result = sequence_result(lowering, sequence);
  ProgramStep step = make_step(kKernel_lut8, first);
  const TensorId table_tensor = lowering.add_constant(
      {lowering.type(result).dtype, {256}}, std::make_shared<const std::vector<uint8_t>>(std::move(bytes)),
      first.name + "/table");
  step.inputs = {lowering.tensor(first.operands[0]), table_tensor};
  step.outputs = {lowering.define(result)};
  step.params = Lut8Params{};
  lowering.add_step(std::move(step));
}

}  // namespace

std::vector<TableRow> unary_chain_rows() {
  return {{"unary_chain", match_unary_chain, constraints_of_unary_chain(), lower_unary_chain}};
}

}  // namespace qplan::target::cpu
