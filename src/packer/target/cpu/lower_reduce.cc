// qnn.mean, qnn.sum, qnn.prod, max, min, argmax, argmin, qnn.l2_normalize: families mean, reduce_*, arg_*,
// l2_normalization. qnn.softmax, qnn.log_softmax, nn.integer_softmax.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "kernels/numeric/float_functions.h"
#include "kernels/numeric/requantize.h"
#include "kernels/reduction/reduction.h"
#include "kernels/softmax/softmax.h"
#include "src/packer/ir/cat.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/packer/op/attributes.h"
#include "src/packer/target/cpu/lowering.h"

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

Constraint int16_count(const std::string& prefix) {
  return {prefix + "count", "at most 2^15 elements of int16 become one", kNothingToChange,
          [](const Matched& match) -> std::string {
            const ir::Node& node = *node_of(match);
            const uint64_t count = reduced_axes(match.lowering, node).count;
            const bool is_16_bit = match.lowering.type(node.results[0]).dtype == ir::kInt16;
            return is_16_bit && count > MeanArgs::kMaxReducedS16
                       ? cat(count, " elements become one, whose sum may not fit int32")
                       : "";
          }};
}

std::vector<Constraint> constraints_of_mean() {
  return {contract_among("cpu.mean.", kMeanContracts), int16_contract("cpu.mean."), int16_count("cpu.mean."),
          scales_are_constants("cpu.mean.", check_mean)};
}

void lower_mean(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  add_unary_step(lowering, kKernel_mean, node,
                 mean_params(lowering, node, contract_of(node, kMeanContracts)));
}

// ---- sum, prod, max, min: the other reductions ----

// A sum is a mean that is not divided.
MeanParams sum_params(const Lowering& lowering, const ir::Node& node) {
  const float input_scale = lowering.scale(node.operands[unary::kInputScale], "the input's scale");
  const float output_scale = lowering.scale(node.operands[unary::kOutputScale], "the output's scale");
  const QuantizedMultiplier multiplier =
      layer::checked_multiplier(static_cast<double>(input_scale) / static_cast<double>(output_scale));
  return {.contract = format::Contract_TFL2,
          .axes = reduced_axes(lowering, node).mask,
          .input_zero_point =
              lowering.zero_point(node.operands[unary::kInputZeroPoint], "the input's zero point"),
          .output_zero_point =
              lowering.zero_point(node.operands[unary::kOutputZeroPoint], "the output's zero point"),
          .output_multiplier = multiplier.multiplier,
          .output_shift = multiplier.shift};
}

// Each factor is scaled by the input's scale over the n-th root of the output's.
MeanParams prod_params(const Lowering& lowering, const ir::Node& node) {
  MeanParams params = sum_params(lowering, node);
  const auto input_scale =
      static_cast<double>(lowering.scale(node.operands[unary::kInputScale], "the input's scale"));
  const auto output_scale =
      static_cast<double>(lowering.scale(node.operands[unary::kOutputScale], "the output's scale"));
  const auto count = static_cast<double>(reduced_axes(lowering, node).count);
  const QuantizedMultiplier factor =
      layer::checked_multiplier(input_scale / exp_double(log_double(output_scale) / count));
  if (factor.shift > kMaxWideShift) refuse("its scales make a factor of 2^7 or more");
  params.output_multiplier = factor.multiplier;
  params.output_shift = factor.shift;
  return params;
}

void check_reduced_sum(const Matched& match) { (void)sum_params(match.lowering, *node_of(match)); }
void check_prod(const Matched& match) { (void)prod_params(match.lowering, *node_of(match)); }

Constraint few_elements(const std::string& prefix) {
  return {prefix + "count", "at most 2^23 elements of 8 bits, or 2^15 of int16, become one", kNothingToChange,
          [](const Matched& match) -> std::string {
            const ir::Node& node = *node_of(match);
            const uint64_t count = reduced_axes(match.lowering, node).count;
            const bool is_16_bit = match.lowering.type(node.results[0]).dtype == ir::kInt16;
            const uint64_t most = is_16_bit ? MeanArgs::kMaxReducedS16 : MeanArgs::kMaxReduced;
            return count > most ? cat(count, " elements become one, at most ", most, " may") : "";
          }};
}

