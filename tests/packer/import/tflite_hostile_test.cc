// Small .tflite files that ask for unbounded work or memory.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::tflite_test::tflite_hostile_test {
namespace {

// A loop whose condition is the constant true, and whose body has no operator.
TEST(TfliteHostile, LoopsWithoutOperatorsEnd) {
  TfliteBuilder b;
  const auto value = [&] { return b.activation("x", {4}, 0.5f, 0); };
  const int32_t x = value(), y = value();
  b.op(tflite::BuiltinOperator_WHILE, {x}, {y}, tflite::BuiltinOptions_WhileOptions,
       tflite::CreateWhileOptions(b.fbb(), 1, 2).Union());
  b.end_subgraph({x}, {y});
  const int32_t before = value();
  const int32_t yes = b.tensor({.name = "yes", .type = tflite::TensorType_BOOL, .shape = {1}, .data = {1}});
  b.end_subgraph({before}, {yes});
  const int32_t kept = value();
  const std::string error = import_error(b.finish({kept}, {kept}));
  EXPECT_NE(error.find("WHILE with more rounds than are worth unrolling"), std::string::npos) << error;
}

// Each operator below is refused by the dtype of its weights, which the importer has to decode for that.
std::string error_of_operators(const TensorSpec& weights, int num_operators) {
  TfliteBuilder b;
  std::vector<int32_t> outputs;
  const int32_t x = b.activation("x", {1, 4}, 0.5f, 0);
  const int32_t first = b.tensor(weights);
  uint32_t buffer = 1;
  for (int i = 0; i < num_operators; ++i) {
    const int32_t w = i == 0 ? first
                             : b.tensor({.name = "w",
                                         .type = weights.type,
                                         .shape = weights.shape,
                                         .sparsity = weights.sparsity,
                                         .buffer = buffer});
    outputs.push_back(b.activation("y", {1, 4}, 0.5f, 0));
    b.op(tflite::BuiltinOperator_RSQRT, {w}, {outputs.back()});
  }
  return import_error(b.finish({x}, outputs));
}

TEST(TfliteHostile, TensorsOfFourBitsThatShareABufferAreLimitedTogether) {
  const TensorSpec weights = {.name = "w",
                              .type = tflite::TensorType_INT4,
                              .shape = {1 << 20},
                              .data = std::vector<uint8_t>(1 << 19)};
  const std::string few = error_of_operators(weights, 4), many = error_of_operators(weights, 200);
  // Operators after the first one that is not imported are only listed where their tensors can be read.
  EXPECT_NE(few.find("4 operators that qplan does not import"), std::string::npos) << few;
  EXPECT_EQ(many.find("200 operators"), std::string::npos) << many;
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_hostile_test
