// Names, inputs and outputs, unsupported models, broken graphs.
#include <gtest/gtest.h>

#include "src/packer/import/import.h"
#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::tflite_test::tflite_graph_test {
namespace {

const std::string kFile = "tflite: 'net.tflite': ";

int32_t relu(TfliteBuilder& b, int32_t x, const std::string& name) {
  const int32_t y = b.activation(name, {2}, 0.5f, 0);
  b.op(tflite::BuiltinOperator_RELU, {x}, {y});
  return y;
}

TEST(TfliteGraph, NamesComeFromTensorsOrFromOperatorAndIndex) {
  TfliteBuilder b;
  const int32_t x = b.activation("", {2}, 0.5f, 0);
  const int32_t y = relu(b, x, "first/Relu");
  const int32_t z = relu(b, y, "");
  const ir::Module module = import_tflite(b.finish({x}, {z}), "net.tflite");
  const ir::Function& main = module.main();
  EXPECT_EQ(main.value(main.params()[0]).name, "input_0");
  ASSERT_EQ(main.nodes().size(), 2u);
  EXPECT_EQ(main.nodes()[0].name, "first/Relu");
  EXPECT_EQ(main.nodes()[1].name, "RELU_1");
  EXPECT_EQ(main.output_names(), std::vector<std::string>{"output_0"});
}

TEST(TfliteGraph, InputsOfOneNameAreTold) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {2}, 0.5f, 0);
  const int32_t x2 = b.activation("x", {2}, 0.5f, 0);
  const int32_t y = b.activation("y", {2}, 0.5f, 0);
  b.op(tflite::BuiltinOperator_ADD, {x, x2}, {y});
  const ir::Module module = import_tflite(b.finish({x, x2}, {y}), "net.tflite");
  EXPECT_EQ(module.main().value(module.main().params()[0]).name, "x");
  EXPECT_EQ(module.main().value(module.main().params()[1]).name, "x_1");
}

TEST(TfliteGraph, NamesAreOneLineOfUtf8) {
  TfliteBuilder b;
  const int32_t x = b.activation("a\nb\xff\xc3\xa4", {2}, 0.5f, 0);
  const int32_t y = relu(b, x, std::string(5000, 'n'));
  const ir::Module module = import_tflite(b.finish({x}, {y}), "net.tflite");
  EXPECT_EQ(module.main().value(module.main().params()[0]).name, "a?b?\xc3\xa4");
  EXPECT_EQ(module.main().nodes()[0].name.size(), 1024u);
}

TEST(TfliteGraph, InputsAndOutputsKeepTheirQuantisation) {
  TfliteBuilder b;
  const int32_t x = b.tensor({.name = "x", .type = tflite::TensorType_FLOAT32, .shape = {2}});
  const int32_t y = b.activation("y", {2}, 0.1f, -7);
  b.op(tflite::BuiltinOperator_QUANTIZE, {x}, {y});
  const ir::Module module = import_tflite(b.finish({x}, {y, x}), "net.tflite");
  EXPECT_FALSE(input_quantization(module.main(), 0));
  ASSERT_TRUE(output_quantization(module.main(), 0));
  EXPECT_EQ(output_quantization(module.main(), 0)->scale, 0.1f);
  EXPECT_EQ(output_quantization(module.main(), 0)->zero_point, -7);
  EXPECT_FALSE(output_quantization(module.main(), 1));
}

// No operator looks at the scales of what it only moves.
TEST(TfliteGraph, ImpossibleQuantisationOfInputsAndOutputsIsRefused) {
  const auto error = [](float scale, int64_t zero_point, tflite::TensorType type) {
    TfliteBuilder b;
    const int32_t x = b.activation("x", {2}, 0.5f, 0);
    const int32_t z = b.activation("z", {2}, scale, zero_point, type);
    return import_error(b.finish({x, z}, {x}));
  };
  const std::string input = "-48: " + kFile + "tensor 1 'z' has ";
  EXPECT_EQ(error(0.5f, 524416, tflite::TensorType_UINT8), input + "zero point 524416, outside of uint8");
  EXPECT_EQ(error(0.0f, 0, tflite::TensorType_INT8), input + "scale 0, expected a positive finite number");
  EXPECT_EQ(error(-1.0f, 0, tflite::TensorType_INT8), input + "scale -1, expected a positive finite number");
}

