// Layers with a state: families lstm, float_lstm, float_gru and svdf.
#include <algorithm>

#include "kernels/float/float.h"
#include "kernels/layout.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/evaluate.h"
#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {
namespace {

namespace lstm {
enum : size_t { kData, kInputWeights, kRecurrentWeights, kInputBias, kRecurrentBias, kOutput, kCell };
}

// Operands [first, end) of the node are constants.
Constraint constants_from(const std::string& id, const char* what, size_t first, size_t end) {
  return {id, std::string(what) + " are constants", kMakeConstant, [=](const Matched& match) -> std::string {
            const ir::Node& node = *node_of(match);
            for (size_t i = first; i < end; ++i) {
              if (!match.lowering.function().is_constant(node.operands[i]))
                return cat("'", node.op->operands[i].name, "' is not a constant");
            }
            return "";
          }};
}

std::vector<int32_t> numbers(const ir::Node& node, std::string_view name) {
  const ir::Ints& values = op::attr_ints(node, name);
  return {values.begin(), values.end()};
}
int32_t number(const ir::Node& node, std::string_view name) {
  return static_cast<int32_t>(op::attr_int(node, name));
}

TensorId add_bytes(Lowering& lowering, ir::DType dtype, std::vector<uint8_t> bytes, int64_t count,
                   const std::string& name) {
  return lowering.add_constant({dtype, {count}},
                               std::make_shared<const std::vector<uint8_t>>(std::move(bytes)), name);
}

// The layout of int8 weights.
uint16_t dot_layout(const Lowering& lowering) {
  return lowering.profile().fully_connected_layout == kLayout_o16k4 ? kLayout_o16k4 : kLayout_ohwi;
}

// int8 weights [o, k] in the layout.
TensorId add_packed(Lowering& lowering, ir::ValueId value, uint16_t layout) {
  const ir::Constant& weights = lowering.constant(value, "the weights");
  const auto num_o = static_cast<uint64_t>(weights.type().shape[0]),
             num_k = static_cast<uint64_t>(weights.type().shape[1]);
  std::vector<uint8_t> packed(static_cast<size_t>(layout_bytes(layout, num_o, num_k)));
  for (uint64_t o = 0; o < num_o; ++o) {
    for (uint64_t k = 0; k < num_k; ++k)
      packed[static_cast<size_t>(layout_index(layout, o, k, num_o, num_k))] = weights.bytes()[o * num_k + k];
  }
  const auto size = static_cast<int64_t>(packed.size());
  return add_bytes(lowering, ir::kInt8, std::move(packed), size, lowering.function().value(value).name);
}

// The bias less what makes 128 of the weights: kernels read the data as if it were unsigned.
TensorId add_unsigned_bias(Lowering& lowering, ir::ValueId bias, ir::ValueId weights, uint16_t layout,
                           const std::string& name) {
  const std::span<const int32_t> values = lowering.constant(bias, "the bias").as<int32_t>();
  const std::span<const int8_t> matrix = lowering.constant(weights, "the weights").as<int8_t>();
  std::vector<int32_t> folded(static_cast<size_t>(layout_channels(layout, values.size())));
  const size_t count = matrix.size() / values.size();
  for (size_t o = 0; o < values.size(); ++o) {
    uint32_t sum = 0;
    for (size_t k = 0; k < count; ++k) sum += static_cast<uint32_t>(int32_t{matrix[o * count + k]});
    folded[o] = static_cast<int32_t>(static_cast<uint32_t>(values[o]) - 128u * sum);
  }
  return add_values(lowering, ir::kInt32, folded, name);
}

// A step whose outputs are all results of the node.
ProgramStep recurrent_step(Lowering& lowering, KernelId kernel, const ir::Node& node,
                           std::vector<TensorId> inputs) {
  ProgramStep step = make_step(kernel, node);
  step.inputs = std::move(inputs);
  for (const ir::ValueId result : node.results) step.outputs.push_back(lowering.define(result));
  return step;
}

// For every recurrent layer whose weights are operands 1 and 2.
uint64_t lstm_macs(const Lowering& lowering, const ir::Node& node) {
  const ir::Shape& data = lowering.type(node.operands[lstm::kData]).shape;
  const auto weights =
      static_cast<uint64_t>(lowering.type(node.operands[lstm::kInputWeights]).num_elements() +
                            lowering.type(node.operands[lstm::kRecurrentWeights]).num_elements());
  return static_cast<uint64_t>(data[0] * data[1]) * weights;
}

NodeSequence match_integer_lstm(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "nn.integer_lstm") ? NodeSequence{node} : NodeSequence{};
}
std::vector<Constraint> constraints_of_integer_lstm() {
  return {constants_from("cpu.lstm.weights", "weights and biases", lstm::kInputWeights, lstm::kOutput)};
}
void lower_integer_lstm(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const uint16_t layout = dot_layout(lowering);
  const ir::ValueId input = node.operands[lstm::kInputWeights],
                    recurrent = node.operands[lstm::kRecurrentWeights];
  std::vector<TensorId> inputs = {
      lowering.tensor(node.operands[lstm::kData]),
      add_packed(lowering, input, layout),
      add_packed(lowering, recurrent, layout),
      add_unsigned_bias(lowering, node.operands[lstm::kInputBias], input, layout, node.name + "/input_bias"),
      add_unsigned_bias(lowering, node.operands[lstm::kRecurrentBias], recurrent, layout,
                        node.name + "/recurrent_bias"),
      lowering.tensor(node.operands[lstm::kOutput]),
      lowering.tensor(node.operands[lstm::kCell])};
  ProgramStep step = recurrent_step(lowering, kKernel_lstm, node, std::move(inputs));
  step.macs = lstm_macs(lowering, node);
  step.params = LstmParams{.coupled = op::attr_bool(node, "coupled"),
                           .time_major = op::attr_bool(node, "time_major"),
                           .weights_layout = layout,
                           .input_multiplier = numbers(node, "input_multiplier"),
                           .input_shift = numbers(node, "input_shift"),
                           .recurrent_multiplier = numbers(node, "recurrent_multiplier"),
                           .recurrent_shift = numbers(node, "recurrent_shift"),
                           .output_multiplier = number(node, "output_multiplier"),
                           .output_shift = number(node, "output_shift"),
                           .output_zero_point = number(node, "output_zero_point"),
                           .cell_bits = static_cast<uint32_t>(number(node, "cell_bits")),
                           .cell_clip = number(node, "cell_clip")};
  lowering.add_step(std::move(step));
}

