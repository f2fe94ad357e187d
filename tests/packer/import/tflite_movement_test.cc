// Operators that move elements of any dtype: what they become, what they refuse, and what some of them
// compute, against values that follow from TFLite's definitions by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "src/packer/pipeline/pipeline.h"
#include "tests/models/model_session.h"
#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::tflite_test::tflite_movement_test {
namespace {

using Ints = std::vector<int32_t>;

const std::string kList = "-49: tflite: 'net.tflite': 1 operator that qplan does not import: ";
const std::string kBroken = "-48: tflite: 'net.tflite': operator 0 ";

int32_t plain(TfliteBuilder& b, const std::string& name, Ints shape, tflite::TensorType type) {
  return b.tensor({.name = name, .type = type, .shape = std::move(shape)});
}
int32_t int16(TfliteBuilder& b, const std::string& name, Ints shape) {
  return b.activation(name, std::move(shape), 0.5f, 0, tflite::TensorType_INT16);
}

struct OneOperator {
  int32_t code;
  Ints in, out;
  std::vector<Ints> constants = {};  // int32 operands after x
  tflite::TensorType type = tflite::TensorType_INT8;
};

template <typename MakeOptions>
std::vector<uint8_t> model_of(const OneOperator& spec, tflite::BuiltinOptions kind, const MakeOptions& make) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", spec.in, 0.5f, 0, spec.type);
  const int32_t y = b.activation("y", spec.out, 0.5f, 0, spec.type);
  Ints inputs{x};
  for (const Ints& values : spec.constants) inputs.push_back(b.ints("c", values));
  b.op(spec.code, inputs, {y}, kind, make(b.fbb()));
  return b.finish({x}, {y});
}
std::vector<uint8_t> model_of(const OneOperator& spec) {
  return model_of(spec, tflite::BuiltinOptions_NONE, [](auto&) { return flatbuffers::Offset<void>(); });
}

// The output of a model with one input, through packer and runtime.
template <typename T>
std::vector<T> run(const std::vector<uint8_t>& model, const std::vector<T>& x) {
  const AlignedBytes plan = pack(model, "net.tflite", {});
  testing::ModelSession session({plan.data(), plan.data() + plan.size()}, QPLAN_ISA_AUTO, 1);
  const std::vector<uint8_t> bytes = session.run({bytes_of(x)}).at(0);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}
template <typename T = int8_t>
std::vector<T> counted(size_t count) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(i);
  return values;
}

// ---- one shape for another ----

TEST(TfliteReshapes, ExpandDimsAndSqueezeOfAnyDtype) {
  OneOperator expand{
      tflite::BuiltinOperator_EXPAND_DIMS, {4, 3}, {4, 1, 3}, {{-2}}, tflite::TensorType_INT16};
  EXPECT_EQ(import_body(model_of(expand)), "%0 = reshape(%x, newshape=[4, 1, 3]);\n%0\n");
  expand.constants = {{3}};
  EXPECT_EQ(import_error(model_of(expand)), kBroken + "EXPAND_DIMS 'y': axis 3 is out of range for rank 3");
  const auto squeeze = [](Ints in, Ints out, Ints dims) {
    const OneOperator spec{tflite::BuiltinOperator_SQUEEZE, in, out, {}, tflite::TensorType_FLOAT32};
    return model_of(spec, tflite::BuiltinOptions_SqueezeOptions,
                    [&](auto& fbb) { return tflite::CreateSqueezeOptionsDirect(fbb, &dims).Union(); });
  };
  EXPECT_EQ(import_body(squeeze({1, 4, 1}, {1, 4}, {-1})), "%0 = reshape(%x, newshape=[1, 4]);\n%0\n");
  EXPECT_EQ(import_body(squeeze({1, 4, 1}, {4}, {})), "%0 = reshape(%x, newshape=[4]);\n%0\n");
  EXPECT_EQ(import_error(squeeze({1, 4, 1}, {1, 1}, {1})),
            kBroken + "SQUEEZE 'y': axis 1 of shape [1, 4, 1] is squeezed, but its extent is not 1");
}

