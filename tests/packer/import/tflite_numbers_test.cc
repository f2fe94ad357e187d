// CAST of bool, scalars, reductions along no axis, int32: what models compute, against TFLite 2.9's results.
#include <gtest/gtest.h>

#include <cmath>

#include "src/packer/pipeline/pipeline.h"
#include "tests/models/model_session.h"
#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::tflite_test::tflite_numbers_test {
namespace {

using Ints = std::vector<int32_t>;

const std::string kList = "-49: tflite: 'net.tflite': 1 operator that qplan does not import: ";

// The first output of a model, through packer and runtime.
template <typename T>
std::vector<T> run(const std::vector<uint8_t>& model, const std::vector<std::vector<uint8_t>>& inputs) {
  const AlignedBytes plan = pack(model, "net.tflite", {});
  testing::ModelSession session({plan.data(), plan.data() + plan.size()}, QPLAN_ISA_AUTO, 1);
  const std::vector<uint8_t> bytes = session.run(inputs).at(0);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// ---- bool ----

// x of one type becomes y of another.
template <typename To, typename From>
std::vector<To> cast_by_model(tflite::TensorType from, tflite::TensorType to, const std::vector<From>& x) {
  TfliteBuilder b;
  const auto extent = static_cast<int32_t>(x.size());
  const int32_t in = b.tensor({.name = "x", .type = from, .shape = {extent}});
  const int32_t out = b.tensor({.name = "y", .type = to, .shape = {extent}});
  b.op(tflite::BuiltinOperator_CAST, {in}, {out});
  return run<To>(b.finish({in}, {out}), {bytes_of(x)});
}

TEST(TfliteCast, NumbersBecomeWhetherTheyAreNot0) {
  const std::vector<uint8_t> expected = {0, 1, 1, 1};
  const auto to = tflite::TensorType_BOOL;
  EXPECT_EQ(cast_by_model<uint8_t>(tflite::TensorType_INT8, to, std::vector<int8_t>{0, 1, 2, -1}), expected);
  EXPECT_EQ(cast_by_model<uint8_t>(tflite::TensorType_UINT8, to, std::vector<uint8_t>{0, 1, 2, 255}),
            expected);
  EXPECT_EQ(cast_by_model<uint8_t>(tflite::TensorType_INT16, to, std::vector<int16_t>{0, 256, 2, -1}),
            expected);
  EXPECT_EQ(cast_by_model<uint8_t>(tflite::TensorType_INT32, to, std::vector<int32_t>{0, 1, 1 << 30, -1}),
            expected);
  EXPECT_EQ(
      cast_by_model<uint8_t>(tflite::TensorType_INT64, to, std::vector<int64_t>{0, 1, int64_t{1} << 40, -1}),
      expected);
  EXPECT_EQ(cast_by_model<uint8_t>(tflite::TensorType_FLOAT32, to, std::vector<float>{-0.0f, 0.3f, NAN, -7}),
            expected);
}

TEST(TfliteCast, BoolBecomes0And1) {
  const std::vector<uint8_t> x = {0, 1, 1, 0};
  const auto from = tflite::TensorType_BOOL;
  EXPECT_EQ(cast_by_model<uint8_t>(from, tflite::TensorType_BOOL, x), x);
  EXPECT_EQ(cast_by_model<uint8_t>(from, tflite::TensorType_UINT8, x), x);
  EXPECT_EQ(cast_by_model<int8_t>(from, tflite::TensorType_INT8, x), (std::vector<int8_t>{0, 1, 1, 0}));
  EXPECT_EQ(cast_by_model<int16_t>(from, tflite::TensorType_INT16, x), (std::vector<int16_t>{0, 1, 1, 0}));
  EXPECT_EQ(cast_by_model<int32_t>(from, tflite::TensorType_INT32, x), (std::vector<int32_t>{0, 1, 1, 0}));
  EXPECT_EQ(cast_by_model<int64_t>(from, tflite::TensorType_INT64, x), (std::vector<int64_t>{0, 1, 1, 0}));
  EXPECT_EQ(cast_by_model<float>(from, tflite::TensorType_FLOAT32, x), (std::vector<float>{0, 1, 1, 0}));
}

// ---- a model's input that is one number ----

TEST(TfliteScalar, IsAnInput) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {}, 0.1f, 3), y = b.activation("y", {1}, 0.1f, 3);
  b.op(tflite::BuiltinOperator_RESHAPE, {x, b.ints("shape", {1})}, {y});
  EXPECT_EQ(run<int8_t>(b.finish({x}, {y}), {{5}}), (std::vector<int8_t>{5}));
}

