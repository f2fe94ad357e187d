// Shape arithmetic: integers that are computed on import, against values that follow from TFLite's
// definitions by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/packer/import/import.h"
#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::tflite_test::tflite_shapes_test {
namespace {

using Ints = std::vector<int32_t>;

const std::string kList = "-49: tflite: 'net.tflite': 1 operator that qplan does not import: ";
const std::string kBroken = "-48: tflite: 'net.tflite': operator 0 ";

int32_t plain(TfliteBuilder& b, const std::string& name, Ints shape, tflite::TensorType type) {
  return b.tensor({.name = name, .type = type, .shape = std::move(shape)});
}

TEST(TfliteShapes, TheRankIsANumber) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 4, 3}, 0.5f, 0), y = b.activation("y", {3, 4}, 0.5f, 0);
  const int32_t rank = b.tensor({.name = "rank", .type = tflite::TensorType_INT32, .shape = {}});
  const int32_t shape = b.tensor({.name = "shape", .type = tflite::TensorType_INT32, .shape = {2}});
  const int32_t four =
      b.tensor({.name = "four", .type = tflite::TensorType_INT32, .data = bytes_of<int32_t>({4})});
  b.op(tflite::BuiltinOperator_RANK, {x}, {rank});
  b.op(tflite::BuiltinOperator_PACK, {rank, four}, {shape}, tflite::BuiltinOptions_PackOptions,
       tflite::CreatePackOptions(b.fbb(), 2, 0).Union());
  b.op(tflite::BuiltinOperator_RESHAPE, {x, shape}, {y});
  EXPECT_EQ(import_body(b.finish({x}, {y})), "%0 = reshape(%x, newshape=[3, 4]);\n%0\n");
}

// x [1, 4, 3] -> SHAPE -> STRIDED_SLICE [0] -> PACK with the constant -1 -> RESHAPE to [1, -1], whose shape
// the file leaves open.
TEST(TfliteShapes, AReshapeByAComputedShape) {
  TfliteBuilder b;
  const int32_t x = b.tensor(
      {.name = "x", .shape = {1, 4, 3}, .scales = {0.5f}, .zero_points = {0}, .signature = {-1, 4, 3}});
  const int32_t shape = plain(b, "shape", {3}, tflite::TensorType_INT32);
  const int32_t batch = plain(b, "batch", {}, tflite::TensorType_INT32);
  const int32_t rest =
      b.tensor({.name = "rest", .type = tflite::TensorType_INT32, .shape = {}, .data = bytes_of(Ints{-1})});
  const int32_t newshape = plain(b, "newshape", {2}, tflite::TensorType_INT32);
  const int32_t y =
      b.tensor({.name = "y", .shape = {1, 1}, .scales = {0.5f}, .zero_points = {0}, .signature = {-1, -1}});
  b.op(tflite::BuiltinOperator_SHAPE, {x}, {shape});
  b.op(tflite::BuiltinOperator_STRIDED_SLICE, {shape, b.ints("b", {0}), b.ints("e", {1}), b.ints("s", {1})},
       {batch}, tflite::BuiltinOptions_StridedSliceOptions,
       tflite::CreateStridedSliceOptions(b.fbb(), 0, 0, 0, 0, 1).Union());
  b.op(tflite::BuiltinOperator_PACK, {batch, rest}, {newshape}, tflite::BuiltinOptions_PackOptions,
       tflite::CreatePackOptions(b.fbb(), 2, 0).Union());
  b.op(tflite::BuiltinOperator_RESHAPE, {x, newshape}, {y});
  EXPECT_EQ(import_body(b.finish({x}, {y})), "%0 = reshape(%x, newshape=[1, -1]);\n%0\n");
}

// What each operator of two integers gives for (-7, 2), as an extent of RESHAPE would see it.
int32_t folded(int32_t code, int32_t a, int32_t b_value) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 4}, 0.5f, 0);
  const int32_t c = plain(b, "c", {1}, tflite::TensorType_INT32);
  b.op(code, {b.ints("a", {a}), b.ints("b", {b_value})}, {c});
  const ir::Module module = import_tflite(b.finish({x}, {c}), "net.tflite");
  return module.main().value(module.main().outputs()[0]).constant->as<int32_t>()[0];
}