TEST(TfliteReshapes, PackJoinsAlongANewAxisAndUnpackCutsAlongOne) {
  TfliteBuilder b;
  const int32_t x = int16(b, "x", {2, 3}), x2 = int16(b, "x2", {2, 3}), y = int16(b, "y", {2, 2, 3});
  b.op(tflite::BuiltinOperator_PACK, {x, x2}, {y}, tflite::BuiltinOptions_PackOptions,
       tflite::CreatePackOptions(b.fbb(), 2, 1).Union());
  EXPECT_EQ(import_body(b.finish({x, x2}, {y})),
            "%0 = reshape(%x, newshape=[2, 1, 3]);\n%1 = reshape(%x2, newshape=[2, 1, 3]);\n"
            "%2 = concatenate((%0, %1), axis=1);\n%2\n");
  TfliteBuilder u;
  const int32_t whole = int16(u, "x", {2, 3}), y0 = int16(u, "y0", {3}), y1 = int16(u, "y1", {3});
  u.op(tflite::BuiltinOperator_UNPACK, {whole}, {y0, y1}, tflite::BuiltinOptions_UnpackOptions,
       tflite::CreateUnpackOptions(u.fbb(), 2, 0).Union());
  EXPECT_EQ(import_body(u.finish({whole}, {y1})),
            "%0 = split(%x, indices_or_sections=2);\n%1 = reshape(%0.0, newshape=[3]);\n"
            "%2 = reshape(%0.1, newshape=[3]);\n%2\n");
}

// ---- parts by position ----

struct Slice {
  Ints in, begin, end, strides, out;
  int32_t begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0, shrink_axis_mask = 0;
  bool offset = false;
};

std::vector<uint8_t> slice_model(const Slice& s, tflite::TensorType type = tflite::TensorType_INT8) {
  const OneOperator spec{
      tflite::BuiltinOperator_STRIDED_SLICE, s.in, s.out, {s.begin, s.end, s.strides}, type};
  return model_of(spec, tflite::BuiltinOptions_StridedSliceOptions, [&](auto& fbb) {
    return tflite::CreateStridedSliceOptions(fbb, s.begin_mask, s.end_mask, s.ellipsis_mask, s.new_axis_mask,
                                             s.shrink_axis_mask, s.offset)
        .Union();
  });
}

// Expected values: NumPy's x[...] of x = arange, written out.
TEST(TfliteStridedSlice, TakesWhatNumPyTakes) {
  const auto slice = [](const Slice& s) {
    size_t count = 1;
    for (const int32_t extent : s.in) count *= static_cast<size_t>(extent);
    return run(slice_model(s), counted(count));
  };
  using Bytes = std::vector<int8_t>;
  // x[1:4:2]
  EXPECT_EQ(slice({{6}, {1}, {4}, {2}, {2}}), (Bytes{1, 3}));
  // x[-2:], x[:3], x[::-1], x[4:0:-2], positions far outside
  EXPECT_EQ(slice({.in = {6}, .begin = {-2}, .end = {0}, .strides = {1}, .out = {2}, .end_mask = 1}),
            (Bytes{4, 5}));
  EXPECT_EQ(slice({.in = {6}, .begin = {5}, .end = {3}, .strides = {1}, .out = {3}, .begin_mask = 1}),
            (Bytes{0, 1, 2}));
  EXPECT_EQ(
      slice(
          {.in = {4}, .begin = {1}, .end = {2}, .strides = {-1}, .out = {4}, .begin_mask = 1, .end_mask = 1}),
      (Bytes{3, 2, 1, 0}));
  EXPECT_EQ(slice({{6}, {4}, {0}, {-2}, {2}}), (Bytes{4, 2}));
  EXPECT_EQ(slice({{3}, {-100}, {100}, {1}, {3}}), (Bytes{0, 1, 2}));
  EXPECT_EQ(slice({{3}, {100}, {-100}, {-1}, {3}}), (Bytes{2, 1, 0}));
  // x[1, :, -1] of [2, 2, 3]
  EXPECT_EQ(slice({.in = {2, 2, 3},
                   .begin = {1, 0, -1},
                   .end = {2, 0, 0},
                   .strides = {1, 1, 1},
                   .out = {2},
                   .end_mask = 2,
                   .shrink_axis_mask = 5}),
            (Bytes{8, 11}));
  // x[..., newaxis, 1:] of [2, 3]
  EXPECT_EQ(slice({.in = {2, 3},
                   .begin = {0, 0, 1},
                   .end = {0, 0, 0},
                   .strides = {1, 1, 1},
                   .out = {2, 1, 2},
                   .end_mask = 4,
                   .ellipsis_mask = 1,
                   .new_axis_mask = 2}),
            (Bytes{1, 2, 4, 5}));
  // x[1:, ...] of [2, 3]: fewer entries than axes
  EXPECT_EQ(slice({.in = {2, 3}, .begin = {1}, .end = {0}, .strides = {1}, .out = {1, 3}, .end_mask = 1}),
            (Bytes{3, 4, 5}));
  // begin 2, end counts from it: x[2:2+3]
  EXPECT_EQ(slice({.in = {6}, .begin = {2}, .end = {3}, .strides = {1}, .out = {3}, .offset = true}),
            (Bytes{2, 3, 4}));
}