NodeSequence match_sum(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.sum") ? NodeSequence{node} : NodeSequence{};
}
std::vector<Constraint> constraints_of_sum() {
  return {contract_among("cpu.sum.", {format::Contract_TFL2}), few_elements("cpu.sum."),
          scales_are_constants("cpu.sum.", check_reduced_sum)};
}
void lower_sum(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  add_unary_step(lowering, kKernel_mean, node, sum_params(lowering, node));
}

NodeSequence match_prod(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.prod") ? NodeSequence{node} : NodeSequence{};
}
std::vector<Constraint> constraints_of_prod() {
  return {contract_among("cpu.prod.", {format::Contract_TFL2}), few_elements("cpu.prod."),
          scales_are_constants("cpu.prod.", check_prod)};
}
void lower_prod(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  add_unary_step(lowering, kKernel_reduce_prod, node, prod_params(lowering, node));
}

NodeSequence match_max(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "max") ? NodeSequence{node} : NodeSequence{};
}
NodeSequence match_min(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "min") ? NodeSequence{node} : NodeSequence{};
}
std::vector<Constraint> extremum_constraints(const std::string& prefix) { return {few_elements(prefix)}; }
void lower_max(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  add_unary_step(lowering, kKernel_reduce_max, node,
                 MeanParams{.contract = format::Contract_TFL2, .axes = reduced_axes(lowering, node).mask});
}
void lower_min(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  add_unary_step(lowering, kKernel_reduce_min, node,
                 MeanParams{.contract = format::Contract_TFL2, .axes = reduced_axes(lowering, node).mask});
}

// ---- positions ----

NodeSequence match_arg_max(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "argmax") ? NodeSequence{node} : NodeSequence{};
}

void add_position(Lowering& lowering, const NodeSequence& sequence, KernelId kernel) {
  const ir::Node& node = lowering.node(sequence.front());
  const size_t rank = lowering.type(node.operands[0]).shape.size();
  add_unary_step(
      lowering, kernel, node,
      ArgMaxParams{.axis = static_cast<uint32_t>(op::normalized_axis(op::attr_int(node, "axis"), rank))});
}
void lower_arg_max(Lowering& lowering, const NodeSequence& sequence) {
  add_position(lowering, sequence, kKernel_arg_max);
}

NodeSequence match_arg_min(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "argmin") ? NodeSequence{node} : NodeSequence{};
}
Constraint finds_the_smallest() {
  return {"cpu.argmin.dtype", "the input is int8, uint8, int32 or int64", kQuantizeTo8Bits,
          [](const Matched& match) -> std::string {
            const ir::DType dtype = match.lowering.type(node_of(match)->operands[0]).dtype;
            return dtype == ir::kFloat32 ? "its dtype is float32" : "";
          }};
}
void lower_arg_min(Lowering& lowering, const NodeSequence& sequence) {
  add_position(lowering, sequence, kKernel_arg_min);
}

// ---- qnn.l2_normalize: its output has one fixed quantisation ----

NodeSequence match_l2_normalize(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.l2_normalize") ? NodeSequence{node} : NodeSequence{};
}

void check_l2_normalize(const Matched& match) {
  const ir::Node& node = *node_of(match);
  (void)match.lowering.zero_point(node.operands[unary::kInputZeroPoint], "the input's zero point");
  const ir::TensorType& type = match.lowering.type(node.operands[unary::kData]);
  const int32_t zero_point = type.dtype == ir::kInt8 ? 0 : 128;
  if (match.lowering.scale(node.operands[unary::kOutputScale], "the output's scale") != 1.0f / 128.0f ||
      match.lowering.zero_point(node.operands[unary::kOutputZeroPoint], "the output's zero point") !=
          zero_point) {
    refuse(cat("its output must have scale 1/128 and zero point ", zero_point));
  }
  if (type.shape.back() > int64_t{L2NormalizationArgs::kMaxDepth})
    refuse(cat("its rows have ", type.shape.back(), " elements, at most 2^15 may be"));
}

