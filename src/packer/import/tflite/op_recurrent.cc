// Layers with a state: UNIDIRECTIONAL_SEQUENCE_LSTM, BIDIRECTIONAL_SEQUENCE_LSTM, LSTM, SVDF. TFLite keeps
// the state in variable tensors, which become states of the function (variables.cc).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/numeric/requantize.h"
#include "src/packer/import/tflite/op_context.h"

namespace qplan::tfl {
namespace {

constexpr size_t kData = 0;
constexpr size_t kNumGates = 4;

// Operands of UNIDIRECTIONAL_SEQUENCE_LSTM, and of one direction of BIDIRECTIONAL_SEQUENCE_LSTM. Those of
// gates come in the order input, forget, cell, output.
struct LstmOperands {
  size_t input_weights, recurrent_weights, peephole, bias, projection, output_state, cell_state;
};
constexpr LstmOperands kOneDirection = {1, 5, 9, 12, 16, 18, 19};
constexpr size_t kNormalization = 20;
constexpr LstmOperands kForward = {1, 5, 9, 12, 16, 35, 36};
constexpr LstmOperands kBackward = {18, 22, 26, 29, 33, 37, 38};
constexpr size_t kAuxiliary = 39, kNumAuxiliary = 9;

constexpr const char* kVariant = "train or export it as a plain LSTM (Keras writes one)";

struct LstmLayer {
  bool is_coupled;  // no input gate
  int64_t cells, batch, channels;
  std::vector<size_t> gates;  // that it has
};

// Results of an LSTM: the sequence, and the state after it.
void define_all(OpContext& op, const std::vector<ir::ValueId>& results, const TensorInfo& output_state,
                const TensorInfo& cell_state) {
  op.define(op.output(), results[0]);
  op.define(output_state, results[1]);
  op.define(cell_state, results[2]);
}

void refuse_any(OpContext& op, size_t first, size_t count, const char* what) {
  for (size_t i = first; i < first + count; ++i) {
    if (op.optional_input(i) != nullptr) throw Unsupported{std::string(what) + "; " + kVariant};
  }
}

// What all forms share, of data [batch, steps, channels]; refuses what none of them has.
template <typename Options>
LstmLayer lstm_layer(OpContext& op, const Options& options, const LstmOperands& at, ir::ValueId sequence) {
  refuse_any(op, at.peephole, 3, "peephole weights");
  refuse_any(op, at.projection, 2, "a projection");
  if (options.fused_activation_function() != tflite::ActivationFunctionType_TANH)
    throw Unsupported{std::string("an activation other than TANH; ") + kVariant};

  LstmLayer layer;
  layer.is_coupled = op.optional_input(at.input_weights) == nullptr;
  if (layer.is_coupled != (op.optional_input(at.recurrent_weights) == nullptr))
    invalid("the input gate has weights of the input or of the state alone");
  for (size_t gate = layer.is_coupled ? 1 : 0; gate < kNumGates; ++gate) layer.gates.push_back(gate);
  const ir::Shape data = op.shape(sequence);  // not a reference: values that are made move the others
  if (data.size() != 3) invalid("the input has shape " + to_text(data) + ", expected rank 3");
  layer.batch = data[options.time_major() ? 1 : 0];
  layer.channels = data[2];
  const ir::Shape& state = op.input(at.cell_state).shape;
  if (state.size() != 2 || state[0] != layer.batch)
    invalid("the cell state has shape " + to_text(state) + ", expected [" + std::to_string(layer.batch) +
            ", cells]");
  layer.cells = state[1];
  if (op.input(at.output_state).shape != state)
    invalid("the output state has shape " + to_text(op.input(at.output_state).shape) + ", expected " +
            to_text(state));
  return layer;
}

// The gates' tensors of one kind, each of `shape`.
std::vector<const TensorInfo*> gate_tensors(OpContext& op, const LstmLayer& layer, size_t first,
                                            ir::DType dtype, const ir::Shape& shape, const char* what) {
  std::vector<const TensorInfo*> tensors;
  for (const size_t gate : layer.gates) {
    const TensorInfo& tensor = op.input(first + gate);
    if (tensor.dtype != dtype) throw Unsupported{type_name(tensor.file_type) + " " + what};
    if (!tensor.is_constant()) throw Unsupported{std::string(what) + " that are not constant"};
    if (tensor.shape != shape) {
      invalid(std::string(what) + " of shape " + to_text(tensor.shape) + ", expected " + to_text(shape));
    }
    tensors.push_back(&tensor);
  }
  return tensors;
}

// Their bytes, one after another.
std::vector<uint8_t> joined(OpContext& op, const std::vector<const TensorInfo*>& tensors) {
  std::vector<uint8_t> bytes;
  for (const TensorInfo* tensor : tensors) {
    op.charge(tensor->data.size());
    bytes.insert(bytes.end(), tensor->data.begin(), tensor->data.end());
  }
  return bytes;
}

ir::ValueId constant_of_bytes(OpContext& op, ir::DType dtype, const ir::Shape& shape,
                              std::vector<uint8_t> bytes, const std::string& name = "") {
  return op.constant(std::make_shared<const ir::Constant>(ir::TensorType{dtype, shape}, std::move(bytes)),
                     name);
}

float symmetric_scale(OpContext& op, const TensorInfo& weights) {
  const QuantParams quantization = op.quantization(weights);
  if (quantization.zero_point != 0) throw Unsupported{"weights whose zero point is not 0"};
  return quantization.scale;
}

// ---- integers ----

// Adds to each row's bias what the zero point contributes: bias - zero_point * sum of the row's weights.
std::vector<int32_t> folded_bias(std::vector<int32_t> bias, const std::vector<uint8_t>& weights,
                                 int32_t zero_point) {
  const size_t count = weights.size() / bias.size();
  for (size_t row = 0; row < bias.size(); ++row) {
    uint32_t sum = 0;
    for (size_t k = 0; k < count; ++k)
      sum += static_cast<uint32_t>(static_cast<int8_t>(weights[row * count + k]));
    bias[row] =
        static_cast<int32_t>(static_cast<uint32_t>(bias[row]) - static_cast<uint32_t>(zero_point) * sum);
  }
  return bias;
}

QuantizedMultiplier multiplier_of(float real) {
  const QuantizedMultiplier multiplier = quantize_multiplier(static_cast<double>(real));
  if (multiplier.shift > 30) throw Unsupported{"scales that are too far apart"};
  return multiplier;
}

// One side of the gates: the input's or the state's.
struct GateSide {
  ir::ValueId weights, bias;
  ir::Ints multiplier, shift;
};

GateSide gate_side(OpContext& op, const LstmLayer& layer, size_t first, int64_t count, QuantParams data,
                   bool has_bias) {
  const std::vector<const TensorInfo*> tensors =
      gate_tensors(op, layer, first, ir::kInt8, {layer.cells, count}, "weights");
  const int64_t rows = static_cast<int64_t>(tensors.size()) * layer.cells;
  std::vector<int32_t> bias(static_cast<size_t>(rows));
  if (has_bias) {
    const std::vector<uint8_t> bytes =
        joined(op, gate_tensors(op, layer, kOneDirection.bias, ir::kInt32, {layer.cells}, "biases"));
    std::memcpy(bias.data(), bytes.data(), bytes.size());
  }
  GateSide side;
  const std::vector<uint8_t> weights = joined(op, tensors);
  for (const TensorInfo* tensor : tensors) {
    // In float32; gates are in units of 2^-12.
    const float scale = symmetric_scale(op, *tensor) * data.scale / 0x1p-12f;
    const QuantizedMultiplier multiplier = multiplier_of(scale);
    side.multiplier.push_back(multiplier.multiplier);
    side.shift.push_back(multiplier.shift);
  }
  side.bias = op.constant(
      ir::make_constant(ir::kInt32, {rows}, folded_bias(std::move(bias), weights, data.zero_point)));
  side.weights = constant_of_bytes(op, ir::kInt8, {rows, count}, weights, tensors[0]->name);
  return side;
}

// -log2 of the cell's scale, a power of two.
int64_t cell_bits(OpContext& op, const TensorInfo& cell) {
  if (cell.dtype != ir::kInt16) throw Unsupported{type_name(cell.file_type) + " cell state"};
  const QuantParams quantization = op.quantization(cell);
  int exponent = 0;
  const bool is_power = std::frexp(quantization.scale, &exponent) == 0.5f;
  if (!is_power || quantization.zero_point != 0 || exponent - 1 > -9 || exponent - 1 < -15) {
    throw Unsupported{"a cell state of scale " + to_text(quantization.scale) +
                      ", expected a power of two from 2^-15 to 2^-9 and zero point 0"};
  }
  return 1 - exponent;
}

void import_integer_lstm(OpContext& op, const tflite::UnidirectionalSequenceLSTMOptions& options) {
  const LstmLayer layer = lstm_layer(op, options, kOneDirection, op.value(op.input(kData)));
  const QuantParams data = op.quantization(op.input(kData)), output = op.quantization(op.output());
  const TensorInfo& state = op.input(kOneDirection.output_state);
  if (state.dtype != ir::kInt8) throw Unsupported{type_name(state.file_type) + " output state"};
  // Without a projection, what the intermediate "hidden" has is the output.
  const TensorInfo* hidden = op.intermediate(kNumGates);
  const bool has_one = op.quantization(state) == output &&
                       (hidden == nullptr || hidden->num_scales() != 1 || op.quantization(*hidden) == output);
  if (!has_one) throw Unsupported{"an output state of another quantisation than the output"};
  const int64_t bits = cell_bits(op, op.input(kOneDirection.cell_state));
  const float clip = options.cell_clip() / op.quantization(op.input(kOneDirection.cell_state)).scale;

  const GateSide input = gate_side(op, layer, kOneDirection.input_weights, layer.channels, data, true);
  const GateSide recurrent =
      gate_side(op, layer, kOneDirection.recurrent_weights, layer.cells, output, false);
  const auto real = static_cast<float>(0x1p-15 / static_cast<double>(output.scale) * 0x1p-15);
  const QuantizedMultiplier multiplier = multiplier_of(real);
  const TensorInfo& cell = op.input(kOneDirection.cell_state);
  const ir::ValueId first_output = op.value(state), first_cell = op.value(cell);
  const std::vector<ir::ValueId> results =
      op.emit_many("nn.integer_lstm",
                   {op.value(op.input(kData)), input.weights, recurrent.weights, input.bias, recurrent.bias,
                    first_output, first_cell},
                   {{"input_multiplier", input.multiplier},
                    {"input_shift", input.shift},
                    {"recurrent_multiplier", recurrent.multiplier},
                    {"recurrent_shift", recurrent.shift},
                    {"output_multiplier", int64_t{multiplier.multiplier}},
                    {"output_shift", int64_t{multiplier.shift}},
                    {"output_zero_point", int64_t{output.zero_point}},
                    {"cell_bits", bits},
                    {"cell_clip", clip > 0 ? static_cast<int64_t>(std::min(clip, 32767.0f)) : int64_t{0}},
                    {"coupled", layer.is_coupled},
                    {"time_major", options.time_major()}});
  define_all(op, results, state, cell);
}

// ---- floats, with weights of float32 or int8 ----

// The sequence that a layer makes of `data`, whose states are kept.
template <typename Options>
ir::ValueId float_lstm(OpContext& op, const Options& options, const LstmOperands& at, ir::ValueId data) {
  const LstmLayer layer = lstm_layer(op, options, at, data);
  const TensorInfo& first = op.input(at.input_weights + layer.gates[0]);
  const bool is_hybrid = first.dtype == ir::kInt8;
  const ir::DType dtype = is_hybrid ? ir::kInt8 : ir::kFloat32;
  const auto rows = static_cast<int64_t>(layer.gates.size()) * layer.cells;
  std::vector<float> scales;
  const auto weights = [&](size_t place, int64_t count) {
    const std::vector<const TensorInfo*> tensors =
        gate_tensors(op, layer, place, dtype, {layer.cells, count}, "weights");
    for (const TensorInfo* tensor : tensors)
      scales.push_back(is_hybrid ? symmetric_scale(op, *tensor) : 1.0f);
    return constant_of_bytes(op, dtype, {rows, count}, joined(op, tensors), tensors[0]->name);
  };
  const ir::ValueId input = weights(at.input_weights, layer.channels);
  const ir::ValueId recurrent = weights(at.recurrent_weights, layer.cells);
  const ir::ValueId bias =
      constant_of_bytes(op, ir::kFloat32, {rows},
                        joined(op, gate_tensors(op, layer, at.bias, ir::kFloat32, {layer.cells}, "biases")));
  const auto state = [&](size_t place) {
    const TensorInfo& tensor = op.input(place);
    if (tensor.dtype != ir::kFloat32) throw Unsupported{type_name(tensor.file_type) + " state"};
    return op.value(tensor);
  };
  const ir::ValueId first_output = state(at.output_state), first_cell = state(at.cell_state);
  const auto num_scales = static_cast<int64_t>(scales.size());
  const std::vector<ir::ValueId> results = op.emit_many(
      "nn.lstm",
      {data, input, recurrent, bias, op.constant(ir::make_constant(ir::kFloat32, {num_scales}, scales)),
       first_output, first_cell},
      {{"cell_clip", static_cast<double>(std::max(options.cell_clip(), 0.0f))},
       {"coupled", layer.is_coupled},
       {"time_major", options.time_major()},
       {"symmetric", !options.asymmetric_quantize_inputs()}});
  op.define(op.input(at.output_state), results[1]);
  op.define(op.input(at.cell_state), results[2]);
  return results[0];
}

// The steps of a sequence from the last to the first.
ir::ValueId backwards(OpContext& op, ir::ValueId sequence, bool time_major) {
  const int64_t axis = time_major ? 0 : 1;
  if (op.shape(sequence).size() != 3)
    invalid("the input has shape " + to_text(op.shape(sequence)) + ", expected rank 3");
  const int64_t steps = op.shape(sequence)[static_cast<size_t>(axis)];
  return op.emit("strided_slice", {sequence},
                 {{"begin", ir::Ints{steps - 1}},
                  {"end", ir::Ints{-steps - 1}},
                  {"strides", ir::Ints{-1}},
                  {"axes", ir::Ints{axis}}});
}

}  // namespace

void import_unidirectional_sequence_lstm(OpContext& op) {
  const auto& options = op.options<tflite::UnidirectionalSequenceLSTMOptions>();
  op.expect_counts(20, 24, 1);
  refuse_any(op, kNormalization, 4, "layer normalisation");
  const TensorInfo& data = op.input(kData);
  if (data.dtype == ir::kFloat32)
    return op.define(op.output(), float_lstm(op, options, kOneDirection, op.value(data)));
  if (data.dtype != ir::kInt8) throw Unsupported{type_name(data.file_type) + " input"};
  import_integer_lstm(op, options);
}

// LSTM of one step for each run, as converters wrote before sequences had an operator.
namespace {

// Its options as those of a sequence.
struct StepOptions {
  const tflite::LSTMOptions& of;

