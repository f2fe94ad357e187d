// Layers with a state, which they get as operands and return: nn.integer_lstm, nn.lstm, nn.gru,
// nn.integer_svdf.
// Those on integers have their source's multipliers as attributes, and zero points in their biases.
#include <algorithm>
#include <cmath>

#include "src/packer/op/evaluate.h"
#include "src/packer/op/infer.h"

namespace qplan::op {
namespace {

void expect_type(const InferInput& input, size_t operand, const ir::TensorType& expected) {
  if (input.type(operand) == expected) return;
  invalid(cat(operand_name(input, operand), " is ", input.type(operand), ", expected ", expected));
}

// A multiplier and its shift, as kernels take them (docs/numerics.md).
void check_multiplier(const char* name, int64_t multiplier, int64_t shift) {
  if (multiplier < 0 || multiplier > INT32_MAX)
    invalid(cat("attribute '", name, "_multiplier' is ", multiplier, ", expected 0 to 2^31 - 1"));
  if (shift < -31 || shift > 30)
    invalid(cat("attribute '", name, "_shift' is ", shift, ", expected -31 to 30"));
}
void check_range(const ir::Node& node, const char* name, int64_t min, int64_t max) {
  const int64_t value = attr_int(node, name);
  if (value < min || value > max)
    invalid(cat("attribute '", name, "' is ", value, ", expected ", min, " to ", max));
}

// ---- long short-term memory ----

namespace lstm {
enum : size_t { kData, kInputWeights, kRecurrentWeights, kInputBias, kRecurrentBias, kOutput, kCell };
}

// Operands of these places are common; `scales` takes the place of the recurrent bias in nn.lstm.
struct LstmExtents {
  int64_t batch, channels, cells, gates;
  ir::Shape output;
};

LstmExtents lstm_extents(const InferInput& input) {
  check_rank(input, lstm::kData, 3);
  check_rank(input, lstm::kCell, 2);
  const ir::Shape& data = input.type(lstm::kData).shape;
  LstmExtents e;
  e.batch = data[attr_bool(input.node, "time_major") ? 1 : 0];
  e.channels = data[2];
  e.cells = input.type(lstm::kCell).shape[1];
  e.gates = attr_bool(input.node, "coupled") ? 3 : 4;
  e.output = {data[0], data[1], e.cells};
  return e;
}

void check_lstm(const InferInput& input, const LstmExtents& e, ir::DType weights, ir::DType bias,
                ir::DType data, ir::DType cell) {
  const int64_t rows = e.gates * e.cells;
  expect_type(input, lstm::kInputWeights, {weights, {rows, e.channels}});
  expect_type(input, lstm::kRecurrentWeights, {weights, {rows, e.cells}});
  expect_type(input, lstm::kInputBias, {bias, {rows}});
  expect_type(input, lstm::kOutput, {data, {e.batch, e.cells}});
  expect_type(input, lstm::kCell, {cell, {e.batch, e.cells}});
}

std::vector<ir::TensorType> infer_integer_lstm(const InferInput& input) {
  check_dtype(input, lstm::kData, {ir::kInt8});
  const LstmExtents e = lstm_extents(input);
  check_lstm(input, e, ir::kInt8, ir::kInt32, ir::kInt8, ir::kInt16);
  expect_type(input, lstm::kRecurrentBias, {ir::kInt32, {e.gates * e.cells}});
  for (const char* name : {"input", "recurrent"}) {
    const ir::Ints& multipliers = attr_ints(input.node, cat(name, "_multiplier"));
    const ir::Ints& shifts = attr_ints(input.node, cat(name, "_shift"));
    if (std::ssize(multipliers) != e.gates || std::ssize(shifts) != e.gates)
      invalid(cat("attributes '", name, "_multiplier' and '", name, "_shift' need one value for each of ",
                  e.gates, " gates"));
    for (size_t i = 0; i < multipliers.size(); ++i) check_multiplier(name, multipliers[i], shifts[i]);
  }
  check_multiplier("output", attr_int(input.node, "output_multiplier"), attr_int(input.node, "output_shift"));
  check_range(input.node, "output_zero_point", -128, 127);
  check_range(input.node, "cell_bits", 9, 15);
  check_range(input.node, "cell_clip", 0, 32767);
  return {{ir::kInt8, e.output}, {ir::kInt8, {e.batch, e.cells}}, {ir::kInt16, {e.batch, e.cells}}};
}

std::vector<ir::TensorType> infer_lstm(const InferInput& input) {
  check_dtype(input, lstm::kInputWeights, {ir::kFloat32, ir::kInt8});
  const LstmExtents e = lstm_extents(input);
  check_lstm(input, e, input.type(lstm::kInputWeights).dtype, ir::kFloat32, ir::kFloat32, ir::kFloat32);
  expect_type(input, lstm::kRecurrentBias, {ir::kFloat32, {2 * e.gates}});
  const double clip = attr_float(input.node, "cell_clip");
  if (!std::isfinite(clip) || clip < 0) invalid("attribute 'cell_clip' must be finite and not negative");
  const ir::TensorType state = {ir::kFloat32, {e.batch, e.cells}};
  return {{ir::kFloat32, e.output}, state, state};
}

// ---- gated recurrent units ----

namespace gru {
enum : size_t { kData, kInputWeights, kRecurrentWeights, kInputBias, kRecurrentBias, kState };
constexpr int64_t kGates = 3;
}  // namespace gru

std::vector<ir::TensorType> infer_gru(const InferInput& input) {
  check_rank(input, gru::kData, 3);
  check_rank(input, gru::kState, 2);
  const ir::Shape& data = input.type(gru::kData).shape;
  const int64_t batch = data[attr_bool(input.node, "time_major") ? 1 : 0];
  const int64_t cells = input.type(gru::kState).shape[1], rows = gru::kGates * cells;
  expect_type(input, gru::kInputWeights, {ir::kFloat32, {rows, data[2]}});
  expect_type(input, gru::kRecurrentWeights, {ir::kFloat32, {rows, cells}});
  expect_type(input, gru::kInputBias, {ir::kFloat32, {rows}});
  expect_type(input, gru::kRecurrentBias, {ir::kFloat32, {rows}});
  const ir::TensorType state = {ir::kFloat32, {batch, cells}};
  expect_type(input, gru::kState, state);
  return {{ir::kFloat32, {data[0], data[1], cells}}, state};
}

// ---- singular value decomposition filters ----

namespace svdf {
enum : size_t { kData, kFeatureWeights, kTimeWeights, kFeatureBias, kBias, kState };
}

std::vector<ir::TensorType> infer_integer_svdf(const InferInput& input) {
  check_rank(input, svdf::kData, 2);
  check_rank(input, svdf::kTimeWeights, 2);
  check_dtype(input, svdf::kTimeWeights, {ir::kInt8, ir::kInt16});
  const ir::Shape& data = input.type(svdf::kData).shape;
  const ir::TensorType& time = input.type(svdf::kTimeWeights);
  const int64_t filters = time.shape[0], rank = attr_int(input.node, "rank");
  if (rank < 1 || filters % rank != 0)
    invalid(cat("attribute 'rank' ", rank, " does not divide ", filters, " filters"));
  expect_type(input, svdf::kFeatureWeights, {ir::kInt8, {filters, data[1]}});
  expect_type(input, svdf::kFeatureBias, {ir::kInt32, {filters}});
  expect_type(input, svdf::kBias, {ir::kInt32, {filters / rank}});
  const ir::TensorType state = {time.dtype, {data[0], filters, time.shape[1]}};
  expect_type(input, svdf::kState, state);
  check_multiplier("feature", attr_int(input.node, "feature_multiplier"),
                   attr_int(input.node, "feature_shift"));
  check_multiplier("output", attr_int(input.node, "output_multiplier"), attr_int(input.node, "output_shift"));
  check_range(input.node, "output_zero_point", -128, 127);
  return {{ir::kInt8, {data[0], filters / rank}}, state};
}

// ---- rows ----

OperandDef of_dtype(std::string name, std::optional<ir::DType> dtype) {
  return OperandDef{.name = std::move(name), .dtype = dtype};
}
AttrDef required_ints(std::string name) { return {std::move(name), AttrKind::kInts}; }
AttrDef required_int(std::string name) { return {std::move(name), AttrKind::kInt}; }
size_t three_results(const ir::Node&) { return 3; }

}  // namespace

OpDef list::nn_integer_lstm() {
  return {.name = "nn.integer_lstm",
          .operands = {of_dtype("data", ir::kInt8), of_dtype("input_weights", ir::kInt8),
                       of_dtype("recurrent_weights", ir::kInt8), of_dtype("input_bias", ir::kInt32),
                       of_dtype("recurrent_bias", ir::kInt32), of_dtype("output_state", ir::kInt8),
                       of_dtype("cell_state", ir::kInt16)},
          .attrs = {required_ints("input_multiplier"),
                    required_ints("input_shift"),
                    required_ints("recurrent_multiplier"),
                    required_ints("recurrent_shift"),
                    required_int("output_multiplier"),
                    required_int("output_shift"),
                    required_int("output_zero_point"),
                    required_int("cell_bits"),
                    {"cell_clip", AttrKind::kInt, 0},
                    {"coupled", AttrKind::kBool, false},
                    {"time_major", AttrKind::kBool, false}},
          .keeps_dtype = true,
          .work = Work::kConvolution,
          .infer = infer_integer_lstm,
          .num_results = three_results};
}

OpDef list::nn_lstm() {
  return {.name = "nn.lstm",
          .operands = {of_dtype("data", ir::kFloat32),
                       {"input_weights"},
                       {"recurrent_weights"},
                       of_dtype("bias", ir::kFloat32),
                       of_dtype("weights_scales", ir::kFloat32),
                       of_dtype("output_state", ir::kFloat32),
                       of_dtype("cell_state", ir::kFloat32)},
          .attrs = {{"cell_clip", AttrKind::kFloat, 0.0},
                    {"coupled", AttrKind::kBool, false},
                    {"time_major", AttrKind::kBool, false},
                    {"symmetric", AttrKind::kBool, true}},
          .result_dtype = ir::kFloat32,
          .work = Work::kConvolution,
          .infer = infer_lstm,
          .num_results = three_results};
}

OpDef list::nn_gru() {
  return {.name = "nn.gru",
          .operands = {of_dtype("data", ir::kFloat32), of_dtype("input_weights", ir::kFloat32),
                       of_dtype("recurrent_weights", ir::kFloat32), of_dtype("input_bias", ir::kFloat32),
                       of_dtype("recurrent_bias", ir::kFloat32), of_dtype("state", ir::kFloat32)},
          .attrs = {{"time_major", AttrKind::kBool, false}, {"reset_after", AttrKind::kBool, false}},
          .keeps_dtype = true,
          .work = Work::kConvolution,
          .infer = infer_gru,
          .num_results = [](const ir::Node&) { return size_t{2}; }};
}

OpDef list::nn_integer_svdf() {
  return {.name = "nn.integer_svdf",
          .operands = {of_dtype("data", ir::kInt8),
                       of_dtype("feature_weights", ir::kInt8),
                       {"time_weights"},
                       of_dtype("feature_bias", ir::kInt32),
                       of_dtype("bias", ir::kInt32),
                       {"state"}},
          .attrs = {{"rank", AttrKind::kInt, 1},
                    required_int("feature_multiplier"),
                    required_int("feature_shift"),
                    required_int("output_multiplier"),
                    required_int("output_shift"),
                    required_int("output_zero_point")},
          .result_dtype = ir::kInt8,
          .work = Work::kConvolution,
          .infer = infer_integer_svdf,
          .num_results = [](const ir::Node&) { return size_t{2}; }};
}

}  // namespace qplan::op
