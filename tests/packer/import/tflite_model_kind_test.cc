// The error states what a model was compiled for, or how it was quantised, before the list of its operators.
#include <gtest/gtest.h>

#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::tflite_test::tflite_model_kind_test {
namespace {

const std::string kFile = "-49: tflite: 'net.tflite': ";

std::string custom_error(const char* custom_code) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {2}, 0.5f, 0), y = b.activation("y", {2}, 0.5f, 0);
  b.op(tflite::BuiltinOperator_CUSTOM, {x}, {y}, tflite::BuiltinOptions_NONE, 0, custom_code);
  return import_error(b.finish({x}, {y}));
}

TEST(TfliteModelKind, CompiledModelsNameTheirDeviceFirst) {
  const auto expected = [](const std::string& code, const std::string& device, const std::string& compiler) {
    return kFile + "the model is compiled for " + device + ": custom operator '" + code +
           "' ('y') holds a program for it; pack the .tflite file that " + compiler + " was given\n" +
           "1 operator that qplan does not import: custom operator '" + code + "' ('y')";
  };
  EXPECT_EQ(custom_error("edgetpu-custom-op"),
            expected("edgetpu-custom-op", "the Coral Edge TPU", "edgetpu_compiler"));
  EXPECT_EQ(custom_error("NeutronGraph"),
            expected("NeutronGraph", "NXP's eIQ Neutron NPU", "neutron-converter"));
  EXPECT_EQ(custom_error("vsi-npu"), expected("vsi-npu", "a VeriSilicon NPU", "its compiler"));
  EXPECT_EQ(
      custom_error("ethos-v"),
      kFile +
          "TFLite's converter left custom operators: give them with --custom-operators LIB "
          "(docs/custom-operators.md), replace them by builtin ones, or pack a part of the model without "
          "them (--end-at, --begin-at) and run the rest in the application\n"
          "1 operator that qplan does not import: custom operator 'ethos-v' ('y')");
}

// A fully connected layer of these types, [1, 2] times [2, 2], and an operator that is not imported.
std::string layer_error(tflite::TensorType activation, tflite::TensorType weights, size_t weight_bytes) {
  TfliteBuilder b;
  const int32_t x =
      b.tensor({.name = "x", .type = activation, .shape = {1, 2}, .scales = {0.5f}, .zero_points = {0}});
  const int32_t w = b.tensor({.name = "w",
                              .type = weights,
                              .shape = {2, 2},
                              .scales = {0.5f},
                              .zero_points = {0},
                              .data = std::vector<uint8_t>(4 * weight_bytes, 1)});
  const int32_t y =
      b.tensor({.name = "y", .type = activation, .shape = {1, 2}, .scales = {0.5f}, .zero_points = {0}});
  b.op(tflite::BuiltinOperator_FULLY_CONNECTED, {x, w}, {y}, tflite::BuiltinOptions_FullyConnectedOptions,
       tflite::CreateFullyConnectedOptions(b.fbb()).Union());
  const int32_t z =
      b.tensor({.name = "z", .type = activation, .shape = {1, 2}, .scales = {0.5f}, .zero_points = {0}});
  b.op(tflite::BuiltinOperator_ATAN2, {y}, {z});
  return import_error(b.finish({x}, {z}));
}

TEST(TfliteModelKind, TheQuantisationIsSaidFirst) {
  const std::string how =
      "; quantise it fully: give the TFLite converter a representative dataset and int8 as the type of "
      "operators, "
      "inputs and outputs\n";
  EXPECT_EQ(layer_error(tflite::TensorType_FLOAT32, tflite::TensorType_INT8, 1),
            kFile +
                "the model has dynamic range quantisation: its one operator with weights (first 'y') has "
                "integer "
                "weights and float32 activations, whose scales only the run would give" +
                how + "1 operator that qplan does not import: ATAN2 ('z')");
  EXPECT_EQ(layer_error(tflite::TensorType_FLOAT32, tflite::TensorType_FLOAT32, 4),
            kFile +
                "the model is not quantised: its one operator with weights (first 'y') computes in float32" +
                how + "1 operator that qplan does not import: ATAN2 ('z')");
  EXPECT_EQ(layer_error(tflite::TensorType_INT16, tflite::TensorType_INT16, 2),
            kFile +
                "the model has int16 activations (16x8 quantisation) in its one operator with weights "
                "(first 'y'), for which some of its operators have no kernel; quantise it with int8 "
                "activations\n"
                "2 operators that qplan does not import:\n"
                "  1 x ATAN2 ('z')\n"
                "  1 x FULLY_CONNECTED with int16 weights ('y')");
}

TEST(TfliteModelKind, Float16WeightsAreNamed) {
  TfliteBuilder b;
  const int32_t x = b.tensor({.name = "x", .type = tflite::TensorType_FLOAT32, .shape = {1, 1}});
  const int32_t half =
      b.tensor({.name = "h", .type = tflite::TensorType_FLOAT16, .shape = {1, 1}, .data = {0, 60}});
  const int32_t w = b.tensor({.name = "w", .type = tflite::TensorType_FLOAT32, .shape = {1, 1}});
  const int32_t y = b.tensor({.name = "y", .type = tflite::TensorType_FLOAT32, .shape = {1, 1}});
  b.op(tflite::BuiltinOperator_DEQUANTIZE, {half}, {w});
  b.op(tflite::BuiltinOperator_FULLY_CONNECTED, {x, w}, {y}, tflite::BuiltinOptions_FullyConnectedOptions,
       tflite::CreateFullyConnectedOptions(b.fbb()).Union());
  const int32_t z = b.tensor({.name = "z", .type = tflite::TensorType_FLOAT32, .shape = {1, 1}});
  b.op(tflite::BuiltinOperator_ATAN2, {y}, {z});
  const std::string error = import_error(b.finish({x}, {z}));
  EXPECT_TRUE(error.starts_with(kFile +
                                "the model is not quantised: its one operator with weights (first 'y') "
                                "computes in float32, with weights stored as float16; quantise"))
      << error;
}