TEST(TfliteStridedSlice, RefusesWhatTakesNothing) {
  EXPECT_EQ(import_error(slice_model({{6}, {4}, {2}, {1}, {1}})),
            "-49: tflite: 'net.tflite': a model with a tensor without elements");
  EXPECT_EQ(import_error(slice_model({{6}, {4}, {2}, {0}, {1}})),
            kBroken + "STRIDED_SLICE 'y': a stride is 0");
  EXPECT_EQ(import_error(slice_model({{6}, {0, 0}, {1, 1}, {1, 1}, {1}})),
            kBroken + "STRIDED_SLICE 'y': 2 axes are sliced, but the input has rank 1");
  EXPECT_EQ(import_error(slice_model(
                {.in = {6}, .begin = {6}, .end = {7}, .strides = {1}, .out = {}, .shrink_axis_mask = 1})),
            kBroken + "STRIDED_SLICE 'y': position 6 of an axis of extent 6");
}

TEST(TfliteSlice, BeginAndSizes) {
  const OneOperator spec{
      tflite::BuiltinOperator_SLICE, {3, 4}, {2, 3}, {{1, 1}, {2, -1}}, tflite::TensorType_FLOAT32};
  EXPECT_EQ(run(model_of(spec), counted<float>(12)), (std::vector<float>{5, 6, 7, 9, 10, 11}));
  OneOperator wrong = spec;
  wrong.constants = {{1, 1}, {3, -1}};
  EXPECT_EQ(import_error(model_of(wrong)), kBroken + "SLICE 'y': begin 1 and size 3 of an axis of extent 3");
}

TEST(TfliteSplitV, SizesOfWhichOneMayBeOpen) {
  const auto model = [](const Ints& sizes) {
    TfliteBuilder b;
    const int32_t x = int16(b, "x", {2, 6});
    const int32_t y0 = int16(b, "y0", {2, 1}), y1 = int16(b, "y1", {2, 3}), y2 = int16(b, "y2", {2, 2});
    b.op(tflite::BuiltinOperator_SPLIT_V, {x, b.ints("sizes", sizes), b.ints("axis", {-1})}, {y0, y1, y2},
         tflite::BuiltinOptions_SplitVOptions, tflite::CreateSplitVOptions(b.fbb(), 3).Union());
    return b.finish({x}, {y2});
  };
  const std::string body = "%0 = split(%x, indices_or_sections=[1, 4], axis=1);\n%0.2\n";
  EXPECT_EQ(import_body(model({1, 3, 2})), body);
  EXPECT_EQ(import_body(model({1, -1, 2})), body);
  for (const Ints& sizes : {Ints{1, 3, 3}, Ints{1, 3}, Ints{-1, -1, 2}, Ints{7, -1, 2}, Ints{1, 3, -2}}) {
    EXPECT_NE(import_error(model(sizes)).find("do not make 3 outputs of extent 6"), std::string::npos);
  }
}

