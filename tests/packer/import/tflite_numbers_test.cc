// CAST and movement of bool, scalars, reductions along no axis, int32, int64: what models compute, against
// TFLite 2.9's results.
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

using Bytes = std::vector<uint8_t>;

// x [2, 3] and what an operator makes of it.
Bytes moved(int32_t code, const std::vector<Ints>& constants, std::vector<int32_t> shape,
            tflite::BuiltinOptions kind = tflite::BuiltinOptions_NONE,
            flatbuffers::Offset<void> (*make)(flatbuffers::FlatBufferBuilder&) = nullptr) {
  TfliteBuilder b;
  const int32_t x = b.tensor({.name = "x", .type = tflite::TensorType_BOOL, .shape = {2, 3}});
  const int32_t y = b.tensor({.name = "y", .type = tflite::TensorType_BOOL, .shape = std::move(shape)});
  std::vector<int32_t> inputs = {x};
  for (const Ints& constant : constants) inputs.push_back(b.ints("c", constant));
  if (constants.empty()) inputs.push_back(x);
  b.op(code, inputs, {y}, kind, make != nullptr ? make(b.fbb()) : flatbuffers::Offset<void>());
  return run<uint8_t>(b.finish({x}, {y}), {{1, 0, 0, 1, 1, 0}});
}