TEST(TfliteGraph, AnOutputMayBeAnInputOrNamedTwice) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {2}, 0.5f, 0);
  const int32_t y = relu(b, x, "y");
  EXPECT_EQ(import_body(b.finish({x}, {x, y, y})), "%0 = clip(%x, a_min=0f, a_max=127f);\n(%x, %0, %0)\n");
}

TEST(TfliteGraph, AllUnsupportedOperatorsAreListedAtOnce) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {2}, 0.5f, 0);
  const int32_t f = b.tensor({.name = "f", .type = tflite::TensorType_FLOAT32, .shape = {2}});
  const auto out = [&](const char* name) { return b.activation(name, {2}, 0.5f, 0); };
  const int32_t a = out("a"), c = out("c"), d = out("d"), e = out("e"), g = out("g");
  b.op(tflite::BuiltinOperator_RNN, {x}, {a});
  b.op(tflite::BuiltinOperator_RNN, {a}, {c});
  b.op(tflite::BuiltinOperator_RELU, {c}, {d});
  b.op(tflite::BuiltinOperator_CUSTOM, {d}, {e}, tflite::BuiltinOptions_NONE, 0, "FlexErf");
  b.op(tflite::BuiltinOperator_ADD, {f, f}, {g});
  b.op(300, {g}, {out("h")});
  EXPECT_EQ(import_error(b.finish({x, f}, {g})), "-49: " + kFile +
                                                     "the model needs TensorFlow itself: 1 of its operators "
                                                     "is TensorFlow's (first 'FlexErf'); convert it "
                                                     "without SELECT_TF_OPS\n"
                                                     "5 operators that qplan does not import:\n"
                                                     "  2 x RNN (first 'a')\n"
                                                     "  1 x ADD with float32 input ('g')\n"
                                                     "  1 x builtin operator 300 ('h')\n"
                                                     "  1 x custom operator 'FlexErf' ('e')");
}

TEST(TfliteGraph, BrokenGraphs) {
  const auto error = [](auto&& build) {
    TfliteBuilder b;
    return import_error(build(b));
  };
  EXPECT_EQ(error([](TfliteBuilder& b) {
              const int32_t x = b.activation("x", {2}, 0.5f, 0);
              b.op(tflite::BuiltinOperator_RELU, {x}, {7});
              return b.finish({x}, {x});
            }),
            "-48: " + kFile + "operator 0 RELU : tensor index 7 is out of range: there are 1 tensors");
  EXPECT_EQ(error([](TfliteBuilder& b) {
              const int32_t x = b.activation("x", {2}, 0.5f, 0);
              const int32_t z = b.activation("z", {2}, 0.5f, 0);
              return b.finish({x}, {relu(b, z, "y")});
            }),
            "-48: " + kFile + "operator 0 RELU 'y': tensor 1 'z' is read before any operator writes it");
  EXPECT_EQ(error([](TfliteBuilder& b) {
              const int32_t x = b.activation("x", {2}, 0.5f, 0);
              b.op(tflite::BuiltinOperator_RELU, {x}, {x});
              return b.finish({x}, {x});
            }),
            "-48: " + kFile +
                "operator 0 RELU 'x': tensor 0 'x' is written twice, or is an input that an operator writes");
  EXPECT_EQ(error([](TfliteBuilder& b) {
              const int32_t x = b.activation("x", {2}, 0.5f, 0);
              b.op(tflite::BuiltinOperator_RELU, {x, x}, {x});
              return b.finish({x}, {x});
            }),
            "-48: " + kFile + "operator 0 RELU 'x': there are 2 inputs, expected 1");
  EXPECT_EQ(error([](TfliteBuilder& b) {
              const int32_t x = b.activation("x", {2, 0}, 0.5f, 0);
              return b.finish({x}, {x});
            }),
            "-48: " + kFile + "input 'x' has no elements");
  EXPECT_EQ(error([](TfliteBuilder& b) {
              const int32_t x = b.activation("x", std::vector<int32_t>(9, 1), 0.5f, 0);
              return b.finish({x}, {x});
            }),
            "-48: " + kFile + "tensor 0 'x': rank 9 is larger than 8");
  EXPECT_EQ(error([](TfliteBuilder& b) {
              const int32_t c = b.tensor({.name = "c", .shape = {3}, .data = {1, 2}});
              return b.finish({}, {c});
            }),
            "-48: " + kFile + "tensor 0 'c': its buffer has 2 bytes, expected 3 for int8 [3]");
  EXPECT_EQ(error([](TfliteBuilder& b) { return b.finish({}, {}); }),
            "-48: " + kFile + "the model has no outputs");
  EXPECT_EQ(error([](TfliteBuilder& b) { return b.finish({}, {}, 2); }),
            "-48: " + kFile + "schema version 2, expected 3");
}

