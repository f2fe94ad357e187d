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

// Constants of which each takes 1 MiB once it is decoded.
TensorSpec four_bits(TfliteBuilder&) {
  return {.name = "w",
          .type = tflite::TensorType_INT4,
          .shape = {1 << 20},
          .data = std::vector<uint8_t>(1 << 19)};
}
TensorSpec one_of_many(TfliteBuilder& b) {
  const std::vector<int32_t> order = {0};
  const auto list = [&](const std::vector<int32_t>& values) {
    return tflite::CreateInt32VectorDirect(b.fbb(), &values).Union();
  };
  const auto segments = list({0, 1}), indices = list({7});
  const std::vector<flatbuffers::Offset<tflite::DimensionMetadata>> levels = {tflite::CreateDimensionMetadata(
      b.fbb(), tflite::DimensionType_SPARSE_CSR, 0, tflite::SparseIndexVector_Int32Vector, segments,
      tflite::SparseIndexVector_Int32Vector, indices)};
  return {.name = "w",
          .shape = {1 << 20},
          .data = {1},
          .sparsity = tflite::CreateSparsityParametersDirect(b.fbb(), &order, nullptr, &levels)};
}

// Each operator below is refused by the quantisation of its operand, which the importer has to decode for
// that. All operands share the first one's buffer and description.
std::string error_of_operators(TensorSpec (*constant)(TfliteBuilder&), int num_operators) {
  TfliteBuilder b;
  std::vector<int32_t> outputs;
  const int32_t x = b.activation("x", {1, 4}, 0.5f, 0);
  TensorSpec operand = constant(b);
  for (int i = 0; i < num_operators; ++i) {
    const int32_t w = b.tensor(operand);
    operand.data.clear();
    operand.buffer = 1;
    outputs.push_back(b.activation("y", {1, 4}, 0.5f, 0));
    b.op(tflite::BuiltinOperator_RSQRT, {w}, {outputs.back()});
  }
  return import_error(b.finish({x}, outputs));
}

void expect_listed(const std::string& error, const std::string& count) {
  EXPECT_NE(error.find(count + " that qplan does not import"), std::string::npos) << error;
}

// Operators after the first one that is not imported are listed where their tensors can be read. The limit is
// an error all the same.
void expect_limit(const std::string& error) {
  EXPECT_NE(error.find("-48: tflite: 'net.tflite': operator "), std::string::npos) << error;
  EXPECT_NE(error.find(" 'w': with it, the sparse constants and those of 4 bits take more than "),
            std::string::npos)
      << error;
  EXPECT_NE(error.find(" bytes, 1 MiB and 64 times the file's size"), std::string::npos) << error;
}

TEST(TfliteHostile, TensorsOfFourBitsThatShareABufferAreLimitedTogether) {
  expect_listed(error_of_operators(four_bits, 4), "4 operators");
  expect_limit(error_of_operators(four_bits, 200));
}

TEST(TfliteHostile, SparseTensorsThatShareABufferAreLimitedTogether) {
  expect_listed(error_of_operators(one_of_many, 1), "operator");
  expect_limit(error_of_operators(one_of_many, 200));
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_hostile_test