TEST(TfliteGather, ConstantIndicesOfAnyRank) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {2, 3}, 0.5f, 0);
  const int32_t at = b.tensor(
      {.name = "at", .type = tflite::TensorType_INT32, .shape = {2, 2}, .data = bytes_of(Ints{2, 0, 0, 1})});
  const int32_t y = b.activation("y", {2, 2, 2}, 0.5f, 0);
  b.op(tflite::BuiltinOperator_GATHER, {x, at}, {y}, tflite::BuiltinOptions_GatherOptions,
       tflite::CreateGatherOptions(b.fbb(), 1).Union());
  EXPECT_EQ(run(b.finish({x}, {y}), counted(6)), (std::vector<int8_t>{2, 0, 0, 1, 5, 3, 3, 4}));
}

TEST(TfliteGather, IndicesAreInRangeAndConstant) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {2, 3}, 0.5f, 0), y = b.activation("y", {1, 3}, 0.5f, 0);
  b.op(tflite::BuiltinOperator_GATHER, {x, b.ints("at", {2})}, {y});
  EXPECT_EQ(import_error(b.finish({x}, {y})), kBroken + "GATHER 'y': index 2 of an axis of extent 2");
}

TEST(TfliteGatherNd, TakesRowsAndElements) {
  for (const auto& [indices, shape, of, expected] :
       {std::tuple(Ints{2, 0}, Ints{2, 1}, Ints{2, 2}, std::vector<int8_t>{4, 5, 0, 1}),
        std::tuple(Ints{2, 1, 0, 0, 1, 1}, Ints{3, 2}, Ints{3}, std::vector<int8_t>{5, 0, 3})}) {
    TfliteBuilder b;
    const int32_t x = b.activation("x", {3, 2}, 0.5f, 0), y = b.activation("y", of, 0.5f, 0);
    const int32_t at =
        b.tensor({.name = "at", .type = tflite::TensorType_INT32, .shape = shape, .data = bytes_of(indices)});
    b.op(tflite::BuiltinOperator_GATHER_ND, {x, at}, {y});
    EXPECT_EQ(run(b.finish({x}, {y}), counted(6)), expected);
  }
}

TEST(TfliteGatherNd, TakesConstantIndicesOfInt64) {
  const auto model = [](int64_t first) {
    TfliteBuilder b;
    const int32_t x = b.activation("x", {3, 2}, 0.5f, 0), y = b.activation("y", {3}, 0.5f, 0);
    const int32_t at = b.tensor({.name = "at",
                                 .type = tflite::TensorType_INT64,
                                 .shape = {3, 2},
                                 .data = bytes_of<int64_t>({first, 1, 0, 0, 1, 1})});
    b.op(tflite::BuiltinOperator_GATHER_ND, {x, at}, {y});
    return b.finish({x}, {y});
  };
  EXPECT_EQ(run(model(2), counted(6)), (std::vector<int8_t>{5, 0, 3}));
  // It must not wrap to 2.
  EXPECT_NE(import_error(model((int64_t{1} << 32) + 2)).find("index 4294967298"), std::string::npos);
}

// numpy.take_along_axis' kin: each batch has indices of its own.
std::vector<uint8_t> batched_gather(int32_t axis, int32_t batch_dims, const Ints& of, const Ints& indices,
                                    tflite::TensorType type = tflite::TensorType_INT32) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {2, 3, 4}, 0.5f, 0), y = b.activation("y", of, 0.5f, 0);
  const auto data = type == tflite::TensorType_INT32
                        ? bytes_of(indices)
                        : bytes_of(std::vector<int64_t>(indices.begin(), indices.end()));
  const int32_t at = b.tensor({.name = "at", .type = type, .shape = {2, 2}, .data = data});
  b.op(tflite::BuiltinOperator_GATHER, {x, at}, {y}, tflite::BuiltinOptions_GatherOptions,
       tflite::CreateGatherOptions(b.fbb(), axis, batch_dims).Union());
  return b.finish({x}, {y});
}