std::vector<Constraint> constraints_of_l2_normalize() {
  const std::string prefix = "cpu.l2_normalize.";
  return {operand_is_8_bit(prefix, 0), contract_among(prefix, {format::Contract_TFL2}),
          scales_are_constants(prefix, check_l2_normalize)};
}

void lower_l2_normalize(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  add_unary_step(lowering, kKernel_l2_normalization, node,
                 L2NormalizationParams{.input_zero_point = lowering.zero_point(
                                           node.operands[unary::kInputZeroPoint], "the input's zero point")});
}

}  // namespace

std::vector<TableRow> reduce_rows() {
  // operator list: each row has the functions of its operator
  return {{"mean", match_mean, constraints_of_mean(), lower_mean},
          {"sum", match_sum, constraints_of_sum(), lower_sum},
          {"prod", match_prod, constraints_of_prod(), lower_prod},
          {"max", match_max, extremum_constraints("cpu.max."), lower_max},
          {"min", match_min, extremum_constraints("cpu.min."), lower_min},
          {"arg_max", match_arg_max, {}, lower_arg_max},
          {"arg_min", match_arg_min, {finds_the_smallest()}, lower_arg_min},
          {"l2_normalize", match_l2_normalize, constraints_of_l2_normalize(), lower_l2_normalize}};
}

