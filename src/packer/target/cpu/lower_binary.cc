// qnn.add, qnn.subtract, qnn.mul: families add, sub and mul; under tfl2 with the parameters that TFLite's
// Prepare computes for 8 bits. maximum, minimum: the families of these names.
#include <algorithm>

#include "kernels/numeric/quantize_multiplier.h"
#include "src/packer/target/cpu/prove.h"
#include "src/packer/target/cpu/requantization.h"
#include "src/packer/target/cpu/table.h"

namespace qplan::target::cpu {
namespace {

constexpr int32_t kSumLeftShift = 20;
constexpr std::initializer_list<format::Contract> kBinaryContracts = {format::Contract_TFL2,
                                                                      format::Contract_F32E};

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

SumMultipliers sum_multipliers(const BinaryOperands& operands) {
  const auto scale1 = static_cast<double>(operands.scale1), scale2 = static_cast<double>(operands.scale2);
  const double twice_max_scale = 2.0 * std::max(scale1, scale2);
  SumMultipliers result;
  result.left_shift = kSumLeftShift;
  result.input1 = smaller_than_one(scale1 / twice_max_scale);
  result.input2 = smaller_than_one(scale2 / twice_max_scale);
  result.output = smaller_than_one(twice_max_scale / (static_cast<double>(1 << kSumLeftShift) *
                                                      static_cast<double>(operands.output_scale)));
  return result;
}

// For profiles that have vector kernels: the reference has no use for it.
SumConstants float_form_of_sum(Lowering& lowering, const AddParams& params, bool subtract, ir::DType dtype) {
  if (params.contract != format::Contract_TFL2 || lowering.profile().isas.size() < 2) return {};
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
  AddParams params = {.contract = contract_of(node, kBinaryContracts),
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
    const SumMultipliers multipliers = sum_multipliers(operands);
    params.left_shift = multipliers.left_shift;
    params.input1_multiplier = multipliers.input1.multiplier;
    params.input1_shift = multipliers.input1.shift;
    params.input2_multiplier = multipliers.input2.multiplier;
    params.input2_shift = multipliers.input2.shift;
    params.output_multiplier = multipliers.output.multiplier;
    params.output_shift = multipliers.output.shift;
  }
  const SumConstants form =
      float_form_of_sum(lowering, params, kernel == kKernel_sub, lowering.type(node.results[0]).dtype);
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

// float32 throughout, as TFLite's Prepare: docs/numerics/mul.md.
QuantizedMultiplier product_multiplier(const BinaryOperands& operands) {
  const float real = operands.scale1 * operands.scale2 / operands.output_scale;
  return layer::checked_multiplier(static_cast<double>(real));
}

// ---- conditions ----

// What a contract that computes with multipliers makes of the scales.
template <typename Multipliers>
void check_operands(const Matched& match, const Multipliers& multipliers) {
  const ir::Node& node = *node_of(match);
  const BinaryOperands operands = read_operands(match.lowering, node);
  if (op::attr_string(node, "contract") != contract_name(format::Contract_F32E)) (void)multipliers(operands);
}
void check_sum(const Matched& match) { check_operands(match, sum_multipliers); }
void check_product(const Matched& match) { check_operands(match, product_multiplier); }

std::vector<Constraint> binary_constraints(const std::string& prefix, void (*read)(const Matched& match)) {
  return {one_8_bit_dtype(prefix), contract_among(prefix, kBinaryContracts),
          scales_are_constants(prefix, read)};
}

NodeSequence match_add(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.add") ? with_clip(lowering, node) : NodeSequence{};
}
std::vector<Constraint> constraints_of_add() { return binary_constraints("cpu.add.", check_sum); }
void lower_add(Lowering& lowering, const NodeSequence& sequence) {
  lower_sum(lowering, sequence, kKernel_add);
}

NodeSequence match_subtract(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.subtract") ? with_clip(lowering, node) : NodeSequence{};
}
std::vector<Constraint> constraints_of_subtract() { return binary_constraints("cpu.subtract.", check_sum); }
void lower_subtract(Lowering& lowering, const NodeSequence& sequence) {
  lower_sum(lowering, sequence, kKernel_sub);
}

NodeSequence match_mul(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.mul") ? with_clip(lowering, node) : NodeSequence{};
}
std::vector<Constraint> constraints_of_mul() { return binary_constraints("cpu.mul.", check_product); }

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
          {"maximum", match_maximum, {one_8_bit_dtype("cpu.maximum.")}, lower_maximum},
          {"minimum", match_minimum, {one_8_bit_dtype("cpu.minimum.")}, lower_minimum}};
}

}  // namespace qplan::target::cpu