TEST(TfliteGather, EachBatchHasItsIndices) {
  const std::vector<int8_t> rows = {8, 9, 10, 11, 0, 1, 2, 3, 16, 17, 18, 19, 16, 17, 18, 19};
  EXPECT_EQ(run(batched_gather(1, 1, {2, 2, 4}, {2, 0, 1, 1}), counted(24)), rows);
  EXPECT_EQ(run(batched_gather(1, -1, {2, 2, 4}, {2, 0, 1, 1}, tflite::TensorType_INT64), counted(24)), rows);
  EXPECT_EQ(run(batched_gather(2, 1, {2, 3, 2}, {2, 0, 1, 3}), counted(24)),
            (std::vector<int8_t>{2, 0, 6, 4, 10, 8, 13, 15, 17, 19, 21, 23}));
  EXPECT_EQ(import_error(batched_gather(1, 1, {2, 2, 4}, {2, 0, 1, 3})),
            kBroken + "GATHER 'y': index 3 of an axis of extent 3");
  EXPECT_EQ(import_error(batched_gather(0, 1, {2, 2, 4}, {1, 0, 1, 1})),
            kBroken + "GATHER 'y': batch_dims 1 of data [2, 3, 4], axis 0 and indices [2, 2]");
}

TEST(TfliteGather, EachBatchHasIndicesThatTheNetworkComputes) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {2, 3}, 0.5f, 0);
  const int32_t at = b.tensor({.name = "at", .type = tflite::TensorType_INT32, .shape = {2, 2}});
  const int32_t y = b.activation("y", {2, 2}, 0.5f, 0);
  b.op(tflite::BuiltinOperator_GATHER, {x, at}, {y}, tflite::BuiltinOptions_GatherOptions,
       tflite::CreateGatherOptions(b.fbb(), 1, 1).Union());
  const AlignedBytes plan = pack(b.finish({x, at}, {y}), "net.tflite", {});
  testing::ModelSession session({plan.data(), plan.data() + plan.size()}, QPLAN_ISA_AUTO, 1);
  EXPECT_EQ(session.run({bytes_of(counted(6)), bytes_of(Ints{2, 0, 1, 1})}).at(0),
            (std::vector<uint8_t>{2, 0, 4, 4}));
}

TEST(TfliteTile, RepeatsEveryAxis) {
  const OneOperator spec{tflite::BuiltinOperator_TILE, {2, 2}, {4, 6}, {{2, 3}}, tflite::TensorType_INT16};
  EXPECT_EQ(run(model_of(spec), counted<int16_t>(4)),
            (std::vector<int16_t>{0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3}));
}

TEST(TfliteBroadcastTo, RepeatsExtentsOf1) {
  const OneOperator spec{tflite::BuiltinOperator_BROADCAST_TO, {2, 1}, {2, 2, 3}, {{2, 2, 3}}};
  EXPECT_EQ(run(model_of(spec), counted(2)), (std::vector<int8_t>{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}));
  OneOperator wrong = spec;
  wrong.constants = {{2, 3, 3}};
  EXPECT_EQ(import_error(model_of(wrong)),
            kBroken + "BROADCAST_TO 'y': shape [1, 2, 1] does not broadcast to [2, 3, 3]");
}

TEST(TfliteReverse, TurnsTheNamedAxes) {
  const OneOperator spec{tflite::BuiltinOperator_REVERSE_V2, {2, 3}, {2, 3}, {{1}}};
  EXPECT_EQ(run(model_of(spec), counted(6)), (std::vector<int8_t>{2, 1, 0, 5, 4, 3}));
  OneOperator wrong = spec;
  wrong.constants = {{1, -1}};
  EXPECT_EQ(import_error(model_of(wrong)), kBroken + "REVERSE_V2 'y': axis 1 is named twice");
}