  auto fused_activation_function() const { return of.fused_activation_function(); }
  float cell_clip() const { return of.cell_clip(); }
  bool asymmetric_quantize_inputs() const { return of.asymmetric_quantize_inputs(); }
  bool time_major() const { return false; }
};

// Data [batch, channels] as a sequence of one step.
ir::ValueId one_step(OpContext& op) {
  const ir::ValueId data = op.value(op.input(kData));
  const ir::Shape shape = op.shape(data);
  if (shape.size() != 2) invalid("the input has shape " + to_text(shape) + ", expected rank 2");
  return op.reshaped(data, {shape[0], 1, shape[1]});
}

enum BasicLstm : size_t { kBasicData, kBasicOutput, kBasicWeights, kBasicBias, kBasicCell };

// The states are operands and results, and variables too; the other two outputs are TFLite's scratch memory.
void import_basic_lstm(OpContext& op, const tflite::LSTMOptions& options) {
  op.expect_counts(5, 5, 4);
  if (options.fused_activation_function() != tflite::ActivationFunctionType_TANH)
    throw Unsupported{std::string("an activation other than TANH; ") + kVariant};
  for (size_t i = kBasicData; i <= kBasicCell; ++i) {
    const TensorInfo& input = op.input(i);
    if (input.dtype != ir::kFloat32) throw Unsupported{type_name(input.file_type) + " input"};
  }
  const ir::ValueId data = one_step(op);
  const int64_t channels = op.shape(data)[2];
  const ir::ValueId weights = op.value(op.input(kBasicWeights));
  const ir::Shape shape = op.shape(weights);
  const int64_t cells = shape.empty() ? 0 : shape[0] / static_cast<int64_t>(kNumGates);
  if (shape != ir::Shape{static_cast<int64_t>(kNumGates) * cells, channels + cells})
    invalid("the weights have shape " + to_text(shape) + ", which does not fit " + std::to_string(channels) +
            " input channels");
  // Its gates come in the order input, cell, forget, output.
  std::vector<int64_t> rows;
  for (const int64_t gate : {0, 2, 1, 3}) {
    for (int64_t cell = 0; cell < cells; ++cell) rows.push_back(gate * cells + cell);
  }
  const ir::ValueId order = op.int_vector(rows);
  const ir::ValueId gates = op.emit("take", {weights, order}, {{"axis", int64_t{0}}});
  const auto columns = [&](int64_t begin, int64_t end) {
    return op.emit("strided_slice", {gates},
                   {{"begin", ir::Ints{begin}}, {"end", ir::Ints{end}}, {"axes", ir::Ints{1}}});
  };
  const std::vector<float> scales(2 * kNumGates, 1.0f);
  const std::vector<ir::ValueId> results =
      op.emit_many("nn.lstm",
                   {data, columns(0, channels), columns(channels, channels + cells),
                    op.emit("take", {op.value(op.input(kBasicBias)), order}, {{"axis", int64_t{0}}}),
                    op.constant(ir::make_constant(ir::kFloat32, {2 * kNumGates}, scales)),
                    op.value(op.input(kBasicOutput)), op.value(op.input(kBasicCell))},
                   {});
  op.define(op.output(0), results[1]);
  op.define(op.output(1), results[2]);
  if (op.input(kBasicOutput).is_variable) op.define(op.input(kBasicOutput), results[1]);
  if (op.input(kBasicCell).is_variable) op.define(op.input(kBasicCell), results[2]);
}

}  // namespace

void import_lstm(OpContext& op) {
  const auto& options = op.options<tflite::LSTMOptions>();
  if (options.kernel_type() == tflite::LSTMKernelType_BASIC) return import_basic_lstm(op, options);
  op.expect_counts(20, 24, 1);
  refuse_any(op, kNormalization, 4, "layer normalisation");
  const TensorInfo& data = op.input(kData);
  if (data.dtype != ir::kFloat32) throw Unsupported{type_name(data.file_type) + " input"};
  const ir::ValueId output = float_lstm(op, StepOptions{options}, kOneDirection, one_step(op));
  const ir::Shape shape = op.shape(output);
  op.define(op.output(), op.reshaped(output, {shape[0], shape[2]}));
}

// One layer from the first step to the last and one the other way, whose outputs are joined or two.
void import_bidirectional_sequence_lstm(OpContext& op) {
  const auto& options = op.options<tflite::BidirectionalSequenceLSTMOptions>();
  op.expect_counts(39, 48, options.merge_outputs() ? 1 : 2);
  refuse_any(op, kAuxiliary, kNumAuxiliary, "an auxiliary input");
  const TensorInfo& data = op.input(kData);
  if (data.dtype != ir::kFloat32) throw Unsupported{type_name(data.file_type) + " input"};
  const bool time_major = options.time_major();
  const ir::ValueId sequence = op.value(data);
  const ir::ValueId forward = float_lstm(op, options, kForward, sequence);
  const ir::ValueId turned = float_lstm(op, options, kBackward, backwards(op, sequence, time_major));
  const ir::ValueId backward = backwards(op, turned, time_major);
  if (options.merge_outputs())
    return op.define(op.output(), op.emit("concatenate", {forward, backward}, {{"axis", int64_t{2}}}));
  op.define(op.output(0), forward);
  op.define(op.output(1), backward);
}

// ---- SVDF ----

namespace {

enum Svdf : size_t { kSvdfData, kFeatureWeights, kTimeWeights, kSvdfBias, kSvdfState };

const TensorInfo& svdf_constant(OpContext& op, size_t i, std::initializer_list<ir::DType> dtypes,
                                const ir::Shape& shape, const char* what) {
  const TensorInfo& tensor = op.input(i);
  if (std::ranges::none_of(dtypes, [&](ir::DType dtype) { return tensor.dtype == dtype; }))
    throw Unsupported{type_name(tensor.file_type) + " " + what};
  if (!tensor.is_constant()) throw Unsupported{std::string(what) + " that are not constant"};
  if (tensor.shape != shape)
    invalid(std::string(what) + " of shape " + to_text(tensor.shape) + ", expected " + to_text(shape));
  return tensor;
}

}  // namespace

// On int8, with a state of int8 or int16. TFLite's kernel looks at no activation: RELU is what the output's
// zero point makes of it.
void import_svdf(OpContext& op) {
  op.expect_counts(5, 5, 1);
  const auto& options = op.options<tflite::SVDFOptions>();
  const TensorInfo& data = op.input(kSvdfData);
  if (data.dtype != ir::kInt8) throw Unsupported{type_name(data.file_type) + " input"};
  const ir::Shape shape = op.shape(op.value(data));  // not a reference: values that are made move the others
  if (shape.size() != 2) invalid("the input has shape " + to_text(shape) + ", expected rank 2");
  if (op.input(kFeatureWeights).shape.size() != 2 || op.input(kTimeWeights).shape.size() != 2)
    invalid("the weights do not have rank 2");
  const int64_t filters = op.input(kFeatureWeights).shape[0], memory = op.input(kTimeWeights).shape[1];
  const int64_t rank = options.rank();
  if (rank < 1 || filters % rank != 0)
    invalid("rank " + std::to_string(rank) + " does not divide " + std::to_string(filters) + " filters");
  const TensorInfo& feature =
      svdf_constant(op, kFeatureWeights, {ir::kInt8}, {filters, shape[1]}, "feature weights");
  const TensorInfo& time =
      svdf_constant(op, kTimeWeights, {ir::kInt8, ir::kInt16}, {filters, memory}, "time weights");
  const TensorInfo& state = op.input(kSvdfState);
  if (state.dtype != time.dtype) throw Unsupported{type_name(state.file_type) + " state"};
  if (state.shape != ir::Shape{shape[0], filters * memory})
    invalid("the state has shape " + to_text(state.shape) + ", expected " +
            to_text(ir::Shape{shape[0], filters * memory}));
  const QuantParams in = op.quantization(data), out = op.quantization(op.output());
  const QuantParams kept = op.quantization(state);
  if (kept.zero_point != 0) throw Unsupported{"a state whose zero point is not 0"};
  const auto units = filters / rank;
  std::vector<int32_t> bias(static_cast<size_t>(units));
  if (op.optional_input(kSvdfBias) != nullptr) {
    const TensorInfo& given = svdf_constant(op, kSvdfBias, {ir::kInt32}, {units}, "biases");
    std::memcpy(bias.data(), given.data.data(), given.data.size());
  }
  const std::vector<uint8_t> weights(feature.data.begin(), feature.data.end());
  // In float32, from left to right.
  const QuantizedMultiplier first = multiplier_of(in.scale * symmetric_scale(op, feature) / kept.scale);
  const QuantizedMultiplier second = multiplier_of(kept.scale * symmetric_scale(op, time) / out.scale);
  // TFLite's has two axes.
  const ir::ValueId first_state = op.reshaped(op.value(state), {shape[0], filters, memory});
  const std::vector<ir::ValueId> results = op.emit_many(
      "nn.integer_svdf",
      {op.value(data), op.value(feature), op.value(time),
       op.constant(ir::make_constant(
           ir::kInt32, {filters},
           folded_bias(std::vector<int32_t>(static_cast<size_t>(filters)), weights, in.zero_point))),
       op.constant(ir::make_constant(ir::kInt32, {units}, bias)), first_state},
      {{"rank", rank},
       {"feature_multiplier", int64_t{first.multiplier}},
       {"feature_shift", int64_t{first.shift}},
       {"output_multiplier", int64_t{second.multiplier}},
       {"output_shift", int64_t{second.shift}},
       {"output_zero_point", int64_t{out.zero_point}}});
  op.define(op.output(), results[0]);
  op.define(state, op.reshaped(results[1], state.shape));
}

}  // namespace qplan::tfl