TEST(TfliteBool, MovesAsBytesDo) {
  const Bytes x = {1, 0, 0, 1, 1, 0};
  EXPECT_EQ(moved(tflite::BuiltinOperator_RESHAPE, {{3, 2}}, {3, 2}), x);
  EXPECT_EQ(moved(tflite::BuiltinOperator_TRANSPOSE, {{1, 0}}, {3, 2}), (Bytes{1, 1, 0, 1, 0, 0}));
  EXPECT_EQ(moved(tflite::BuiltinOperator_SLICE, {{0, 1}, {2, 2}}, {2, 2}), (Bytes{0, 0, 1, 0}));
  EXPECT_EQ(moved(tflite::BuiltinOperator_TILE, {{1, 2}}, {2, 6}),
            (Bytes{1, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0}));
  EXPECT_EQ(
      moved(tflite::BuiltinOperator_CONCATENATION, {}, {4, 3}, tflite::BuiltinOptions_ConcatenationOptions,
            [](auto& fbb) { return tflite::CreateConcatenationOptions(fbb, 0).Union(); }),
      (Bytes{1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(moved(tflite::BuiltinOperator_PACK, {}, {2, 2, 3}, tflite::BuiltinOptions_PackOptions,
                  [](auto& fbb) { return tflite::CreatePackOptions(fbb, 2, 1).Union(); }),
            (Bytes{1, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0}));
  EXPECT_EQ(moved(tflite::BuiltinOperator_GATHER, {{2, 0, 0}}, {2, 3}, tflite::BuiltinOptions_GatherOptions,
                  [](auto& fbb) { return tflite::CreateGatherOptions(fbb, 1).Union(); }),
            (Bytes{0, 1, 1, 0, 1, 1}));
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

TEST(TfliteInt32, AFusedActivationClampsWhatHasWrapped) {
  const auto sum = [](tflite::ActivationFunctionType activation) {
    TfliteBuilder b;
    const int32_t x = b.tensor({.name = "x", .type = tflite::TensorType_INT32, .shape = {4}});
    const int32_t y = b.tensor({.name = "y", .type = tflite::TensorType_INT32, .shape = {4}});
    b.op(tflite::BuiltinOperator_ADD, {x, b.ints("c", {1})}, {y}, tflite::BuiltinOptions_AddOptions,
         tflite::CreateAddOptions(b.fbb(), activation).Union());
    return run<int32_t>(b.finish({x}, {y}), {bytes_of(Ints{-9, 3, 8, INT32_MAX})});
  };
  EXPECT_EQ(sum(tflite::ActivationFunctionType_NONE), (Ints{-8, 4, 9, INT32_MIN}));
  EXPECT_EQ(sum(tflite::ActivationFunctionType_RELU), (Ints{0, 4, 9, 0}));
  EXPECT_EQ(sum(tflite::ActivationFunctionType_RELU6), (Ints{0, 4, 6, 0}));
  EXPECT_EQ(sum(tflite::ActivationFunctionType_RELU_N1_TO_1), (Ints{-1, 1, 1, -1}));
}

TEST(TfliteInt32, QuotientsRoundTowardsZero) {
  TfliteBuilder b;
  const int32_t x = b.tensor({.name = "x", .type = tflite::TensorType_INT32, .shape = {6}});
  const int32_t y = b.tensor({.name = "y", .type = tflite::TensorType_INT32, .shape = {6}});
  b.op(tflite::BuiltinOperator_DIV, {x, b.ints("c", {2, 2, -2, -2, 7, 3})}, {y});
  EXPECT_EQ(run<int32_t>(b.finish({x}, {y}), {bytes_of(Ints{7, -7, 7, -7, 3, -9})}),
            (Ints{3, -3, -3, 3, 0, -3}));
}

// x [2, 3, 5] along axes; TFLite divides the sum of a mean in int64, towards zero.
template <typename T>
std::vector<T> reduced(int32_t code, const std::vector<T>& x, const std::vector<int32_t>& axes,
                       std::vector<int32_t> shape, bool keeps = false) {
  TfliteBuilder b;
  const auto type = sizeof(T) == 4 ? tflite::TensorType_INT32 : tflite::TensorType_INT64;
  const int32_t in = b.tensor({.name = "x", .type = type, .shape = {2, 3, 5}});
  const int32_t out = b.tensor({.name = "y", .type = type, .shape = std::move(shape)});
  b.op(code, {in, b.ints("axes", axes)}, {out}, tflite::BuiltinOptions_ReducerOptions,
       tflite::CreateReducerOptions(b.fbb(), keeps).Union());
  return run<T>(b.finish({in}, {out}), {bytes_of(x)});
}

TEST(TfliteIntegers, ReductionsTakeAllElementsOfTheirAxes) {
  const Ints x = {7,  -3, 2, 9, 4,  -8, 1, 6,  5, -2, 3, 10, -7, 8, 11,
                  -1, 12, 4, 2, -5, 6,  9, -4, 7, 1,  2, -9, 13, 3, 5};
  const auto sum = tflite::BuiltinOperator_SUM, most = tflite::BuiltinOperator_REDUCE_MAX,
             least = tflite::BuiltinOperator_REDUCE_MIN, product = tflite::BuiltinOperator_REDUCE_PROD,
             mean = tflite::BuiltinOperator_MEAN;
  EXPECT_EQ(reduced(sum, x, {2}, {2, 3}), (Ints{19, 2, 25, 12, 19, 14}));
  EXPECT_EQ(reduced(sum, x, {-1, 0, 2}, {1, 3, 1}, true), (Ints{31, 21, 39}));
  EXPECT_EQ(reduced(most, x, {1}, {2, 5}), (Ints{7, 10, 6, 9, 11, 6, 12, 13, 7, 5}));
  EXPECT_EQ(reduced(least, x, {0, 1, 2}, {}), (Ints{-9}));
  EXPECT_EQ(reduced(product, x, {1}, {2, 5}),
            (Ints{7 * -8 * 3, -30, 2 * 6 * -7, 360, -88, -12, -972, -208, 42, -25}));
  EXPECT_EQ(reduced(mean, x, {2}, {2, 3}), (Ints{3, 0, 5, 2, 3, 2}));
  EXPECT_EQ(reduced(mean, x, {1}, {2, 5}), (Ints{0, 2, 0, 7, 4, 2, 4, 4, 4, 0}));
  EXPECT_EQ(reduced(sum, x, {}, {2, 3, 5}), x);
}

TEST(TfliteIntegers, SumsWrapAndMeansDoNot) {
  EXPECT_EQ(reduced(tflite::BuiltinOperator_SUM, Ints(30, INT32_MAX), {2}, {2, 3}), Ints(6, INT32_MAX - 4));
  EXPECT_EQ(reduced(tflite::BuiltinOperator_MEAN, Ints(30, INT32_MAX), {2}, {2, 3}), Ints(6, INT32_MAX));
  EXPECT_EQ(reduced(tflite::BuiltinOperator_MEAN, Ints(30, INT32_MIN), {0, 1, 2}, {}), Ints{INT32_MIN});
  Ints mixed(30, -1);
  mixed[29] = 0;
  EXPECT_EQ(reduced(tflite::BuiltinOperator_MEAN, mixed, {0, 1, 2}, {}), Ints{0});
}

TEST(TfliteIntegers, OfSixtyFourBitsToo) {
  using Longs = std::vector<int64_t>;
  const Longs x(30, int64_t{1} << 40);
  EXPECT_EQ(reduced(tflite::BuiltinOperator_SUM, x, {2}, {2, 3}), Longs(6, 5 * (int64_t{1} << 40)));
  EXPECT_EQ(reduced(tflite::BuiltinOperator_MEAN, x, {2}, {2, 3}), Longs(6, int64_t{1} << 40));
  EXPECT_EQ(reduced(tflite::BuiltinOperator_REDUCE_MAX, x, {2}, {2, 3}), Longs(6, int64_t{1} << 40));
  const auto combined = [](int32_t code, const Longs& lhs, const Longs& rhs) {
    TfliteBuilder b;
    const auto count = static_cast<int32_t>(lhs.size());
    const int32_t a = b.tensor({.name = "a", .type = tflite::TensorType_INT64, .shape = {count}});
    const int32_t c = b.tensor({.name = "c", .type = tflite::TensorType_INT64, .shape = {count}});
    const int32_t y = b.tensor({.name = "y", .type = tflite::TensorType_INT64, .shape = {count}});
    b.op(code, {a, c}, {y});
    return run<int64_t>(b.finish({a, c}, {y}), {bytes_of(lhs), bytes_of(rhs)});
  };
  const Longs a = {int64_t{1} << 40, -3, INT64_MAX}, c = {7, 5, 1};
  EXPECT_EQ(combined(tflite::BuiltinOperator_ADD, a, c), (Longs{(int64_t{1} << 40) + 7, 2, INT64_MIN}));
  EXPECT_EQ(combined(tflite::BuiltinOperator_SUB, a, c), (Longs{(int64_t{1} << 40) - 7, -8, INT64_MAX - 1}));
  EXPECT_EQ(combined(tflite::BuiltinOperator_MUL, a, c), (Longs{7 * (int64_t{1} << 40), -15, INT64_MAX}));
  EXPECT_EQ(combined(tflite::BuiltinOperator_MAXIMUM, a, c), (Longs{int64_t{1} << 40, 5, INT64_MAX}));
  EXPECT_EQ(combined(tflite::BuiltinOperator_FLOOR_MOD, a, c), (Longs{2, 2, 0}));
}

std::string reduction_text(bool known) {
  TfliteBuilder b;
  const int32_t x = known ? b.ints("c", {3, 4, 5})
                          : b.tensor({.name = "x", .type = tflite::TensorType_INT32, .shape = {3}});
  const int32_t y = b.tensor({.name = "y", .type = tflite::TensorType_INT32, .shape = {}});
  b.op(tflite::BuiltinOperator_REDUCE_PROD, {x, b.ints("axes", {0})}, {y});
  return import_body(b.finish(known ? std::vector<int32_t>{} : std::vector<int32_t>{x}, {y}));
}

TEST(TfliteIntegers, AReductionIsOneOperatorOrAConstant) {
  EXPECT_NE(reduction_text(false).find("prod(%x, axis=[0])"), std::string::npos) << reduction_text(false);
  EXPECT_EQ(reduction_text(true).find("prod"), std::string::npos) << reduction_text(true);
  EXPECT_NE(reduction_text(true).find("60"), std::string::npos) << reduction_text(true);
}

TEST(TfliteBools, AnyAndAllAreOfRunTime) {
  const auto reduced_bools = [](int32_t code, bool keeps) {
    TfliteBuilder b;
    const int32_t x = b.tensor({.name = "x", .type = tflite::TensorType_BOOL, .shape = {4, 2}});
    std::vector<int32_t> shape = {4};
    if (keeps) shape.push_back(1);
    const int32_t y = b.tensor({.name = "y", .type = tflite::TensorType_BOOL, .shape = shape});
    b.op(code, {x, b.ints("axes", {-1})}, {y}, tflite::BuiltinOptions_ReducerOptions,
         tflite::CreateReducerOptions(b.fbb(), keeps).Union());
    return run<uint8_t>(b.finish({x}, {y}), {{0, 0, 1, 0, 0, 1, 1, 1}});
  };
  EXPECT_EQ(reduced_bools(tflite::BuiltinOperator_REDUCE_ANY, false), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(reduced_bools(tflite::BuiltinOperator_REDUCE_ALL, true), (std::vector<uint8_t>{0, 0, 0, 1}));
}

TEST(TfliteIntegers, AreOfOneType) {
  TfliteBuilder b;
  const int32_t x = b.tensor({.name = "x", .type = tflite::TensorType_INT64, .shape = {3}});
  const int32_t y = b.tensor({.name = "y", .type = tflite::TensorType_INT64, .shape = {3}});
  b.op(tflite::BuiltinOperator_ADD, {x, b.ints("c", {7})}, {y});
  EXPECT_EQ(import_error(b.finish({x}, {y})), kList + "ADD with int64 and int32 inputs ('y')");
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_numbers_test