// NumPy's pad: "reflect" leaves the edge out, "symmetric" repeats it.
TEST(TfliteMirrorPad, ReflectsAndRepeats) {
  const auto model = [](tflite::MirrorPadMode mode, const Ints& paddings, Ints out) {
    const OneOperator spec{tflite::BuiltinOperator_MIRROR_PAD, {2, 3}, std::move(out), {paddings}};
    return model_of(spec, tflite::BuiltinOptions_MirrorPadOptions,
                    [&](auto& fbb) { return tflite::CreateMirrorPadOptions(fbb, mode).Union(); });
  };
  EXPECT_EQ(run(model(tflite::MirrorPadMode_REFLECT, {0, 0, 2, 1}, {2, 6}), counted(6)),
            (std::vector<int8_t>{2, 1, 0, 1, 2, 1, 5, 4, 3, 4, 5, 4}));
  EXPECT_EQ(run(model(tflite::MirrorPadMode_SYMMETRIC, {1, 0, 0, 2}, {3, 5}), counted(6)),
            (std::vector<int8_t>{0, 1, 2, 2, 1, 0, 1, 2, 2, 1, 3, 4, 5, 5, 4}));
  EXPECT_EQ(
      import_error(model(tflite::MirrorPadMode_REFLECT, {2, 0, 0, 0}, {4, 3})),
      kBroken + "MIRROR_PAD 'y': paddings 2 and 0 of an axis of extent 2, which has 1 elements to mirror");
}

TEST(TflitePad, Int16FloatAndAValue) {
  const OneOperator wide{
      tflite::BuiltinOperator_PAD, {1, 2}, {1, 4}, {{0, 0, 1, 1}}, tflite::TensorType_INT16};
  EXPECT_EQ(run(model_of(wide), counted<int16_t>(2)), (std::vector<int16_t>{0, 0, 1, 0}));
  const OneOperator real{
      tflite::BuiltinOperator_PAD, {1, 2}, {1, 4}, {{0, 0, 1, 1}}, tflite::TensorType_FLOAT32};
  EXPECT_EQ(run(model_of(real), std::vector<float>{2.5f, -1}), (std::vector<float>{0, 2.5f, -1, 0}));
  TfliteBuilder b;
  const int32_t x = plain(b, "x", {2}, tflite::TensorType_FLOAT32),
                y = plain(b, "y", {4}, tflite::TensorType_FLOAT32);
  const int32_t paddings = b.tensor(
      {.name = "p", .type = tflite::TensorType_INT32, .shape = {1, 2}, .data = bytes_of(Ints{0, 2})});
  const int32_t value = b.tensor({.name = "v",
                                  .type = tflite::TensorType_FLOAT32,
                                  .shape = {1},
                                  .data = bytes_of(std::vector<float>{0.75f})});
  b.op(tflite::BuiltinOperator_PADV2, {x, paddings, value}, {y});
  EXPECT_EQ(run(b.finish({x}, {y}), std::vector<float>{1, 2}), (std::vector<float>{1, 2, 0.75f, 0.75f}));
}

TEST(TfliteBlocks, SpaceToDepthAndBack) {
  // A pixel of 2 x 2 blocks has the pixels of the block row by row, each with its channels.
  const OneOperator to{tflite::BuiltinOperator_SPACE_TO_DEPTH, {1, 2, 4, 1}, {1, 1, 2, 4}};
  EXPECT_EQ(run(model_of(to, tflite::BuiltinOptions_SpaceToDepthOptions,
                         [](auto& fbb) { return tflite::CreateSpaceToDepthOptions(fbb, 2).Union(); }),
                counted(8)),
            (std::vector<int8_t>{0, 1, 4, 5, 2, 3, 6, 7}));
  const OneOperator from{tflite::BuiltinOperator_DEPTH_TO_SPACE, {1, 1, 2, 4}, {1, 2, 4, 1}};
  EXPECT_EQ(run(model_of(from, tflite::BuiltinOptions_DepthToSpaceOptions,
                         [](auto& fbb) { return tflite::CreateDepthToSpaceOptions(fbb, 2).Union(); }),
                std::vector<int8_t>{0, 1, 4, 5, 2, 3, 6, 7}),
            counted(8));
  EXPECT_EQ(
      import_error(model_of(from, tflite::BuiltinOptions_DepthToSpaceOptions,
                            [](auto& fbb) { return tflite::CreateDepthToSpaceOptions(fbb, 3).Union(); })),
      kBroken + "DEPTH_TO_SPACE 'y': block_size 3 does not divide shape [1, 1, 2, 4]");
}