// Weights [o, k] of float32 in blocks of kFloatBlock outputs.
TensorId add_float_blocks(Lowering& lowering, ir::ValueId value) {
  const ir::Constant& weights = lowering.constant(value, "the weights");
  const std::span<const float> from = weights.as<float>();
  const auto num_o = static_cast<size_t>(weights.type().shape[0]),
             num_k = static_cast<size_t>(weights.type().shape[1]);
  std::vector<float> blocks((num_o + kFloatBlock - 1) / kFloatBlock * kFloatBlock * num_k);
  for (size_t o = 0; o < num_o; ++o) {
    for (size_t k = 0; k < num_k; ++k)
      blocks[(o / kFloatBlock * num_k + k) * kFloatBlock + o % kFloatBlock] = from[o * num_k + k];
  }
  return add_values(lowering, ir::kFloat32, blocks, lowering.function().value(value).name);
}

TensorId add_float_bias(Lowering& lowering, ir::ValueId value, const std::string& name) {
  const std::span<const float> values = lowering.constant(value, "the bias").as<float>();
  std::vector<float> bias(values.begin(), values.end());
  bias.resize((bias.size() + kFloatBlock - 1) / kFloatBlock * kFloatBlock);
  return add_values(lowering, ir::kFloat32, bias, name);
}