TEST(TfliteScalar, IsNoInputOfAnUnknownShape) {
  TfliteBuilder b;
  const int32_t x =
      b.tensor({.name = "x", .shape = {}, .scales = {0.1f}, .zero_points = {3}, .signature = {-1, 4}});
  EXPECT_EQ(import_error(b.finish({x}, {x})), kList + "input without a shape ('x')");
}

// ---- reductions along no axis ----

std::vector<uint8_t> reduction_along_nothing(int32_t code, float out_scale, int64_t out_zero_point,
                                             bool keeps = true) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {2, 3}, 0.1f, 3);
  const int32_t y = b.activation("y", {2, 3}, out_scale, out_zero_point);
  b.op(code, {x, b.ints("axes", {})}, {y}, tflite::BuiltinOptions_ReducerOptions,
       tflite::CreateReducerOptions(b.fbb(), keeps).Union());
  return b.finish({x}, {y});
}

const std::vector<int8_t> kReduced = {-128, -1, 0, 3, 5, 127};

TEST(TfliteReductions, AlongNoAxisCopy) {
  for (const int32_t code :
       {tflite::BuiltinOperator_MEAN, tflite::BuiltinOperator_SUM, tflite::BuiltinOperator_REDUCE_MAX,
        tflite::BuiltinOperator_REDUCE_MIN, tflite::BuiltinOperator_REDUCE_PROD}) {
    for (const bool keeps : {true, false}) {
      EXPECT_EQ(run<int8_t>(reduction_along_nothing(code, 0.1f, 3, keeps), {bytes_of(kReduced)}), kReduced)
          << code;
    }
  }
}

TEST(TfliteReductions, AProductAlongNoAxisRequantises) {
  const auto product = [](float scale, int64_t zero_point) {
    return run<int8_t>(reduction_along_nothing(tflite::BuiltinOperator_REDUCE_PROD, scale, zero_point),
                       {bytes_of(kReduced)});
  };
  EXPECT_EQ(product(0.25f, 7), (std::vector<int8_t>{-45, 5, 6, 7, 8, 57}));
  EXPECT_EQ(product(0.03f, -2), (std::vector<int8_t>{-128, -15, -12, -2, 5, 127}));
  const std::string why = " with no axes and an output of another quantisation ('y')";
  EXPECT_EQ(import_error(reduction_along_nothing(tflite::BuiltinOperator_MEAN, 0.25f, 7)),
            kList + "MEAN" + why);
  EXPECT_EQ(import_error(reduction_along_nothing(tflite::BuiltinOperator_SUM, 0.25f, 7)),
            kList + "SUM" + why);
}

// ---- int32 ----

TEST(TfliteInt32, MaximumAndMinimumBroadcast) {
  const auto chosen = [](int32_t code) {
    TfliteBuilder b;
    const int32_t x = b.tensor({.name = "x", .type = tflite::TensorType_INT32, .shape = {3}});
    const int32_t y = b.tensor({.name = "y", .type = tflite::TensorType_INT32, .shape = {3}});
    b.op(code, {x, b.ints("c", {7})}, {y});
    return run<int32_t>(b.finish({x}, {y}), {bytes_of(Ints{-32768, 5, 1 << 30})});
  };
  EXPECT_EQ(chosen(tflite::BuiltinOperator_MAXIMUM), (Ints{7, 7, 1 << 30}));
  EXPECT_EQ(chosen(tflite::BuiltinOperator_MINIMUM), (Ints{-32768, 5, 7}));
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_numbers_test