// qnn.softmax: family softmax; under tfl2 with the parameters that TFLite's Prepare computes for 8 bits.
namespace {

constexpr std::initializer_list<format::Contract> kSoftmaxContracts = {format::Contract_TFL2,
                                                                       format::Contract_F32E};

constexpr const char* kScaleTimesBeta = "its input's scale times beta";

// factor: what a unit of the input is in the exponent; what: its name, in the error of one that TFLite
// refuses.
layer::SoftmaxScaling input_scaling(double factor, const char* what) {
  const std::optional<layer::SoftmaxScaling> scaling = layer::softmax_scaling(factor);
  if (!scaling)
    refuse(cat(what, " is ", static_cast<float>(factor), ", expected more than 2^-26 (1.4901161e-08)"));
  return *scaling;
}

struct SoftmaxOutput {
  float scale;
  int32_t zero_point;
};

SoftmaxOutput output_quantization(const Lowering& lowering, const ir::Node& node) {
  return {lowering.scale(node.operands[unary::kOutputScale], "the output's scale"),
          lowering.zero_point(node.operands[unary::kOutputZeroPoint], "the output's zero point")};
}

SoftmaxParams tfl2_params(const Lowering& lowering, const ir::Node& node, ir::DType dtype) {
  const SoftmaxOutput output = output_quantization(lowering, node);
  if (output.scale != 1.0f / 256.0f || output.zero_point != dtype.min()) {
    refuse("its output must have scale 1/256 and zero point " + std::to_string(dtype.min()));
  }
  const layer::SoftmaxScaling scaling = input_scaling(
      static_cast<double>(static_cast<float>(op::attr_float(node, "beta"))) *
          static_cast<double>(lowering.scale(node.operands[unary::kInputScale], "the input's scale")),
      kScaleTimesBeta);
  return {.contract = format::Contract_TFL2,
          .input_multiplier = scaling.multiplier,
          .input_left_shift = scaling.left_shift,
          .diff_min = scaling.diff_min};
}

SoftmaxParams f32e_params(const Lowering& lowering, const ir::Node& node) {
  const SoftmaxOutput output = output_quantization(lowering, node);
  return {.contract = format::Contract_F32E,
          .output_scale = output.scale,
          .output_zero_point = output.zero_point};
}

TensorId exponentials(Lowering& lowering, const ir::Node& node) {
  const std::vector<float> table =
      layer::softmax_exponentials(lowering.scale(node.operands[unary::kInputScale], "the input's scale"));
  return add_values<float>(lowering, ir::kFloat32, table, node.name + "/table");
}

bool softmax_in_float(const ir::Node& node) {
  return op::attr_string(node, "contract") == contract_name(format::Contract_F32E);
}

void check_softmax(const Matched& match) {
  const ir::Node& node = *node_of(match);
  const ir::DType dtype = match.lowering.type(node.operands[unary::kData]).dtype;
  if (!is_8_bit(dtype)) return;
  if (!softmax_in_float(node)) {
    (void)tfl2_params(match.lowering, node, dtype);
    return;
  }
  (void)output_quantization(match.lowering, node);
  (void)match.lowering.scale(node.operands[unary::kInputScale], "the input's scale");
}

NodeSequence match_softmax(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.softmax") ? NodeSequence{node} : NodeSequence{};
}

std::vector<Constraint> constraints_of_softmax() {
  const std::string prefix = "cpu.softmax.";
  return {contract_among(prefix, kSoftmaxContracts),
          {prefix + "axis", "the axis is the last one",
           "pack a model of quantise and dequantise nodes with --keep-float, which computes it in float; "
           "otherwise transpose its tensor",
           [](const Matched& match) -> std::string {
             const ir::Node& node = *node_of(match);
             const size_t rank = match.lowering.type(node.operands[unary::kData]).shape.size();
             const int64_t axis = op::normalized_axis(op::attr_int(node, "axis"), rank);
             if (axis + 1 == static_cast<int64_t>(rank)) return "";
             return cat("axis ", axis, ", the kernel needs the last one");
           }},
          operand_is_8_bit(prefix, unary::kData),
          {prefix + "beta", "beta is 1 under `f32e`", kNothingToChange,
           [](const Matched& match) -> std::string {
             const ir::Node& node = *node_of(match);
             if (!softmax_in_float(node) || op::attr_float(node, "beta") == 1.0) return "";
             return "its beta is not 1, which contract 'f32e' has no rule for";
           }},
          scales_are_constants(prefix, check_softmax)};
}

void lower_softmax(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  ProgramStep step = make_step(kKernel_softmax, node);
  step.inputs = {lowering.tensor(node.operands[unary::kData])};
  if (softmax_in_float(node)) {
    step.inputs.push_back(exponentials(lowering, node));
    step.params = f32e_params(lowering, node);
  } else {
    step.params = tfl2_params(lowering, node, lowering.type(node.operands[unary::kData]).dtype);
  }
  step.outputs = {lowering.define(node.results[0])};
  lowering.add_step(std::move(step));
}

// qnn.log_softmax: family log_softmax.

LogSoftmaxParams log_softmax_params(const Lowering& lowering, const ir::Node& node) {
  const SoftmaxOutput output = output_quantization(lowering, node);
  const auto zero_point = static_cast<int32_t>(lowering.type(node.results[0]).dtype.max());
  if (output.scale != 1.0f / 16.0f || output.zero_point != zero_point)
    refuse(cat("its output must have scale 1/16 and zero point ", zero_point));
  const layer::SoftmaxScaling scaling = input_scaling(
      static_cast<double>(lowering.scale(node.operands[unary::kInputScale], "the input's scale")),
      "its input's scale");
  // What a unit of Q5.26 is in units of the input: below 1, as TFLite demands, for float32 above 2^-26.
  const QuantizedMultiplier multiplier =
      quantize_multiplier(std::ldexp(1.0, 31 - scaling.left_shift) / scaling.multiplier);
  return {.input_multiplier = scaling.multiplier,
          .input_left_shift = scaling.left_shift,
          .diff_min = scaling.diff_min,
          .reverse_multiplier = multiplier.multiplier,
          .reverse_shift = multiplier.shift};
}

void check_log_softmax(const Matched& match) {
  if (is_8_bit(match.lowering.type(node_of(match)->operands[unary::kData]).dtype))
    (void)log_softmax_params(match.lowering, *node_of(match));
}

NodeSequence match_log_softmax(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.log_softmax") ? NodeSequence{node} : NodeSequence{};
}
std::vector<Constraint> constraints_of_log_softmax() {
  const std::string prefix = "cpu.log_softmax.";
  return {operand_is_8_bit(prefix, unary::kData), contract_among(prefix, {format::Contract_TFL2}),
          scales_are_constants(prefix, check_log_softmax)};
}
void lower_log_softmax(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  add_unary_step(lowering, kKernel_log_softmax, node, log_softmax_params(lowering, node));
}

// nn.integer_softmax: family softmax16.

// The function at 512 places of [least, most] and at its end, in 2^15ths, less half of the error that a line
// between two of them has in the middle: TFLite's LUTPopulate.
std::vector<int16_t> softmax_table(double (*function)(double), double least, double most) {
  const auto rounded = [](double x) { return x < 0 ? -std::floor(0.5 - x) : std::floor(x + 0.5); };
  const double step = (most - least) / 512;
  std::vector<int16_t> table;
  for (int i = 0; i < 512; ++i) {
    const double from = function(least + i * step) * 32768, to = function(least + (i + 1) * step) * 32768;
    const double middle = rounded(function(least + i * step + step / 2) * 32768);
    const double error = rounded((to + rounded(from)) / 2) - middle;
    table.push_back(static_cast<int16_t>(std::clamp(rounded(from) - rounded(error / 2), -32768.0, 32767.0)));
  }
  table.push_back(static_cast<int16_t>(std::clamp(rounded(function(most) * 32768), -32768.0, 32767.0)));
  return table;
}

Softmax16Params softmax16_params(const ir::Node& node, bool is_wide) {
  const double scale = op::attr_float(node, "input_scale"), beta = op::attr_float(node, "beta");
  if (is_wide) {
    // A difference of 65535 is 10.
    const QuantizedMultiplier multiplier =
        layer::checked_multiplier(scale * beta / (10.0 / 65535.0), "input and exponent");
    return {.input_multiplier = multiplier.multiplier, .input_shift = multiplier.shift};
  }
  const layer::SoftmaxScaling scaling =
      input_scaling(static_cast<double>(static_cast<float>(beta)) * scale, kScaleTimesBeta);
  return {.input_multiplier = scaling.multiplier,
          .input_shift = scaling.left_shift,
          .diff_min = scaling.diff_min};
}

bool is_wide_softmax(const Lowering& lowering, const ir::Node& node) {
  return lowering.type(node.operands[0]).dtype == ir::kInt16;
}

NodeSequence match_softmax16(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "nn.integer_softmax") ? NodeSequence{node} : NodeSequence{};
}
std::vector<Constraint> constraints_of_softmax16() {
  return {{"cpu.softmax16.scale", "the kernel's multiplier can express the input's scale", kNothingToChange,
           [](const Matched& match) {
             const ir::Node& node = *node_of(match);
             return refusal_of([&] { (void)softmax16_params(node, is_wide_softmax(match.lowering, node)); });
           }}};
}
void lower_softmax16(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  ProgramStep step = make_step(kKernel_softmax16, node);
  step.inputs = {lowering.tensor(node.operands[0])};
  if (is_wide_softmax(lowering, node)) {
    const std::vector<int16_t> exponentials = softmax_table(exp_double, -10.0, 0.0);
    const std::vector<int16_t> reciprocals = softmax_table([](double x) { return 1 / (1 + x); }, 0.0, 1.0);
    step.inputs.push_back(add_values(lowering, ir::kInt16, exponentials, node.name + "/exponentials"));
    step.inputs.push_back(add_values(lowering, ir::kInt16, reciprocals, node.name + "/reciprocals"));
  }
  step.outputs = {lowering.define(node.results[0])};
  step.params = softmax16_params(node, is_wide_softmax(lowering, node));
  lowering.add_step(std::move(step));
}

}  // namespace

std::vector<TableRow> softmax_rows() {
  return {{"softmax", match_softmax, constraints_of_softmax(), lower_softmax},
          {"log_softmax", match_log_softmax, constraints_of_log_softmax(), lower_log_softmax},
          {"softmax16", match_softmax16, constraints_of_softmax16(), lower_softmax16}};
}

}  // namespace qplan::target::cpu
