// Functions of one 8-bit value, and compositions of them: family lut8. The table is what the operators' own
// arithmetic gives for each of the 256 values.
#include "kernels/elementwise/elementwise.h"
#include "kernels/numeric/float_functions.h"
#include "kernels/numeric/requantize.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/requantize_bytes.h"
#include "src/packer/target/cpu/lowering.h"

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
  if (op::requantizes_in_float(node)) {
    const op::ByteQuantization from{lowering.type(node.operands[0]).dtype, scales.input,
                                    scales.input_zero_point},
        to{lowering.type(node.results[0]).dtype, scales.output, scales.output_zero_point};
    const op::ByteTable entries = op::requantized_in_float(from, to);
    for (int32_t& value : *table) value = entries[static_cast<uint8_t>(value)];
    return;
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

// ---- logistic and tanh of int16: family lut16 ----

// TFLite's table of 2^16 / (1 + exp(-i / 24)), i < 256: rounded to the nearest, but one above that where a
// bit is set.
constexpr uint32_t kOneAbove[] = {0xfa7bd110, 0xc0467bae, 0x20440005, 0x00110090, 0x80, 0, 0, 0x80000000};

std::vector<int32_t> logistic_table() {
  std::vector<int32_t> table(Lut16Args::kTableEntries);
  for (uint32_t i = 0; i < table.size(); ++i) {
    const double value = 65536.0 / (1.0 + exp_double(-static_cast<double>(i) / 24.0));
    table[i] = static_cast<int32_t>(value + 0.5) + static_cast<int32_t>(kOneAbove[i / 32] >> (i % 32) & 1);
  }
  return table;
}

// Whether TFLite takes the scale for this power of two, within 0.07 %.
bool is_nearly(float scale, double power) {
  const double ratio = static_cast<double>(scale) / power;
  return ratio > 0.99930709 && ratio < 1.00069339;
}

// The input in units of 1 / (3 * 2^12).
Lut16Params lut16_params(const Lowering& lowering, const ir::Node& node) {
  const UnaryScales scales = read_unary_scales(lowering, node);
  if (!is_nearly(scales.output, 1.0 / 32768) || scales.input_zero_point != 0 || scales.output_zero_point != 0)
    refuse("its output must have scale 1/32768, and both zero points must be 0");
  Lut16Params params = {.is_tanh = node.op->name == "qnn.tanh"};
  if (is_nearly(scales.input, 1.0 / 4096) || is_nearly(scales.input, 1.0 / 2048)) {
    params.multiplier = is_nearly(scales.input, 1.0 / 4096) ? 3 : 6;
    return params;
  }
  double multiplier = static_cast<double>(scales.input) * 4096.0 * 3.0;
  while (multiplier <= 32767.0 / 2.0 && params.shift <= 30) {
    ++params.shift;
    multiplier *= 2.0;
  }
  if (multiplier >= 32768.0 || params.shift > 30) refuse("its input's scale is not in [2^-29, 8/3)");
  params.multiplier = static_cast<int32_t>(multiplier);
  return params;
}

NodeSequence match_lut16(const Lowering& lowering, uint32_t node) {
  // operator list: both are functions of the same table
  if (!lowering.is(node, "qnn.sigmoid") && !lowering.is(node, "qnn.tanh")) return {};
  return NodeSequence{node};
}

std::vector<Constraint> constraints_of_lut16() {
  const std::string prefix = "cpu.lut16.";
  return {{prefix + "dtype", "the input is int16", kNothingToChange,
           [](const Matched& match) -> std::string {
             const ir::DType dtype = match.lowering.type(node_of(match)->operands[0]).dtype;
             return dtype == ir::kInt16 ? "" : cat("its dtype is ", dtype, ", expected int16");
           }},
          contract_among(prefix, {format::Contract_TFL2}),
          scales_are_constants(
              prefix, [](const Matched& match) { (void)lut16_params(match.lowering, *node_of(match)); })};
}

void lower_lut16(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  ProgramStep step = make_step(kKernel_lut16, node);
  step.params = lut16_params(lowering, node);
  step.inputs = {lowering.tensor(node.operands[unary::kData]),
                 add_values<int32_t>(lowering, ir::kInt32, logistic_table(), node.name + "/table")};
  step.outputs = {lowering.define(node.results[0])};
  lowering.add_step(std::move(step));
}

}  // namespace

std::vector<TableRow> unary_chain_rows() {
  return {{"unary_chain", match_unary_chain, constraints_of_unary_chain(), lower_unary_chain},
          {"lut16", match_lut16, constraints_of_lut16(), lower_lut16}};
}

}  // namespace qplan::target::cpu