TEST(TfliteShapes, IntegersAreComputedOnImport) {
  EXPECT_EQ(folded(tflite::BuiltinOperator_ADD, -7, 2), -5);
  EXPECT_EQ(folded(tflite::BuiltinOperator_SUB, -7, 2), -9);
  EXPECT_EQ(folded(tflite::BuiltinOperator_MUL, -7, 2), -14);
  EXPECT_EQ(folded(tflite::BuiltinOperator_DIV, -7, 2), -3);
  EXPECT_EQ(folded(tflite::BuiltinOperator_FLOOR_DIV, -7, 2), -4);
  EXPECT_EQ(folded(tflite::BuiltinOperator_FLOOR_MOD, -7, 2), 1);
  EXPECT_EQ(folded(tflite::BuiltinOperator_FLOOR_MOD, -7, -1), 0);
  EXPECT_EQ(folded(tflite::BuiltinOperator_DIV, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(folded(tflite::BuiltinOperator_MAXIMUM, -7, 2), 2);
  EXPECT_EQ(folded(tflite::BuiltinOperator_MINIMUM, -7, 2), -7);
  EXPECT_EQ(folded(tflite::BuiltinOperator_MUL, INT32_MAX, 2), -2);
}

TEST(TfliteShapes, AnIntegerDividedBy0IsRefused) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 4}, 0.5f, 0);
  const int32_t c = plain(b, "c", {1}, tflite::TensorType_INT32);
  b.op(tflite::BuiltinOperator_FLOOR_DIV, {b.ints("a", {1}), b.ints("b", {0})}, {c});
  EXPECT_EQ(import_error(b.finish({x}, {c})), kBroken + "FLOOR_DIV 'c': an integer is divided by 0");
}

std::vector<int32_t> constant_result(const std::vector<uint8_t>& model) {
  const ir::Module module = import_tflite(model, "net.tflite");
  const ir::ConstantRef constant = module.main().value(module.main().outputs()[0]).constant;
  if (constant == nullptr) return {};
  const auto values = constant->as<int32_t>();
  return {values.begin(), values.end()};
}

// TFLite's DIV truncates, then clamps.
TEST(TfliteShapes, AQuotientIsClampedByItsActivation) {
  const auto quotient = [](tflite::ActivationFunctionType activation) {
    TfliteBuilder b;
    const int32_t x = b.activation("x", {1, 4}, 0.5f, 0);
    const int32_t c = plain(b, "c", {3}, tflite::TensorType_INT32);
    b.op(tflite::BuiltinOperator_DIV, {b.ints("a", {-7, 7, 20}), b.ints("b", {2})}, {c},
         tflite::BuiltinOptions_DivOptions, tflite::CreateDivOptions(b.fbb(), activation).Union());
    return b.finish({x}, {c});
  };
  EXPECT_EQ(constant_result(quotient(tflite::ActivationFunctionType_NONE)), (Ints{-3, 3, 10}));
  EXPECT_EQ(constant_result(quotient(tflite::ActivationFunctionType_RELU)), (Ints{0, 3, 10}));
  EXPECT_EQ(constant_result(quotient(tflite::ActivationFunctionType_RELU6)), (Ints{0, 3, 6}));
  EXPECT_EQ(constant_result(quotient(tflite::ActivationFunctionType_RELU_N1_TO_1)), (Ints{-1, 1, 1}));
  EXPECT_EQ(import_error(quotient(tflite::ActivationFunctionType_TANH)),
            kList + "DIV with fused activation TANH, which TFLite's kernels leave out ('c')");
}

// A condition of rank 1 chooses rows for SELECT, and broadcasts along the last axis for SELECT_V2.
TEST(TfliteShapes, ChoosesAmongKnownIntegers) {
  const auto chosen = [](int32_t code, const std::vector<uint8_t>& condition, const Ints& shape) {
    TfliteBuilder b;
    const int32_t x = b.activation("x", {1, 4}, 0.5f, 0);
    Ints counted, negative;
    for (int32_t i = 0; i < shape[0] * shape[1]; ++i) {
      counted.push_back(i);
      negative.push_back(-i - 1);
    }
    const auto constant = [&](const char* name, const Ints& values) {
      return b.tensor(
          {.name = name, .type = tflite::TensorType_INT32, .shape = shape, .data = bytes_of(values)});
    };
    const int32_t which = b.tensor({.name = "which",
                                    .type = tflite::TensorType_BOOL,
                                    .shape = {static_cast<int32_t>(condition.size())},
                                    .data = condition});
    const int32_t y = plain(b, "y", shape, tflite::TensorType_INT32);
    b.op(code, {which, constant("a", counted), constant("b", negative)}, {y});
    return constant_result(b.finish({x}, {y}));
  };
  EXPECT_EQ(chosen(tflite::BuiltinOperator_SELECT, {1, 0}, {2, 2}), (Ints{0, 1, -3, -4}));
  EXPECT_EQ(chosen(tflite::BuiltinOperator_SELECT, {1, 0, 1}, {3, 4}),
            (Ints{0, 1, 2, 3, -5, -6, -7, -8, 8, 9, 10, 11}));
  EXPECT_EQ(chosen(tflite::BuiltinOperator_SELECT_V2, {1, 0}, {2, 2}), (Ints{0, -2, 2, -4}));
}