// ---- RESIZE_NEAREST_NEIGHBOR ----

// The rows that TFLite's reference reads: GetNearestNeighbor, computed in NumPy float32.
TEST(TfliteResizeNearest, ReadsTFLitesPositions) {
  const auto rows = [](int32_t in, int32_t out, bool align_corners, bool half_pixel) {
    const OneOperator spec{
        tflite::BuiltinOperator_RESIZE_NEAREST_NEIGHBOR, {1, in, 1, 2}, {1, out, 1, 2}, {{out, 1}}};
    const std::vector<int8_t> both = run(
        model_of(spec, tflite::BuiltinOptions_ResizeNearestNeighborOptions,
                 [&](auto& fbb) {
                   return tflite::CreateResizeNearestNeighborOptions(fbb, align_corners, half_pixel).Union();
                 }),
        counted(static_cast<size_t>(in) * 2));
    std::vector<int> first;
    for (size_t i = 0; i < both.size(); i += 2) {
      EXPECT_EQ(both[i + 1], both[i] + 1);
      first.push_back(both[i] / 2);
    }
    return first;
  };
  using Rows = std::vector<int>;
  EXPECT_EQ(rows(3, 6, false, false), (Rows{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(rows(3, 5, false, false), (Rows{0, 0, 1, 1, 2}));
  EXPECT_EQ(rows(3, 5, false, true), (Rows{0, 0, 1, 2, 2}));
  EXPECT_EQ(rows(3, 5, true, false), (Rows{0, 1, 1, 2, 2}));  // 0, 0.5, 1, 1.5, 2: halves away from zero
  EXPECT_EQ(rows(3, 5, true, true), (Rows{0, 1, 1, 2, 2}));   // 0.25, 0.75, 1.25, 1.75, 2.25
  // Both rules together, which exclude each other for RESIZE_BILINEAR, have a meaning here.
  EXPECT_EQ(rows(2, 5, true, true), (Rows{0, 0, 1, 1, 1}));  // 0.125, 0.375, 0.625, 0.875, 1.125
  EXPECT_EQ(rows(5, 2, false, true), (Rows{1, 3}));
  EXPECT_EQ(rows(5, 1, true, false), (Rows{0}));
}

// ---- CONCATENATION ----

TEST(TfliteConcatenationOfAnyDtype, CopiesWhereNothingIsRescaled) {
  TfliteBuilder b;
  const int32_t x = int16(b, "x", {1, 2}), x2 = int16(b, "x2", {1, 3}), y = int16(b, "y", {1, 5});
  b.op(tflite::BuiltinOperator_CONCATENATION, {x, x2}, {y}, tflite::BuiltinOptions_ConcatenationOptions,
       tflite::CreateConcatenationOptions(b.fbb(), 1).Union());
  EXPECT_EQ(import_body(b.finish({x, x2}, {y})), "%0 = concatenate((%x, %x2), axis=1);\n%0\n");
}

// Half a unit below the zero point: float32 rounds -0.5 to -1, a requantisation to 0.
TEST(TfliteConcatenationOfAnyDtype, Uint8OfAnotherScaleIsATable) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 4}, 0.5f, 128, tflite::TensorType_UINT8);
  const int32_t y = b.activation("y", {1, 4}, 1.0f, 100, tflite::TensorType_UINT8);
  b.op(tflite::BuiltinOperator_CONCATENATION, {x}, {y}, tflite::BuiltinOptions_ConcatenationOptions,
       tflite::CreateConcatenationOptions(b.fbb(), 1).Union());
  EXPECT_EQ(run(b.finish({x}, {y}), std::vector<uint8_t>{127, 128, 129, 131}),
            (std::vector<uint8_t>{99, 100, 101, 102}));
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_movement_test
