// qnn.add, qnn.subtract, qnn.mul: families add, sub and mul; under tfl2 with the parameters that TFLite's
// Prepare computes for 8 bits. maximum, minimum, qnn.squared_difference,
// qnn.prelu, qnn.batch_matmul: the families of these names; qnn.divide: family div.
#include <algorithm>
#include <cmath>

#include "kernels/elementwise/elementwise.h"
#include "kernels/numeric/requantize.h"
#include "src/packer/ir/cat.h"
#include "src/packer/target/cpu/lowering.h"
#include "src/packer/target/cpu/prove.h"

namespace qplan::target::cpu {
namespace {

constexpr std::initializer_list<format::Contract> kBinaryContracts = {format::Contract_TFL2,
                                                                      format::Contract_F32E};
// The sum of int16 tensors whose scales are powers of two has a rule of its own.
constexpr std::initializer_list<format::Contract> kSumContracts = {
    format::Contract_TFL2, format::Contract_F32E, format::Contract_POT};

// Scales and zero points of an operator's two inputs and its output.
struct BinaryOperands {
  int32_t zero_point1 = 0, zero_point2 = 0, output_zero_point = 0;
  float scale1 = 0.0f, scale2 = 0.0f, output_scale = 0.0f;
};

BinaryOperands read_operands(const Lowering& lowering, const ir::Node& node) {
  return {lowering.zero_point(node.operands[binary::kLhsZeroPoint], "the left zero point"),
          lowering.zero_point(node.operands[binary::kRhsZeroPoint], "the right zero point"),
          lowering.zero_point(node.operands[binary::kOutputZeroPoint], "the output's zero point"),
          lowering.scale(node.operands[binary::kLhsScale], "the left scale"),
          lowering.scale(node.operands[binary::kRhsScale], "the right scale"),
          lowering.scale(node.operands[binary::kOutputScale], "the output's scale")};
}

// ---- sums ----

QuantizedMultiplier smaller_than_one(double real) {
  const QuantizedMultiplier result = quantize_multiplier(real);
  if (result.shift > 0) refuse("the output's scale is too small for those of the inputs");
  return result;
}

// Under tfl2.
struct SumMultipliers {
  int32_t left_shift = 0;
  QuantizedMultiplier input1 = {}, input2 = {}, output = {};
};

SumMultipliers sum_multipliers(const BinaryOperands& operands, int32_t left_shift) {
  const auto scale1 = static_cast<double>(operands.scale1), scale2 = static_cast<double>(operands.scale2);
  const double twice_max_scale = 2.0 * std::max(scale1, scale2);
  SumMultipliers result;
  result.left_shift = left_shift;
  result.input1 = smaller_than_one(scale1 / twice_max_scale);
  result.input2 = smaller_than_one(scale2 / twice_max_scale);
  result.output = smaller_than_one(
      twice_max_scale / (static_cast<double>(1 << left_shift) * static_cast<double>(operands.output_scale)));
  return result;
}

// Under pot: the input with the smaller scale is shifted to the right, halves away from zero, the other one
// and the output have one scale. A multiplier of 2^31 - 1 is 1 for numbers of 16 bits.
SumMultipliers shifted_sum(const BinaryOperands& operands) {
  const auto shift = [&](float scale) {
    int exponent = 0;
    const float ratio = std::frexp(scale / operands.output_scale, &exponent);
    // As TFLite, which takes scales for powers of two that nearly are: within 0.07 %.
    const int32_t log2 = ratio > 0.70710678f ? exponent : exponent - 1;
    if (log2 > 0 || log2 < -31) refuse("contract 'pot' takes output scales of 1 to 2^31 times an input's");
    return log2;
  };
  const int32_t shift1 = shift(operands.scale1), shift2 = shift(operands.scale2);
  if (shift1 != 0 && shift2 != 0) refuse("contract 'pot' takes an input of the output's scale");
  return {0, {INT32_MAX, shift1}, {INT32_MAX, shift2}, {INT32_MAX, 0}};
}

SumMultipliers multipliers_of_sum(const Lowering& lowering, const ir::Node& node,
                                  const BinaryOperands& operands) {
  const bool is_16_bit = lowering.type(node.results[0]).dtype == ir::kInt16;
  if (op::attr_string(node, "contract") == contract_name(format::Contract_POT)) return shifted_sum(operands);
  return sum_multipliers(operands, is_16_bit ? layer::kAddLeftShiftInt16 : layer::kAddLeftShift);
}

// For profiles that have vector kernels: the reference has no use for it.
SumConstants float_epilogue_of_sum(Lowering& lowering, const AddParams& params, bool subtract,
                                   ir::DType dtype) {
  if (params.contract != format::Contract_TFL2 || !is_8_bit(dtype) || lowering.profile().isas.size() < 2)
    return {};
  SumRequantization sum;
  sum.subtract = subtract;
  sum.dtype_min = static_cast<int32_t>(dtype.min());
  sum.left_shift = params.left_shift;
  sum.zero_point1 = params.input1_zero_point;
  sum.zero_point2 = params.input2_zero_point;
  sum.output_zero_point = params.output_zero_point;
  sum.multiplier1 = {params.input1_multiplier, params.input1_shift};
  sum.multiplier2 = {params.input2_multiplier, params.input2_shift};
  sum.output_multiplier = {params.output_multiplier, params.output_shift};
  sum.clamp_min = params.clamp_min;
  sum.clamp_max = params.clamp_max;
  return lowering.sum_proofs().prove(sum).value_or(SumConstants{});
}

void lower_sum(Lowering& lowering, const NodeSequence& sequence, KernelId kernel) {
  const ir::Node& node = lowering.node(sequence.front());
  const BinaryOperands operands = read_operands(lowering, node);
  const Clamp clamp = sequence_clamp(lowering, sequence);
  AddParams params = {.contract = contract_of(node, kSumContracts),
                      .input1_zero_point = operands.zero_point1,
                      .input2_zero_point = operands.zero_point2,
                      .output_zero_point = operands.output_zero_point,
                      .clamp_min = clamp.min,
                      .clamp_max = clamp.max};
  if (params.contract == format::Contract_F32E) {
    params.input1_scale = operands.scale1;
    params.input2_scale = operands.scale2;
    params.output_scale = operands.output_scale;
  } else {
    const SumMultipliers multipliers = multipliers_of_sum(lowering, node, operands);
    params.contract = format::Contract_TFL2;  // pot is one of its cases
    params.left_shift = multipliers.left_shift;
    params.input1_multiplier = multipliers.input1.multiplier;
    params.input1_shift = multipliers.input1.shift;
    params.input2_multiplier = multipliers.input2.multiplier;
    params.input2_shift = multipliers.input2.shift;
    params.output_multiplier = multipliers.output.multiplier;
    params.output_shift = multipliers.output.shift;
  }
  const SumConstants form =
      float_epilogue_of_sum(lowering, params, kernel == kKernel_sub, lowering.type(node.results[0]).dtype);
  params.float_scale1 = form.scale1;
  params.float_scale2 = form.scale2;
  params.float_offset = form.offset;

  ProgramStep step = make_step(kernel, node);
  step.inputs = {lowering.tensor(node.operands[binary::kLhs]), lowering.tensor(node.operands[binary::kRhs])};
  step.outputs = {lowering.define(sequence_result(lowering, sequence))};
  step.params = params;
  lowering.add_step(std::move(step));
}

// ---- products ----

QuantizedMultiplier product_multiplier(const BinaryOperands& operands) {
  return layer::product_multiplier(operands.scale1, operands.scale2, operands.output_scale);
}

// ---- conditions ----

// What a contract that computes with multipliers makes of the scales.
template <typename Multipliers>
void check_operands(const Matched& match, const Multipliers& multipliers) {
  const ir::Node& node = *node_of(match);
  const BinaryOperands operands = read_operands(match.lowering, node);
  if (op::attr_string(node, "contract") != contract_name(format::Contract_F32E)) (void)multipliers(operands);
}
void check_sum(const Matched& match) {
  check_operands(match, [&](const BinaryOperands& operands) {
    return multipliers_of_sum(match.lowering, *node_of(match), operands);
  });
}
void check_product(const Matched& match) { check_operands(match, product_multiplier); }

// int16 has the rules of TFLite alone, which have no zero points.
Constraint int16_rules(const std::string& prefix) {
  return {prefix + "int16",
          "int16 tensors have zero points of 0, and `tfl2` or, for sums, `pot` computes them",
          kNothingToChange, [](const Matched& match) -> std::string {
            const ir::Node& node = *node_of(match);
            const std::string& contract = op::attr_string(node, "contract");
            const bool is_16_bit = match.lowering.type(node.results[0]).dtype == ir::kInt16;
            if (!is_16_bit) return contract == "pot" ? "contract 'pot' has a rule for int16 alone" : "";
            if (contract == "f32e") return "contract 'f32e' has no rule for int16";
            return refusal_of([&] {
              const BinaryOperands o = read_operands(match.lowering, node);
              if (o.zero_point1 == 0 && o.zero_point2 == 0 && o.output_zero_point == 0) return;
              refuse("zero points of int16 tensors that are not 0");
            });
          }};
}

std::vector<Constraint> binary_constraints(const std::string& prefix,
                                           std::initializer_list<format::Contract> contracts,
                                           void (*read)(const Matched& match)) {
  return {one_quantized_dtype(prefix), contract_among(prefix, contracts), int16_rules(prefix),
          scales_are_constants(prefix, read)};
}

NodeSequence match_add(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.add") ? with_clip(lowering, node) : NodeSequence{};
}
std::vector<Constraint> constraints_of_add() {
  return binary_constraints("cpu.add.", kSumContracts, check_sum);
}
void lower_add(Lowering& lowering, const NodeSequence& sequence) {
  lower_sum(lowering, sequence, kKernel_add);
}

NodeSequence match_subtract(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.subtract") ? with_clip(lowering, node) : NodeSequence{};
}
std::vector<Constraint> constraints_of_subtract() {
  return binary_constraints("cpu.subtract.", kSumContracts, check_sum);
}
void lower_subtract(Lowering& lowering, const NodeSequence& sequence) {
  lower_sum(lowering, sequence, kKernel_sub);
}

NodeSequence match_mul(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.mul") ? with_clip(lowering, node) : NodeSequence{};
}
std::vector<Constraint> constraints_of_mul() {
  return binary_constraints("cpu.mul.", kBinaryContracts, check_product);
}

void lower_mul(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const BinaryOperands operands = read_operands(lowering, node);
  const Clamp clamp = sequence_clamp(lowering, sequence);
  MulParams params = {.contract = contract_of(node, kBinaryContracts),
                      .input1_zero_point = operands.zero_point1,
                      .input2_zero_point = operands.zero_point2,
                      .output_zero_point = operands.output_zero_point,
                      .clamp_min = clamp.min,
                      .clamp_max = clamp.max};
  if (params.contract == format::Contract_F32E) {
    params.input1_scale = operands.scale1;
    params.input2_scale = operands.scale2;
    params.output_scale = operands.output_scale;
  } else {
    const QuantizedMultiplier multiplier = product_multiplier(operands);
    params.output_multiplier = multiplier.multiplier;
    params.output_shift = multiplier.shift;
  }
  ProgramStep step = make_step(kKernel_mul, node);
  step.inputs = {lowering.tensor(node.operands[binary::kLhs]), lowering.tensor(node.operands[binary::kRhs])};
  step.outputs = {lowering.define(sequence_result(lowering, sequence))};
  step.params = params;
  lowering.add_step(std::move(step));
}

// ---- quotients ----

// float32 throughout, as TFLite's Prepare: docs/numerics/div.md.
QuantizedMultiplier quotient_multiplier(const BinaryOperands& operands) {
  const float real = operands.scale1 / (operands.scale2 * operands.output_scale);
  const QuantizedMultiplier multiplier = quantize_multiplier(static_cast<double>(real));
  if (multiplier.shift > DivArgs::kMaxShift)
    refuse(cat("its scales make a factor of 2^", DivArgs::kMaxShift, " or more between quotient and output"));
  return multiplier;
}
void check_quotient(const Matched& match) { check_operands(match, quotient_multiplier); }

// The operands have one 8-bit dtype.
Constraint of_8_bits(const std::string& prefix) { return operand_is_8_bit(prefix, binary::kLhs); }

NodeSequence match_divide(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.divide") ? with_clip(lowering, node) : NodeSequence{};
}
std::vector<Constraint> constraints_of_divide() {
  const std::string prefix = "cpu.divide.";
  return {of_8_bits(prefix), contract_among(prefix, {format::Contract_TFL2}),
          scales_are_constants(prefix, check_quotient)};
}

void lower_divide(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const BinaryOperands operands = read_operands(lowering, node);
  const Clamp clamp = sequence_clamp(lowering, sequence);
  const QuantizedMultiplier multiplier = quotient_multiplier(operands);
  ProgramStep step = make_step(kKernel_div, node);
  step.inputs = {lowering.tensor(node.operands[binary::kLhs]), lowering.tensor(node.operands[binary::kRhs])};
  step.outputs = {lowering.define(sequence_result(lowering, sequence))};
  step.params = DivParams{.input1_zero_point = operands.zero_point1,
                          .input2_zero_point = operands.zero_point2,
                          .output_zero_point = operands.output_zero_point,
                          .output_multiplier = multiplier.multiplier,
                          .output_shift = multiplier.shift,
                          .clamp_min = clamp.min,
                          .clamp_max = clamp.max};
  lowering.add_step(std::move(step));
}

// ---- squared differences ----

constexpr int32_t kSquareLeftShift = 7;

SumMultipliers square_multipliers(const BinaryOperands& operands) {
  const auto scale1 = static_cast<double>(operands.scale1), scale2 = static_cast<double>(operands.scale2);
  const double twice_max_scale = 2.0 * std::max(scale1, scale2);
  const double shifted =
      static_cast<double>(1 << (2 * kSquareLeftShift)) * static_cast<double>(operands.output_scale);
  return {kSquareLeftShift, smaller_than_one(scale1 / twice_max_scale),
          smaller_than_one(scale2 / twice_max_scale),
          layer::checked_multiplier(twice_max_scale * twice_max_scale / shifted)};
}

void check_square(const Matched& match) { check_operands(match, square_multipliers); }

NodeSequence match_squared_difference(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.squared_difference") ? with_clip(lowering, node) : NodeSequence{};
}

std::vector<Constraint> constraints_of_squared_difference() {
  const std::string prefix = "cpu.squared_difference.";
  return {of_8_bits(prefix), contract_among(prefix, {format::Contract_TFL2}),
          scales_are_constants(prefix, check_square)};
}

void lower_squared_difference(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const BinaryOperands operands = read_operands(lowering, node);
  const Clamp clamp = sequence_clamp(lowering, sequence);
  const SumMultipliers multipliers = square_multipliers(operands);
  ProgramStep step = make_step(kKernel_squared_difference, node);
  step.inputs = {lowering.tensor(node.operands[binary::kLhs]), lowering.tensor(node.operands[binary::kRhs])};
  step.outputs = {lowering.define(sequence_result(lowering, sequence))};
  step.params = AddParams{.contract = format::Contract_TFL2,
                          .left_shift = multipliers.left_shift,
                          .input1_zero_point = operands.zero_point1,
                          .input1_multiplier = multipliers.input1.multiplier,
                          .input1_shift = multipliers.input1.shift,
                          .input2_zero_point = operands.zero_point2,
                          .input2_multiplier = multipliers.input2.multiplier,
                          .input2_shift = multipliers.input2.shift,
                          .output_zero_point = operands.output_zero_point,
                          .output_multiplier = multipliers.output.multiplier,
                          .output_shift = multipliers.output.shift,
                          .clamp_min = clamp.min,
                          .clamp_max = clamp.max};
  lowering.add_step(std::move(step));
}

// ---- prelu ----

// float32 throughout, as TFLite's Prepare: docs/numerics/leaky_relu.md.
struct PreluMultipliers {
  QuantizedMultiplier above, below;
};
PreluMultipliers prelu_multipliers(const BinaryOperands& operands) {
  const float above = operands.scale1 / operands.output_scale;
  return {layer::checked_multiplier(static_cast<double>(above)),
          layer::checked_multiplier(
              static_cast<double>(operands.scale1 * operands.scale2 / operands.output_scale))};
}
void check_prelu(const Matched& match) { check_operands(match, prelu_multipliers); }

NodeSequence match_prelu(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.prelu") ? NodeSequence{node} : NodeSequence{};
}
std::vector<Constraint> constraints_of_prelu() {
  return binary_constraints("cpu.prelu.", {format::Contract_TFL2}, check_prelu);
}

void lower_prelu(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const BinaryOperands operands = read_operands(lowering, node);
  const PreluMultipliers multipliers = prelu_multipliers(operands);
  ProgramStep step = make_step(kKernel_prelu, node);
  step.inputs = {lowering.tensor(node.operands[binary::kLhs]), lowering.tensor(node.operands[binary::kRhs])};
  step.outputs = {lowering.define(node.results[0])};
  step.params = PreluParams{.input_zero_point = operands.zero_point1,
                            .alpha_zero_point = operands.zero_point2,
                            .output_zero_point = operands.output_zero_point,
                            .above_multiplier = multipliers.above.multiplier,
                            .above_shift = multipliers.above.shift,
                            .below_multiplier = multipliers.below.multiplier,
                            .below_shift = multipliers.below.shift};
  lowering.add_step(std::move(step));
}

// ---- matrices ----

// As a fully connected layer with one scale for all weights.
QuantizedMultiplier matmul_multiplier(const BinaryOperands& operands) {
  return layer::checked_multiplier(static_cast<double>(operands.scale1 * operands.scale2) /
                                   static_cast<double>(operands.output_scale));
}
bool is_matmul_f32e(const Lowering& lowering, uint32_t node) {
  return op::attr_string(lowering.node(node), "contract") == contract_name(format::Contract_F32E);
}
// As a fully connected layer, too: the product of the scales, then the quotient, in float32.
float matmul_scale(const BinaryOperands& operands) {
  return operands.scale1 * operands.scale2 / operands.output_scale;
}
void check_matmul(const Matched& match) {
  check_operands(match, matmul_multiplier);
  const bool is_wide = match.lowering.type(node_of(match)->operands[binary::kLhs]).dtype == ir::kInt16;
  if (is_wide && matmul_multiplier(read_operands(match.lowering, *node_of(match))).shift > kMaxWideShift)
    refuse("its scales make a factor of 2^7 or more");
  if (!is_matmul_f32e(match.lowering, match.sequence.front())) return;
  const float scale = matmul_scale(read_operands(match.lowering, *node_of(match)));
  if (!(scale > 0.0f && scale <= 0x1p100f)) refuse("its scales make a factor that float32 does not hold");
}

NodeSequence match_batch_matmul(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.batch_matmul") ? with_clip(lowering, node) : NodeSequence{};
}

std::vector<Constraint> constraints_of_batch_matmul() {
  const std::string prefix = "cpu.batch_matmul.";
  return {operand_is_quantized(prefix, binary::kLhs), int16_contract(prefix),
          contract_among(prefix, {format::Contract_TFL2, format::Contract_F32E}),
          scales_are_constants(prefix, check_matmul)};
}

void lower_batch_matmul(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const BinaryOperands operands = read_operands(lowering, node);
  const Clamp clamp = sequence_clamp(lowering, sequence);
  const bool is_f32e = is_matmul_f32e(lowering, sequence.front());
  const QuantizedMultiplier multiplier = is_f32e ? QuantizedMultiplier{} : matmul_multiplier(operands);
  ProgramStep step = make_step(kKernel_batch_matmul, node);
  step.inputs = {lowering.tensor(node.operands[binary::kLhs]), lowering.tensor(node.operands[binary::kRhs])};
  step.outputs = {lowering.define(sequence_result(lowering, sequence))};
  step.macs = static_cast<uint64_t>(lowering.type(node.results[0]).num_elements()) *
              static_cast<uint64_t>(lowering.type(node.operands[binary::kLhs]).shape.back());
  step.params = BatchMatmulParams{.a_zero_point = operands.zero_point1,
                                  .b_zero_point = operands.zero_point2,
                                  .output_zero_point = operands.output_zero_point,
                                  .output_multiplier = multiplier.multiplier,
                                  .output_shift = multiplier.shift,
                                  .clamp_min = clamp.min,
                                  .clamp_max = clamp.max,
                                  .transpose_b = op::attr_bool(node, "transpose_b"),
                                  .contract = is_f32e ? format::Contract_F32E : format::Contract_TFL2,
                                  .scale = is_f32e ? matmul_scale(operands) : 0.0f};
  lowering.add_step(std::move(step));
}

// ---- the larger or the smaller of two ----

NodeSequence match_maximum(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "maximum") ? NodeSequence{node} : NodeSequence{};
}
NodeSequence match_minimum(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "minimum") ? NodeSequence{node} : NodeSequence{};
}