// The product of a part of a shape, cast to int64; a range; what FILL and ZEROS_LIKE make; GATHER and
// CONCATENATION of extents.
TEST(TfliteShapes, ProductsRangesAndFills) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {2, 3, 4}, 0.5f, 0);
  const int32_t shape = plain(b, "shape", {3}, tflite::TensorType_INT32);
  const int32_t two = plain(b, "two", {2}, tflite::TensorType_INT32);
  const int32_t product = plain(b, "product", {1}, tflite::TensorType_INT32);
  const int32_t wide = plain(b, "wide", {1}, tflite::TensorType_INT64);
  const int32_t range = plain(b, "range", {3}, tflite::TensorType_INT32);
  const int32_t both = plain(b, "both", {2}, tflite::TensorType_INT32);
  const int32_t filled = plain(b, "filled", {2, 12}, tflite::TensorType_INT32);
  const int32_t y = b.activation("y", {2, 12}, 0.5f, 0);
  b.op(tflite::BuiltinOperator_SHAPE, {x}, {shape});
  b.op(tflite::BuiltinOperator_GATHER, {shape, b.ints("at", {1, 2})}, {two},
       tflite::BuiltinOptions_GatherOptions, tflite::CreateGatherOptions(b.fbb(), 0).Union());
  b.op(tflite::BuiltinOperator_REDUCE_PROD, {two, b.ints("axis", {0})}, {product},
       tflite::BuiltinOptions_ReducerOptions, tflite::CreateReducerOptions(b.fbb(), true).Union());
  b.op(tflite::BuiltinOperator_CAST, {product}, {wide});
  b.op(tflite::BuiltinOperator_CONCATENATION, {b.ints("first", {2}), product}, {both},
       tflite::BuiltinOptions_ConcatenationOptions, tflite::CreateConcatenationOptions(b.fbb(), 0).Union());
  b.op(tflite::BuiltinOperator_RANGE, {b.ints("from", {7}), b.ints("to", {1}), b.ints("by", {-2})}, {range});
  b.op(tflite::BuiltinOperator_FILL, {both, b.ints("value", {9})}, {filled});
  b.op(tflite::BuiltinOperator_RESHAPE, {x, both}, {y});
  const ir::Module module = import_tflite(b.finish({x}, {y, wide, range, filled}), "net.tflite");
  const auto output = [&](size_t i) { return module.main().value(module.main().outputs()[i]); };
  EXPECT_EQ(output(0).type.shape, (ir::Shape{2, 12}));
  EXPECT_EQ(output(1).constant->as<int64_t>()[0], 12);
  EXPECT_TRUE(std::ranges::equal(output(2).constant->as<int32_t>(), Ints{7, 5, 3}));
  EXPECT_TRUE(std::ranges::equal(output(3).constant->as<int32_t>(), Ints(24, 9)));
}

TEST(TfliteShapes, AnExtentThatOnlyTheRunKnowsIsRefused) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 4}, 0.5f, 0);
  const int32_t shape = plain(b, "shape", {2}, tflite::TensorType_INT32);
  const int32_t y = b.activation("y", {2, 2}, 0.5f, 0);
  b.op(tflite::BuiltinOperator_RESHAPE, {x, shape}, {y});
  EXPECT_EQ(
      import_error(b.finish({x, shape}, {y})),
      "-49: tflite: 'net.tflite': shapes, axes and positions must be known when the model is packed; export "
      "it with fixed input shapes\n"
      "1 operator that qplan does not import: RESHAPE with shape values that are not constant ('y')");
}

TEST(TfliteShapes, AnEmptyListOfExtentsIsAScalar) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 1}, 0.5f, 0);
  const int32_t y = b.tensor({.name = "y", .shape = {}, .scales = {0.5f}, .zero_points = {0}});
  b.op(tflite::BuiltinOperator_RESHAPE, {x, plain(b, "none", {0}, tflite::TensorType_INT32)}, {y});
  EXPECT_EQ(import_body(b.finish({x}, {y})), "%0 = reshape(%x, newshape=[]);\n%0\n");
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_shapes_test