NodeSequence match_lstm(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "nn.lstm") ? NodeSequence{node} : NodeSequence{};
}
std::vector<Constraint> constraints_of_lstm() {
  return {constants_from("cpu.float_lstm.weights", "weights, their scales and biases", lstm::kInputWeights,
                         lstm::kOutput)};
}
void lower_lstm(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const bool is_hybrid = lowering.type(node.operands[lstm::kInputWeights]).dtype == ir::kInt8;
  const uint16_t layout = is_hybrid ? dot_layout(lowering) : uint16_t{kLayout_ohwi};
  const auto weights = [&](size_t operand) {
    return is_hybrid ? add_packed(lowering, node.operands[operand], layout)
                     : add_float_blocks(lowering, node.operands[operand]);
  };
  std::vector<TensorId> inputs = {
      lowering.tensor(node.operands[lstm::kData]), weights(lstm::kInputWeights),
      weights(lstm::kRecurrentWeights),
      add_float_bias(lowering, node.operands[lstm::kInputBias], node.name + "/bias")};
  for (const size_t operand : {lstm::kRecurrentBias, lstm::kOutput, lstm::kCell})
    inputs.push_back(lowering.tensor(node.operands[operand]));
  ProgramStep step = recurrent_step(lowering, kKernel_float_lstm, node, std::move(inputs));
  step.macs = lstm_macs(lowering, node);
  step.params = FloatLstmParams{.coupled = op::attr_bool(node, "coupled"),
                                .time_major = op::attr_bool(node, "time_major"),
                                .hybrid = is_hybrid,
                                .symmetric = op::attr_bool(node, "symmetric"),
                                .cell_clip = op::to_float32(op::attr_float(node, "cell_clip")),
                                .weights_layout = layout};
  lowering.add_step(std::move(step));
}

namespace gru {
enum : size_t { kData, kInputWeights, kRecurrentWeights, kInputBias, kRecurrentBias, kState };
}

NodeSequence match_gru(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "nn.gru") ? NodeSequence{node} : NodeSequence{};
}
std::vector<Constraint> constraints_of_gru() {
  return {constants_from("cpu.float_gru.weights", "weights and biases", gru::kInputWeights, gru::kState)};
}
void lower_gru(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  std::vector<TensorId> inputs = {
      lowering.tensor(node.operands[gru::kData]),
      add_float_blocks(lowering, node.operands[gru::kInputWeights]),
      add_float_blocks(lowering, node.operands[gru::kRecurrentWeights]),
      add_float_bias(lowering, node.operands[gru::kInputBias], node.name + "/input_bias"),
      add_float_bias(lowering, node.operands[gru::kRecurrentBias], node.name + "/recurrent_bias"),
      lowering.tensor(node.operands[gru::kState])};
  ProgramStep step = recurrent_step(lowering, kKernel_float_gru, node, std::move(inputs));
  step.macs = lstm_macs(lowering, node);
  step.params = FloatGruParams{.time_major = op::attr_bool(node, "time_major"),
                               .reset_after = op::attr_bool(node, "reset_after")};
  lowering.add_step(std::move(step));
}

namespace svdf {
enum : size_t { kData, kFeatureWeights, kTimeWeights, kFeatureBias, kBias, kState };
}

NodeSequence match_svdf(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "nn.integer_svdf") ? NodeSequence{node} : NodeSequence{};
}
std::vector<Constraint> constraints_of_svdf() {
  return {constants_from("cpu.svdf.weights", "weights and biases", svdf::kFeatureWeights, svdf::kState)};
}
void lower_svdf(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  std::vector<TensorId> inputs;
  for (const ir::ValueId operand : node.operands) inputs.push_back(lowering.tensor(operand));
  ProgramStep step = recurrent_step(lowering, kKernel_svdf, node, std::move(inputs));
  step.macs = static_cast<uint64_t>(lowering.type(node.operands[svdf::kData]).shape[0]) *
              static_cast<uint64_t>(lowering.type(node.operands[svdf::kFeatureWeights]).num_elements() +
                                    lowering.type(node.operands[svdf::kTimeWeights]).num_elements());
  step.params = SvdfParams{.rank = static_cast<uint32_t>(number(node, "rank")),
                           .feature_multiplier = number(node, "feature_multiplier"),
                           .feature_shift = number(node, "feature_shift"),
                           .output_multiplier = number(node, "output_multiplier"),
                           .output_shift = number(node, "output_shift"),
                           .output_zero_point = number(node, "output_zero_point")};
  lowering.add_step(std::move(step));
}

}  // namespace

std::vector<TableRow> recurrent_rows() {
  // operator list: each row has the functions of its operator
  return {{"lstm", match_integer_lstm, constraints_of_integer_lstm(), lower_integer_lstm},
          {"svdf", match_svdf, constraints_of_svdf(), lower_svdf},
          {"float_lstm", match_lstm, constraints_of_lstm(), lower_lstm},
          {"float_gru", match_gru, constraints_of_gru(), lower_gru}};
}

}  // namespace qplan::target::cpu