TEST(TfliteModelKind, StringsAreNamed) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {2}, 0.5f, 0);
  const int32_t s = b.tensor({.name = "words", .type = tflite::TensorType_STRING, .shape = {2}});
  b.op(tflite::BuiltinOperator_HASHTABLE_LOOKUP, {x}, {s});
  EXPECT_EQ(import_error(b.finish({x}, {s})),
            kFile +
                "the model works on strings (tensor 'words'); pack the part of it that works on numbers\n"
                "1 operator that qplan does not import: HASHTABLE_LOOKUP ('words')");
  TfliteBuilder in;
  const int32_t text = in.tensor({.name = "text", .type = tflite::TensorType_STRING, .shape = {1}});
  EXPECT_EQ(import_error(in.finish({text}, {text})),
            kFile +
                "qplan runs networks on numbers: pack the part of the model after its texts became numbers "
                "(--begin-at)\n"
                "1 operator that qplan does not import: input of type string ('text')");
}

TEST(TfliteModelKind, OperatorsBehindStringsAreListed) {
  TfliteBuilder b;
  const int32_t text = b.tensor({.name = "text", .type = tflite::TensorType_STRING, .shape = {1}});
  const int32_t ids = b.tensor({.name = "ids", .type = tflite::TensorType_INT32, .shape = {1}});
  const int32_t x = b.activation("x", {2}, 0.5f, 0), y = b.activation("y", {2}, 0.5f, 0);
  b.op(tflite::BuiltinOperator_HASHTABLE_LOOKUP, {text}, {ids});
  b.op(tflite::BuiltinOperator_ATAN2, {x}, {y});
  EXPECT_EQ(import_error(b.finish({text, x}, {ids, y})),
            kFile +
                "the model works on strings (tensor 'text'); pack the part of it that works on numbers\n"
                "qplan runs networks on numbers: pack the part of the model after its texts became numbers "
                "(--begin-at)\n"
                "3 operators that qplan does not import:\n"
                "  1 x ATAN2 ('y')\n"
                "  1 x HASHTABLE_LOOKUP ('ids')\n"
                "  1 x input of type string ('text')");
}

// main: y = WHILE(x), whose condition is LESS, and whose body is an IF of two branches; the branches are in
// it twice.
TEST(TfliteModelKind, OperatorsInsideOfLoopsAndBranchesAreListed) {
  TfliteBuilder b;
  const auto tensor = [&](const char* name) { return b.activation(name, {1}, 0.5f, 0); };
  int32_t x = tensor("x"), y = tensor("y");
  b.op(tflite::BuiltinOperator_WHILE, {x}, {y}, tflite::BuiltinOptions_WhileOptions,
       tflite::CreateWhileOptions(b.fbb(), 1, 2).Union());
  b.end_subgraph({x}, {y});
  x = tensor("c");
  y = b.tensor({.name = "less", .type = tflite::TensorType_BOOL, .shape = {1}});
  b.op(tflite::BuiltinOperator_LESS, {x, x}, {y});
  b.end_subgraph({x}, {y});
  x = tensor("i"), y = tensor("either");
  b.op(tflite::BuiltinOperator_IF, {x, x}, {y}, tflite::BuiltinOptions_IfOptions,
       tflite::CreateIfOptions(b.fbb(), 3, 3).Union());
  b.op(tflite::BuiltinOperator_IF, {x, x}, {y}, tflite::BuiltinOptions_IfOptions,
       tflite::CreateIfOptions(b.fbb(), 2, 99).Union());
  b.end_subgraph({x}, {y});
  x = tensor("t"), y = tensor("sum");
  b.op(tflite::BuiltinOperator_ADD, {x, x}, {y});
  EXPECT_EQ(
      import_error(b.finish({x}, {y})),
      kFile +
          "branches are imported where all operators inside both are; else export the model with the branch "
          "that is meant\n"
          "a loop is unrolled where the number of its rounds is known when the model is packed; else unroll "
          "it "
          "(`unroll=True` of Keras's recurrent layers), or export the body alone\n"
          "5 operators that qplan does not import:\n"
          "  2 x IF inside WHILE (first 'either')\n"
          "  1 x ADD inside IF ('sum')\n"
          "  1 x LESS inside WHILE ('less')\n"
          "  1 x WHILE with a number of rounds that the data decides ('y')");
}

TEST(TfliteModelKind, AListWithoutANoteEndsWithWhatToDo) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {2}, 0.5f, 0), y = b.activation("y", {2}, 0.5f, 0);
  b.op(tflite::BuiltinOperator_ATAN2, {x}, {y});
  std::string error;
  try {
    import_tflite(b.finish({x}, {y}), "net.tflite");
  } catch (const PackError& caught) {
    error = caught.what();
  }
  EXPECT_EQ(error,
            "tflite: 'net.tflite': 1 operator that qplan does not import: ATAN2 ('y')\n"
            "to do: replace these operators in the model, or pack a part of it without them (--end-at, "
            "--begin-at) and "
            "run the rest in the application; `qplan pack MODEL --coverage` prints the share of the model "
            "that runs");
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_model_kind_test