void lower_extremum(Lowering& lowering, const NodeSequence& sequence, KernelId kernel) {
  const ir::Node& node = lowering.node(sequence.front());
  ProgramStep step = make_step(kernel, node);
  step.inputs = {lowering.tensor(node.operands[binary::kLhs]), lowering.tensor(node.operands[binary::kRhs])};
  step.outputs = {lowering.define(node.results[0])};
  step.params = NoParams{};
  lowering.add_step(std::move(step));
}
void lower_maximum(Lowering& lowering, const NodeSequence& sequence) {
  lower_extremum(lowering, sequence, kKernel_maximum);
}
void lower_minimum(Lowering& lowering, const NodeSequence& sequence) {
  lower_extremum(lowering, sequence, kKernel_minimum);
}

}  // namespace

std::vector<TableRow> binary_rows() {
  // operator list: each row has the functions of its operator
  return {{"add", match_add, constraints_of_add(), lower_add},
          {"subtract", match_subtract, constraints_of_subtract(), lower_subtract},
          {"mul", match_mul, constraints_of_mul(), lower_mul},
          {"divide", match_divide, constraints_of_divide(), lower_divide},
          {"squared_difference", match_squared_difference, constraints_of_squared_difference(),
           lower_squared_difference},
          {"prelu", match_prelu, constraints_of_prelu(), lower_prelu},
          {"batch_matmul", match_batch_matmul, constraints_of_batch_matmul(), lower_batch_matmul},
          {"maximum", match_maximum, {one_quantized_dtype("cpu.maximum.")}, lower_maximum},
          {"minimum", match_minimum, {one_quantized_dtype("cpu.minimum.")}, lower_minimum}};
}

}  // namespace qplan::target::cpu
