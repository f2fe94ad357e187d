// Variables of TFLite models: which of them are refused, and which are one. What states compute is in the
// tests of the pipeline.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/import/import.h"
#include "src/packer/ir/module.h"
#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::tflite_test::tflite_variables_test {
namespace {

int32_t handle_of(TfliteBuilder& b, const char* container, const char* shared_name) {
  const int32_t handle = b.tensor({.name = "handle", .type = tflite::TensorType_RESOURCE});
  b.op(tflite::BuiltinOperator_VAR_HANDLE, {}, {handle}, tflite::BuiltinOptions_VarHandleOptions,
       tflite::CreateVarHandleOptionsDirect(b.fbb(), container, shared_name).Union());
  return handle;
}
int32_t input_of(TfliteBuilder& b) { return b.activation("x", {1, 4}, 0.5f, 0); }
int32_t number(TfliteBuilder& b, const char* name, const std::vector<int32_t>& values = {}) {
  return b.tensor({.name = name, .type = tflite::TensorType_INT32, .data = bytes_of(values)});
}
int32_t boolean(TfliteBuilder& b, const char* name) {
  return b.tensor({.name = name, .type = tflite::TensorType_BOOL});
}

// Adds the operators of a subgraph; x: its input, which it may return.
using BodyOf = std::function<int32_t(TfliteBuilder& b, int32_t x)>;

// IF, of which the data decides the branch; the other one returns x.
std::vector<uint8_t> in_if(const BodyOf& body) {
  TfliteBuilder b;
  const int32_t x = input_of(b),
                condition = b.tensor({.name = "condition", .type = tflite::TensorType_BOOL, .shape = {1}}),
                y = b.activation("y", {1, 4}, 0.5f, 0);
  b.op(tflite::BuiltinOperator_IF, {condition, x}, {y}, tflite::BuiltinOptions_IfOptions,
       tflite::CreateIfOptions(b.fbb(), 1, 2).Union());
  b.end_subgraph({condition, x}, {y});
  const int32_t in = input_of(b);
  const int32_t out = body(b, in);
  b.end_subgraph({in}, {out});
  const int32_t other = input_of(b);
  return b.finish({other}, {other});
}

// WHILE of two rounds.
std::vector<uint8_t> in_while(const BodyOf& body) {
  TfliteBuilder b;
  const int32_t x = input_of(b), y = b.activation("y", {1, 4}, 0.5f, 0);
  b.op(tflite::BuiltinOperator_WHILE, {number(b, "zero", {0}), x}, {number(b, "end"), y},
       tflite::BuiltinOptions_WhileOptions, tflite::CreateWhileOptions(b.fbb(), 1, 2).Union());
  b.end_subgraph({x}, {y});
  const int32_t i = number(b, "i"), kept = input_of(b), goes_on = boolean(b, "goes_on");
  b.op(tflite::BuiltinOperator_LESS, {i, number(b, "two", {2})}, {goes_on});
  b.end_subgraph({i, kept}, {goes_on});
  const int32_t round = number(b, "i"), in = input_of(b), next = number(b, "next");
  b.op(tflite::BuiltinOperator_ADD, {round, number(b, "one", {1})}, {next}, tflite::BuiltinOptions_AddOptions,
       tflite::CreateAddOptions(b.fbb()).Union());
  const int32_t out = body(b, in);
  return b.finish({round, in}, {next, out});
}

void expect_refused(const BodyOf& body, const std::string& op) {
  const std::string reason = " with a variable of a subgraph (";
  for (const auto& [error, name] :
       {std::pair(import_error(in_if(body)), "IF"), {import_error(in_while(body)), "WHILE"}}) {
    EXPECT_EQ(error.find("-49: "), 0u) << error;
    EXPECT_NE(error.find(std::string(name) + " with " + op + " inside " + name + reason), std::string::npos)
        << error;
  }
}

TEST(TfliteVariablesOfSubgraphs, HandlesAreRefused) {
  expect_refused(
      [](TfliteBuilder& b, int32_t x) {
        handle_of(b, "", "v");
        return x;
      },
      "VAR_HANDLE");
}

TEST(TfliteVariablesOfSubgraphs, ReadsAreRefused) {
  expect_refused(
      [](TfliteBuilder& b, int32_t) {
        const int32_t handle = handle_of(b, "", "v"), y = b.activation("read", {1, 4}, 0.5f, 0);
        b.op(tflite::BuiltinOperator_READ_VARIABLE, {handle}, {y});
        return y;
      },
      "VAR_HANDLE");
}

TEST(TfliteVariablesOfSubgraphs, AssignmentsAreRefused) {
  expect_refused(
      [](TfliteBuilder& b, int32_t x) {
        b.op(tflite::BuiltinOperator_ASSIGN_VARIABLE, {handle_of(b, "", "v"), x}, {});
        return x;
      },
      "VAR_HANDLE");
}

TEST(TfliteVariablesOfSubgraphs, StatesOfOperatorsAreRefused) {
  expect_refused(
      [](TfliteBuilder& b, int32_t x) {
        const auto weights = [&](const char* name, tflite::TensorType type, std::vector<int32_t> shape,
                                 std::vector<uint8_t> data) {
          return b.tensor({.name = name,
                           .type = type,
                           .shape = std::move(shape),
                           .scales = {1.0f},
                           .zero_points = {0},
                           .data = std::move(data)});
        };
        const int32_t feature =
            weights("feature", tflite::TensorType_INT8, {4, 4}, std::vector<uint8_t>(16, 1));
        const int32_t time = weights("time", tflite::TensorType_INT16, {4, 2}, std::vector<uint8_t>(16, 1));
        const int32_t state = b.tensor({.name = "state",
                                        .type = tflite::TensorType_INT16,
                                        .shape = {1, 8},
                                        .scales = {1.0f},
                                        .zero_points = {0},
                                        .is_variable = true});
        const int32_t y = b.activation("sum", {1, 4}, 0.5f, 0);
        b.op(tflite::BuiltinOperator_SVDF, {x, feature, time, -1, state}, {y},
             tflite::BuiltinOptions_SVDFOptions, tflite::CreateSVDFOptions(b.fbb(), 1).Union());
        return y;
      },
      "SVDF");
}

TEST(TfliteVariablesOfSubgraphs, FirstValuesAreRefused) {
  expect_refused(
      [](TfliteBuilder& b, int32_t x) {
        b.op(tflite::BuiltinOperator_CALL_ONCE, {}, {}, tflite::BuiltinOptions_CallOnceOptions,
             tflite::CreateCallOnceOptions(b.fbb(), 1).Union());
        return x;
      },
      "CALL_ONCE");
}

TEST(TfliteVariablesOfSubgraphs, WhatALoopCarriesIsNone) {
  const BodyOf body = [](TfliteBuilder& b, int32_t x) {
    const int32_t y = b.activation("step", {1, 4}, 0.5f, 0);
    b.op(tflite::BuiltinOperator_RELU, {x}, {y});
    return y;
  };
  EXPECT_EQ(import_error(in_while(body)), "imported");
  EXPECT_EQ(import_error(in_if(body)), "imported");
}

// "a/b" with "c", and "a" with "b/c": two variables, which delay x by one run and by two.
TEST(TfliteVariableNames, ContainerAndNameAreApart) {
  TfliteBuilder b;
  const int32_t x = input_of(b), y = b.activation("y", {1, 4}, 0.5f, 0),
                z = b.activation("z", {1, 4}, 0.5f, 0);
  const int32_t first = handle_of(b, "a/b", "c"), second = handle_of(b, "a", "b/c");
  b.op(tflite::BuiltinOperator_READ_VARIABLE, {first}, {y});
  b.op(tflite::BuiltinOperator_READ_VARIABLE, {second}, {z});
  b.op(tflite::BuiltinOperator_ASSIGN_VARIABLE, {first, x}, {});
  b.op(tflite::BuiltinOperator_ASSIGN_VARIABLE, {second, y}, {});
  EXPECT_EQ(ir::states_of(import_tflite(b.finish({x}, {y, z}), "net.tflite").main()).size(), 2u);
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_variables_test