TEST(TfliteGraph, NotATfliteFile) {
  EXPECT_EQ(import_error({}),
            "-48: " + kFile + "the file has 0 bytes, which is too short for a .tflite model");
  EXPECT_EQ(import_error(std::vector<uint8_t>(100, 'x')),
            "-48: " + kFile + "the file identifier is not \"TFL3\": this is not a .tflite model");
  std::vector<uint8_t> bytes = conv_model({});
  bytes.resize(bytes.size() / 2);
  EXPECT_EQ(import_error(bytes), "-48: " + kFile + "the flatbuffer is damaged or truncated");
}

TEST(TfliteGraph, TheBytesNeedNoAlignment) {
  std::vector<uint8_t> bytes = conv_model({});
  bytes.insert(bytes.begin(), 0);
  const ir::Module module = import_tflite(std::span<const uint8_t>(bytes).subspan(1), "net.tflite");
  EXPECT_EQ(body_of(module), import_body(conv_model({})));
}

// Large models store constants after the flatbuffer: offset and size count from the beginning of the file.
TEST(TfliteGraph, ConstantsMayLieBehindTheFlatbuffer) {
  flatbuffers::FlatBufferBuilder fbb;
  const auto model = [&](uint64_t offset, uint64_t size) {
    fbb.Clear();
    fbb.ForceDefaults(true);
    const std::vector<int32_t> shape{4};
    const std::vector<flatbuffers::Offset<tflite::Tensor>> tensors{
        tflite::CreateTensorDirect(fbb, &shape, tflite::TensorType_INT8, 1, "c")};
    const std::vector<int32_t> none, outputs{0};
    const std::vector<flatbuffers::Offset<tflite::Operator>> operators;
    const std::vector<flatbuffers::Offset<tflite::SubGraph>> graphs{
        tflite::CreateSubGraphDirect(fbb, &tensors, &none, &outputs, &operators)};
    const std::vector<flatbuffers::Offset<tflite::Buffer>> buffers{
        tflite::CreateBuffer(fbb), tflite::CreateBuffer(fbb, 0, offset, size)};
    fbb.Finish(tflite::CreateModelDirect(fbb, 3, nullptr, &graphs, nullptr, &buffers), "TFL3");
    std::vector<uint8_t> bytes(fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize());
    bytes.insert(bytes.end(), {11, 22, 33, 44});
    return bytes;
  };
  const uint64_t flatbuffer_size = model(0, 0).size() - 4;
  EXPECT_EQ(import_body(model(flatbuffer_size, 4)), "const(Tensor[(4), int8], [11, 22, 33, 44])\n");
  EXPECT_EQ(import_error(model(flatbuffer_size + 1, 4)),
            "-48: " + kFile + "tensor 0 'c': buffer 1 at offset " + std::to_string(flatbuffer_size + 1) +
                " with 4 bytes ends after the file's " + std::to_string(flatbuffer_size + 4));
  EXPECT_NE(import_error(model(flatbuffer_size, UINT64_MAX - 2)), "imported");
}

// 4,096 tensors of 64 KiB each in one buffer: 256 MiB of constants from a small file.
TEST(TfliteGraph, ManyTensorsOfOneBufferAreBounded) {
  TfliteBuilder b;
  const int32_t first = b.tensor({.name = "c", .shape = {65536}, .data = std::vector<uint8_t>(65536, 1)});
  std::vector<int32_t> outputs{first};
  const std::vector<int32_t> shape{65536};
  for (int i = 1; i < 4096; ++i) outputs.push_back(b.tensor_of_buffer("c", shape, 1));
  EXPECT_EQ(
      import_error(b.finish({}, outputs)),
      "-48: " + kFile +
          "the model's constants take more than 16 times the file's size: too many tensors share one buffer");
}

TEST(TfliteGraph, AChainOfManyOperatorsImports) {
  TfliteBuilder b;
  int32_t value = b.activation("x", {2}, 0.5f, 0);
  const int32_t x = value;
  constexpr int kOperators = 50000;
  for (int i = 0; i < kOperators; ++i) value = relu(b, value, "");
  EXPECT_EQ(import_tflite(b.finish({x}, {value}), "net.tflite").main().nodes().size(), size_t{kOperators});
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_graph_test
