// Operators, most of them alone, from a TFLite model through a plan to its bytes. Models, inputs and expected
// bytes are those that tests/data/operators/integer_operators.py writes, TFLite's reference kernels in plain
// Python, and those of float_operators.py beside it, float32 and conditions in NumPy.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/models/model_session.h"
#include "tests/models/near.h"
#include "tests/packer/import/tflite_builder.h"
#include "tests/support/isas.h"

namespace qplan::testing::tflite_operator_test {
namespace {

using Json = nlohmann::json;
using tflite_test::TensorSpec;
using tflite_test::TfliteBuilder;
using Offset = flatbuffers::Offset<void>;

std::vector<uint8_t> from_hexadecimal(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

tflite::TensorType type_of(const std::string& name) {
  static const std::map<std::string, tflite::TensorType> kTypes = {
      {"int8", tflite::TensorType_INT8},   {"uint8", tflite::TensorType_UINT8},
      {"int16", tflite::TensorType_INT16}, {"int32", tflite::TensorType_INT32},
      {"int64", tflite::TensorType_INT64}, {"float32", tflite::TensorType_FLOAT32},
      {"bool", tflite::TensorType_BOOL},   {"complex64", tflite::TensorType_COMPLEX64}};
  return kTypes.at(name);
}

TensorSpec tensor_spec(const Json& json) {
  TensorSpec spec;
  spec.name = json.at("name");
  spec.type = type_of(json.at("type"));
  spec.shape = json.at("shape").get<std::vector<int32_t>>();
  spec.scales = json.at("scales").get<std::vector<float>>();
  spec.zero_points = json.at("zero_points").get<std::vector<int64_t>>();
  spec.quantized_dimension = json.at("axis");
  if (!json.at("data").is_null()) spec.data = from_hexadecimal(json.at("data"));
  return spec;
}

struct Options {
  tflite::BuiltinOptions type = tflite::BuiltinOptions_NONE;
  Offset table = 0;
};

// The options that operators have beside their defaults.
Options options_of(const std::string& op, const Json& json, flatbuffers::FlatBufferBuilder& b) {
  const auto number = [&](const char* name, int32_t fallback) { return json.value(name, fallback); };
  const bool is_same = json.value("padding", "") == "SAME";
  const tflite::Padding padding = is_same ? tflite::Padding_SAME : tflite::Padding_VALID;
  const int32_t stride = number("stride", 1), dilation = number("dilation", 1);
  constexpr auto kNone = tflite::ActivationFunctionType_NONE;
  if (op == "CONV_2D") {
    return {tflite::BuiltinOptions_Conv2DOptions,
            tflite::CreateConv2DOptions(b, padding, stride, stride, kNone, dilation, dilation).Union()};
  }
  if (op == "DEPTHWISE_CONV_2D") {
    return {tflite::BuiltinOptions_DepthwiseConv2DOptions,
            tflite::CreateDepthwiseConv2DOptions(b, padding, stride, stride, 0, kNone, dilation, dilation)
                .Union()};
  }
  if (op == "TRANSPOSE_CONV") {
    return {tflite::BuiltinOptions_TransposeConvOptions,
            tflite::CreateTransposeConvOptions(b, padding, stride, stride).Union()};
  }
  if (op == "FULLY_CONNECTED") {
    return {tflite::BuiltinOptions_FullyConnectedOptions, tflite::CreateFullyConnectedOptions(b).Union()};
  }
  if (op == "AVERAGE_POOL_2D" || op == "MAX_POOL_2D") {
    const int32_t kernel = number("kernel", 1);
    return {tflite::BuiltinOptions_Pool2DOptions,
            tflite::CreatePool2DOptions(b, padding, stride, stride, kernel, kernel).Union()};
  }
  if (json.contains("pot") && op == "ADD") {
    return {tflite::BuiltinOptions_AddOptions, tflite::CreateAddOptions(b, kNone, json.at("pot")).Union()};
  }
  if (json.contains("pot")) {
    return {tflite::BuiltinOptions_SubOptions, tflite::CreateSubOptions(b, kNone, json.at("pot")).Union()};
  }
  if (json.contains("alpha")) {
    return {tflite::BuiltinOptions_LeakyReluOptions,
            tflite::CreateLeakyReluOptions(b, json.at("alpha").get<float>()).Union()};
  }
  if (json.contains("keep")) {
    return {tflite::BuiltinOptions_ReducerOptions, tflite::CreateReducerOptions(b, json.at("keep")).Union()};
  }
  if (json.contains("adj_x")) {
    return {tflite::BuiltinOptions_BatchMatMulOptions,
            tflite::CreateBatchMatMulOptions(b, json.at("adj_x"), json.at("adj_y")).Union()};
  }
  if (json.contains("exclusive")) {
    return {tflite::BuiltinOptions_CumsumOptions,
            tflite::CreateCumsumOptions(b, json.at("exclusive"), json.at("reverse")).Union()};
  }
  if (json.contains("mode")) {
    const std::string mode = json.at("mode");
    return {tflite::BuiltinOptions_ResizeBilinearOptions,
            tflite::CreateResizeBilinearOptions(b, mode == "align_corners", mode == "half_pixel").Union()};
  }
  if (op == "ONE_HOT") {
    return {tflite::BuiltinOptions_OneHotOptions, tflite::CreateOneHotOptions(b, -1).Union()};
  }
  if (json.contains("approximate")) {
    return {tflite::BuiltinOptions_GeluOptions, tflite::CreateGeluOptions(b, json.at("approximate")).Union()};
  }
  return {};
}

int32_t code_of(const std::string& op) {
  for (const tflite::BuiltinOperator code : tflite::EnumValuesBuiltinOperator()) {
    if (op == tflite::EnumNameBuiltinOperator(code)) return code;
  }
  throw std::runtime_error("no operator " + op);
}

std::vector<uint8_t> model_of(const Json& json) {
  TfliteBuilder builder;
  std::vector<int32_t> tensors;
  for (const Json& tensor : json.at("tensors")) tensors.push_back(builder.tensor(tensor_spec(tensor)));
  std::vector<int32_t> inputs;
  for (const Json& input : json.at("inputs")) inputs.push_back(input.at(0));
  for (const Json& node : json.at("operators")) {
    const std::string op = node.at("op");
    const Options options = options_of(op, node.at("options"), builder.fbb());
    builder.op(code_of(op), node.at("operands").get<std::vector<int32_t>>(),
               {node.at("result").get<int32_t>()}, options.type, options.table);
  }
  return builder.finish(inputs, {tensors.back()});
}

Json all_cases() {
  Json cases = Json::array();
  for (const char* name : {"integer_operators", "float_operators"}) {
    std::ifstream file(std::string("tests/data/operators/") + name + ".json");
    if (!file) return Json::array();
    for (Json& json : Json::parse(file)) cases.push_back(std::move(json));
  }
  return cases;
}

// The shape and dtypes of a case, for messages.
std::string description(const Json& json) {
  std::string text = json.at("operators").at(0).at("op");
  for (const Json& tensor : json.at("tensors")) {
    text += " " + tensor.at("type").get<std::string>() + tensor.at("shape").dump();
  }
  return text + " " + json.at("operators").at(0).at("options").dump();
}

void expect_case(const Json& json, uint32_t isa, const char* target, uint32_t fuse) {
  const std::vector<uint8_t> plan = pack_bytes(model_of(json), "operator.tflite", target, fuse);
  ModelSession session(plan, isa, 1);
  std::vector<std::vector<uint8_t>> inputs;
  for (const Json& input : json.at("inputs")) inputs.push_back(from_hexadecimal(input.at(1)));
  const std::vector<uint8_t> expected = from_hexadecimal(json.at("expected"));
  const std::vector<uint8_t> found = session.run(inputs).at(0);
  ASSERT_EQ(found.size(), expected.size()) << description(json);
  if (json.at("tensors").back().at("type") == "float32") {
    EXPECT_EQ(far_element(found, expected, /*share=*/0.03f), "") << description(json);
    return;
  }
  size_t first = 0;
  while (first < found.size() && found[first] == expected[first]) ++first;
  EXPECT_EQ(first, found.size()) << description(json) << ": the first wrong byte; found "
                                 << (first < found.size() ? int{found[first]} : 0) << ", expected "
                                 << (first < found.size() ? int{expected[first]} : 0);
}

TEST(TfliteOperator, GivesTheReferencesBytes) {
  const Json cases = all_cases();
  ASSERT_GE(cases.size(), 200u) << "tests/data/operators/*.json";
  for (const Json& json : cases) {
    SCOPED_TRACE(description(json));
    EXPECT_NO_THROW(expect_case(json, QPLAN_ISA_AUTO, "cpu", QPLAN_FUSE_ALL));
  }
}

TEST(TfliteOperator, GivesTheReferencesBytesByReferenceKernelsOfACortexMPlan) {
  for (const Json& json : all_cases()) {
    SCOPED_TRACE(description(json));
    EXPECT_NO_THROW(expect_case(json, QPLAN_ISA_REFERENCE, "cpu,arch=cortex-m", QPLAN_FUSE_AUTO));
  }
}

}  // namespace
}  // namespace qplan::testing::tflite_operator_test
