// LSTM and GRU: the IR that they become, and the uses that are refused, with what to do.
#include <gtest/gtest.h>

#include <functional>

#include "tests/packer/import/onnx_helpers.h"

namespace qplan::onnx_test::onnx_recurrent_test {
namespace {

// x [2, 1, 3] -> a layer of one cell -> y.
struct Layer {
  std::string op = "LSTM";
  std::vector<Message> attributes = {};
  std::vector<int64_t> weights = {};  // shape, by default of one direction
  std::vector<int32_t> lengths = {};
  std::vector<float> peepholes = {};
  int data = kFloat;
  bool weights_are_inputs = false;

  OnnxBuilder build() const {
    const int64_t gates = op == "LSTM" ? 4 : 3;
    const std::vector<int64_t> shape = weights.empty() ? std::vector<int64_t>{1, gates, 3} : weights;
    OnnxBuilder b(14);
    b.input("x", data, {2, 1, 3});
    const auto floats = [](int64_t count) {
      std::vector<float> values;
      for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
      return values;
    };
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    if (weights_are_inputs) {
      b.input("w", kFloat, shape);
    } else {
      b.constant<float>("w", kFloat, shape, floats(count));
    }
    b.constant<float>("r", kFloat, {1, gates, 1}, floats(gates));
    Names inputs{"x", "w", "r", "", "", "", "", ""};
    if (!lengths.empty()) {
      b.constant<int32_t>("n", kInt32, {1}, lengths);
      inputs[4] = "n";
    }
    if (!peepholes.empty()) {
      b.constant<float>("p", kFloat, {1, 3}, peepholes);
      inputs[7] = "p";
    }
    while (inputs.back().empty()) inputs.pop_back();
    b.node(op, inputs, {"y"}, attributes);
    b.graph().message(12, Message().bytes(1, "y"));
    return b;
  }
};

Message activations(const std::vector<std::string>& names) {
  Message attribute = attr("activations", 8);
  for (const std::string& name : names) attribute.bytes(9, name);
  return attribute;
}

TEST(OnnxRecurrent, GatesAreInTheOrderOfTheOperator) {
  // i, o, f, c of three inputs become i, f, c, o.
  EXPECT_EQ(import_body(Layer{}.build()),
            "%0 = nn.lstm(%x, const(Tensor[(4, 3), float32], [0, 1, 2, 6, 7, 8, 9, 10, 11, 3, 4, 5]), "
            "const(Tensor[(4, 1), float32], [0, 2, 3, 1]), const(Tensor[(4), float32], [0, 0, 0, 0]), "
            "const(Tensor[(8), float32], [1, 1, 1, 1, 1, 1, 1, 1]), const(Tensor[(1, 1), float32], [0]), "
            "const(Tensor[(1, 1), float32], [0]), time_major=True);\n"
            "%1 = reshape(%0.0, newshape=[2, 1, 1, 1]);\n%2 = reshape(%0.1, newshape=[1, 1, 1]);\n"
            "%3 = reshape(%0.2, newshape=[1, 1, 1]);\n%1\n");
}

TEST(OnnxRecurrent, WhatChangesNothingIsAccepted) {
  const std::string plain = import_body(Layer{}.build());
  EXPECT_EQ(import_body(Layer{.attributes = {activations({"Sigmoid", "tanh", "TANH"})}}.build()), plain);
  EXPECT_EQ(import_body(Layer{.attributes = {attr_int("hidden_size", 1), attr_float("clip", 0)}}.build()),
            plain);
  EXPECT_EQ(import_body(Layer{.lengths = {2}}.build()), plain);
  EXPECT_EQ(import_body(Layer{.peepholes = {0, 0, 0}}.build()), plain);
}

TEST(OnnxRecurrent, OtherFormsAreRefusedWithWhatToDo) {
  const auto expect_refused = [](const Layer& layer, const std::string& reason, const std::string& advice) {
    const std::string text = refusal(layer.build());
    EXPECT_NE(text.find("\n1 operator that qplan does not import: " + layer.op + " with " + reason),
              std::string::npos)
        << text;
    EXPECT_NE(text.find(advice), std::string::npos) << text;
  };
  const std::string plain =
      "; use PyTorch's nn.LSTM or nn.GRU, or Keras' LSTM or GRU, with the default options, or";
  expect_refused({.attributes = {activations({"HardSigmoid", "Tanh", "Tanh"})}},
                 "activation 'HardSigmoid' in the place of sigmoid", plain);
  expect_refused({.op = "GRU", .attributes = {activations({"Sigmoid", "Relu"})}},
                 "activation 'Relu' in the place of tanh", plain);
  expect_refused({.attributes = {attr_float("clip", 3)}}, "attribute 'clip'", plain);
  expect_refused({.attributes = {attr_int("input_forget", 1)}}, "attribute 'input_forget'", plain);
  expect_refused({.peepholes = {0, 0.5f, 0}}, "peephole weights", plain);
  expect_refused({.lengths = {1}}, "a sequence of 1 of 2 steps", "export the model for one length");
  expect_refused({.weights_are_inputs = true}, "weights that are not constant", "--bind");
  expect_refused({.data = kDouble}, "float64 data", "float32");
}

TEST(OnnxRecurrent, WhatIsBrokenIsInvalid) {
  const auto expect_invalid = [](const Layer& layer, const std::string& reason) {
    const std::string text = refusal(layer.build());
    EXPECT_EQ(text.rfind(kInvalid, 0), 0u) << text;
    EXPECT_NE(text.find(reason), std::string::npos) << text;
  };
  expect_invalid({.attributes = {attr_string("direction", "up")}}, "attribute 'direction' is 'up'");
  expect_invalid({.attributes = {attr_string("direction", "bidirectional")}}, "expected shape [2, 4, 3]");
  expect_invalid({.attributes = {attr_int("hidden_size", 2)}}, "attribute 'hidden_size' is 2");
  expect_invalid({.attributes = {activations({"Sigmoid"})}}, "has 1 values, expected 3");
  expect_invalid({.weights = {1, 4, 2}}, "expected shape [1, 4, 3]");
  expect_invalid({.weights = {4, 3}}, "the weights are");
}

}  // namespace
}  // namespace qplan::onnx_test::onnx_recurrent_test
