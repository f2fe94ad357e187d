// ONNX operators on positions and integers that are known on import, through a plan: of constants they are
// constants, and where only the positions are, kernels move the data. Numbers that are written out are ONNX
// Runtime's.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/models/onnx_run.h"
#include "tests/packer/import/onnx_helpers.h"

namespace qplan::testing::onnx_index_test {
namespace {

using namespace onnx_run;  // NOLINT: the words of these models

using Longs = std::vector<int64_t>;
using Floats = std::vector<float>;

// A model of constants: what the node's first output is, as int64.
Longs computed(const std::string& op, const std::vector<Message>& constants,
               const std::vector<Message>& attributes = {}) {
  OnnxBuilder b(17);
  b.input("x", kFloat, {1});
  Names inputs;
  for (const Message& constant : constants) {
    inputs.push_back("c" + std::to_string(inputs.size()));
    b.initializer(Message(constant).bytes(8, inputs.back()));
  }
  b.node(op, inputs, {"c"}, attributes).node("Cast", {"c"}, {"y"}, {attr_int("to", kInt64)});
  b.node("Relu", {"x"}, {"z"});
  for (const char* output : {"y", "z"}) b.graph().message(12, Message().bytes(1, output));
  ModelSession session(packed(b), QPLAN_ISA_AUTO, 1);
  return values_of<int64_t>(session.run({bytes_of(Floats{0})}).at(0));
}

Message longs(const std::vector<int64_t>& shape, const Longs& values) {
  return tensor<int64_t>("", kInt64, shape, values);
}
Message scalar(int64_t value) { return longs({}, {value}); }
Message floats(const std::vector<int64_t>& shape, const Floats& values) {
  return tensor<float>("", kFloat, shape, values);
}

TEST(OnnxIndex, Ranges) {
  EXPECT_EQ(computed("Range", {scalar(-2), scalar(9), scalar(3)}), (Longs{-2, 1, 4, 7}));
  EXPECT_EQ(computed("Range", {scalar(7), scalar(-3), scalar(-4)}), (Longs{7, 3, -1}));
  const auto refused = [](int64_t limit, int64_t step) {
    OnnxBuilder b(17);
    b.constant<int64_t>("a", kInt64, {}, {0}).constant<int64_t>("b", kInt64, {}, {limit});
    b.constant<int64_t>("c", kInt64, {}, {step}).node("Range", {"a", "b", "c"}, {"y"});
    return refusal(b.output("y", kInt64, {1}));
  };
  EXPECT_EQ(refused(3, 0), kInvalid + "node 0 Range 'y': the step of the range is 0");
  EXPECT_NE(refused(int64_t{1} << 40, 1).find("a range of 1"), std::string::npos);
}

// One after another in float32, as the operator's function adds them.
TEST(OnnxIndex, RangesOfFloatsAddTheirStep) {
  OnnxBuilder b(17);
  b.input("x", kFloat, {1}).scale("a", 0).scale("b", 1.05f).scale("c", 0.1f);
  b.node("Range", {"a", "b", "c"}, {"r"}).node("Add", {"x", "r"}, {"y"});
  ModelSession session(packed(b.output("y", kFloat, {11})), QPLAN_ISA_AUTO, 1);
  EXPECT_EQ(values_of<float>(session.run({bytes_of(Floats{0})}).at(0)),
            (Floats{0, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.70000005f, 0.8000001f, 0.9000001f, 1.0000001f}));
}

TEST(OnnxIndex, RemaindersPowersAndRunningSumsOfIntegers) {
  const Message a = longs({6}, {7, -7, 7, -7, 5, 0}), d = longs({6}, {3, 3, -3, -3, 5, 2});
  EXPECT_EQ(computed("Mod", {a, d}), (Longs{1, 2, -2, -1, 0, 0}));
  EXPECT_EQ(computed("Mod", {a, d}, {attr_int("fmod", 1)}), (Longs{1, -1, 1, -1, 0, 0}));
  EXPECT_EQ(computed("Mod", {longs({2, 1}, {INT64_MIN, 9}), longs({2}, {-1, 4})}), (Longs{0, 0, 0, 1}));
  EXPECT_EQ(computed("Pow", {longs({3}, {-3, 2, 5}), longs({3}, {3, 10, 0})}), (Longs{-27, 1024, 1}));
  EXPECT_EQ(computed("Pow", {longs({3}, {-1, 1, 0}), scalar(int64_t{1} << 60 | 1)}), (Longs{-1, 1, 0}));
  EXPECT_EQ(computed("Sign", {a}), (Longs{1, -1, 1, -1, 1, 0}));
  const Message matrix = longs({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(computed("CumSum", {matrix, scalar(1)}), (Longs{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(computed("CumSum", {matrix, scalar(0)}, {attr_int("reverse", 1)}), (Longs{5, 7, 9, 4, 5, 6}));
  EXPECT_EQ(computed("CumSum", {matrix, scalar(1)}, {attr_int("exclusive", 1)}), (Longs{0, 1, 3, 0, 4, 9}));
}

TEST(OnnxIndex, SizesAndPlacesOfNumbersThatAreNotZero) {
  EXPECT_EQ(computed("Size", {longs({2, 3}, {0, 0, 0, 0, 0, 0})}), (Longs{6}));
  EXPECT_EQ(computed("NonZero", {longs({2, 3}, {1, 0, 3, 0, 0, -1})}), (Longs{0, 0, 1, 0, 2, 2}));
  EXPECT_EQ(computed("NonZero", {floats({4}, {-0.0f, 0.5f, 0, -1})}), (Longs{1, 3}));
}

// Shape -> Size, Mod, Range, as positions of a Gather.
TEST(OnnxIndex, ChainsFromShapesAreComputedOnImport) {
  OnnxBuilder b(17);
  b.input("x", kFloat, {2, 5}).constant<int64_t>("four", kInt64, {}, {4}).ints("one", {1});
  b.constant<int64_t>("zero", kInt64, {}, {0}).constant<int64_t>("step", kInt64, {}, {1});
  b.node("Size", {"x"}, {"size"}).node("Mod", {"size", "four"}, {"rest"});
  b.node("Range", {"zero", "rest", "step"}, {"places"});
  b.node("Gather", {"x", "places"}, {"y"}, {attr_int("axis", 1)});
  b.graph().message(12, Message().bytes(1, "y"));
  EXPECT_EQ(import_body(b), "%0 = take(%x, const(Tensor[(2), int64], [0, 1]), axis=1);\n%0\n");
}

// ---- positions that are constant, of data that is constant or not ----

std::function<void(OnnxBuilder&, Names&)> with(const std::vector<Message>& constants) {
  return [constants](OnnxBuilder& b, Names& inputs) {
    for (const Message& constant : constants) {
      inputs.push_back("c" + std::to_string(inputs.size()));
      b.initializer(Message(constant).bytes(8, inputs.back()));
    }
  };
}

struct Moved {
  Case c;
  std::vector<int64_t> shape;
  std::vector<Message> constants;
  Longs expected;
  std::vector<Message> as_floats = {};  // the constants beside data of float32, where they are others
};

// The data is 0, 1, 2, ..., as a constant of int64 and as float32 that the network reads.
void expect_moved(const Moved& moved) {
  int64_t count = 1;
  for (const int64_t extent : moved.shape) count *= extent;
  Longs numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(i);
  std::vector<Message> constants = {longs(moved.shape, numbers)};
  constants.insert(constants.end(), moved.constants.begin(), moved.constants.end());
  EXPECT_EQ(computed(moved.c.op, constants, moved.c.attributes), moved.expected) << moved.c.op;
  const Floats found = run<float>(moved.c, kFloat, moved.shape, Floats(numbers.begin(), numbers.end()),
                                  with(moved.as_floats.empty() ? moved.constants : moved.as_floats));
  EXPECT_EQ(Longs(found.begin(), found.end()), moved.expected) << moved.c.op;
}

TEST(OnnxIndex, GatheredElementsAndRows) {
  expect_moved(
      {{"GatherElements", {attr_int("axis", 1)}}, {2, 3}, {longs({2, 2}, {0, -1, 2, 1})}, {0, 2, 5, 4}});
  expect_moved({{"GatherElements"}, {3, 2}, {longs({2, 2}, {2, 0, -2, 1})}, {4, 1, 2, 3}});
  expect_moved({{"GatherND"}, {2, 2, 2}, {longs({2, 2}, {0, 1, -1, 0})}, {2, 3, 4, 5}});
  expect_moved({{"GatherND", {attr_int("batch_dims", 1)}},
                {2, 3, 2},
                {longs({2, 2, 1}, {0, 2, -1, 0})},
                {0, 1, 4, 5, 10, 11, 6, 7}});
  OnnxBuilder b(17);
  b.input("x", kFloat, {3}).ints("i", {3}).node("GatherElements", {"x", "i"}, {"y"});
  EXPECT_EQ(refusal(b.output("y", kFloat, {1})),
            kInvalid + "node 0 GatherElements 'y': index 3 is out of range, expected from -3 to 2");
}

TEST(OnnxIndex, ScatteredRows) {
  const Message places = longs({2, 1}, {1, -1});
  expect_moved({{"ScatterND"},
                {3, 2},
                {places, longs({2, 2}, {70, 71, 80, 81})},
                {0, 1, 70, 71, 80, 81},
                {places, floats({2, 2}, {70, 71, 80, 81})}});
  const Message elements = longs({2, 2}, {0, 1, 2, 0});
  expect_moved({{"ScatterND"},
                {3, 2},
                {elements, longs({2}, {70, 80})},
                {0, 70, 2, 3, 80, 5},
                {elements, floats({2}, {70, 80})}});
}

// Updates of one place are combined in their order.
TEST(OnnxIndex, ScatteredRowsThatAreCombined) {
  const auto expect = [](const std::string& reduction, const Longs& rows, const Longs& elements) {
    const Message how = attr_string("reduction", reduction);
    const Message places = longs({3, 1}, {1, -1, 1});
    expect_moved({{"ScatterND", {how}, {}, 18},
                  {3, 2},
                  {places, longs({3, 2}, {7, -2, 3, 3, 2, 5})},
                  rows,
                  {places, floats({3, 2}, {7, -2, 3, 3, 2, 5})}});
    const Message at = longs({2, 2}, {0, 0, 2, 0});
    expect_moved({{"ScatterElements", {how}, {}, 18},
                  {3, 2},
                  {at, longs({2, 2}, {7, -2, 3, 5})},
                  elements,
                  {at, floats({2, 2}, {7, -2, 3, 5})}});
  };
  expect("add", {0, 1, 11, 6, 7, 8}, {7, 4, 2, 3, 7, 5});
  expect("mul", {0, 1, 28, -30, 12, 15}, {0, -10, 2, 3, 12, 5});
  expect("max", {0, 1, 7, 5, 4, 5}, {7, 5, 2, 3, 4, 5});
  expect("min", {0, 1, 2, -2, 3, 3}, {0, -2, 2, 3, 3, 5});
  OnnxBuilder b(18);
  b.input("x", kFloat, {3}).input("u", kFloat, {1}).constant<int64_t>("i", kInt64, {1, 1}, {0});
  b.node("ScatterND", {"x", "i", "u"}, {"y"}, {attr_string("reduction", "mean")});
  EXPECT_EQ(refusal(b.output("y", kFloat, {3})),
            kInvalid +
                "node 0 ScatterND 'y': attribute 'reduction' is 'mean', expected none, add, mul, max or min");
}

// As a text encoder takes the row of its last word: positions that the network computes.
TEST(OnnxIndex, RowsThatTheNetworkNames) {
  OnnxBuilder b(17);
  b.input("x", kFloat, {2, 3, 2}).input("at", kInt64, {2, 2});
  b.node("GatherND", {"x", "at"}, {"y"});
  ModelSession session(packed(b.output("y", kFloat, {2, 2})), QPLAN_ISA_AUTO, 1);
  const Floats x = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EXPECT_EQ(values_of<float>(session.run({bytes_of(x), bytes_of(Longs{1, 0, 0, -1})}).at(0)),
            (Floats{6, 7, 4, 5}));
}

TEST(OnnxIndex, LargestAndRunningSumsOfIntegersOfRunTime) {
  const int64_t large = int64_t{1} << 40;
  const Longs x = {3, large, -large, large, 7, 7};
  EXPECT_EQ(run<int64_t>({"ArgMax", {attr_int("axis", 1), attr_int("keepdims", 0)}}, kInt64, {2, 3}, x),
            (Longs{1, 0}));
  EXPECT_EQ(run<int64_t>({"ArgMin", {attr_int("axis", 1), attr_int("keepdims", 0)}}, kInt64, {2, 3}, x),
            (Longs{2, 1}));
  const std::vector<int32_t> small = {5, -1, 5, INT32_MIN, 2, INT32_MAX};
  EXPECT_EQ(run<int64_t>({"ArgMax", {attr_int("axis", -1)}}, kInt32, {2, 3}, small), (Longs{0, 2}));
  const auto along_rows = [](OnnxBuilder& b, Names& inputs) {
    b.constant<int64_t>("axis", kInt64, {}, {1});
    inputs.push_back("axis");
  };
  EXPECT_EQ(run<int64_t>({"CumSum"}, kInt64, {2, 3}, x, along_rows),
            (Longs{3, large + 3, 3, large, large + 7, large + 14}));
}

TEST(OnnxIndex, SumsOfIntegersOfRunTime) {
  const int64_t large = int64_t{1} << 40;
  const Longs x = {3, large, -large, large, 7, 7};
  const auto over = [](const Longs& axes) {
    return [axes](OnnxBuilder& b, Names& inputs) {
      b.ints("axes", axes);
      inputs.push_back("axes");
    };
  };
  EXPECT_EQ(run<int64_t>({"ReduceSum"}, kInt64, {2, 3}, x, over({1})), (Longs{3, large + 14}));
  EXPECT_EQ(run<int64_t>({"ReduceSum", {attr_int("keepdims", 0)}}, kInt64, {2, 3}, x, over({0})),
            (Longs{large + 3, large + 7, 7 - large}));
  EXPECT_EQ(run<int64_t>({"ReduceSum", {attr_int("keepdims", 0)}}, kInt64, {2, 3}, x, over({0, 1})),
            (Longs{large + 17}));
  const std::vector<int32_t> small = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(run<int32_t>({"ReduceSum"}, kInt32, {2, 3}, small, over({-1})), (std::vector<int32_t>{6, 15}));
}

// ONNX Runtime's. Its sums and products beyond the dtype stop at the dtype's ends; these wrap.
TEST(OnnxIndex, ReductionsOfIntegersOfRunTime) {
  const int64_t large = int64_t{1} << 40;
  const Longs x = {3, large, -large, -7, 7, -1};
  const auto of_rows = [&](const char* name) {
    return run<int64_t>({name, {attr_ints("axes", {1}), attr_int("keepdims", 0)}}, kInt64, {2, 3}, x);
  };
  EXPECT_EQ(of_rows("ReduceMax"), (Longs{large, 7}));
  EXPECT_EQ(of_rows("ReduceMin"), (Longs{-large, -7}));
  EXPECT_EQ(of_rows("ReduceMean"), (Longs{1, 0}));
  EXPECT_EQ(run<int64_t>({"ReduceMean"}, kInt64, {5}, Longs{-7, 2, -1, -3, 0}), Longs{-1});  // -9 / 5
  EXPECT_EQ(of_rows("ReduceL1"), (Longs{2 * large + 3, 15}));
  EXPECT_EQ(run<int64_t>({"ReduceProd"}, kInt64, {3}, Longs{-7, 5, large}), Longs{-35 * large});
  EXPECT_EQ(run<int64_t>({"ReduceSumSquare"}, kInt64, {3}, Longs{-7, 5, 1 << 20}), Longs{74 + large});
  const std::vector<int32_t> small = {INT32_MAX, INT32_MAX, -4, 1, 2, 3};
  EXPECT_EQ(run<int32_t>({"ReduceMean"}, kInt32, {6}, small), std::vector<int32_t>{715827882});
  EXPECT_EQ(run<int32_t>({"ReduceMax"}, kInt32, {6}, small), std::vector<int32_t>{INT32_MAX});
}

TEST(OnnxIndex, QuotientsOfIntegersAreTruncated) {
  const int64_t large = int64_t{1} << 40;
  const auto by = [](const Longs& other) {
    return [other](OnnxBuilder& b, Names& inputs) {
      b.ints("other", other);
      inputs.push_back("other");
    };
  };
  EXPECT_EQ(run<int64_t>({"Div"}, kInt64, {5}, Longs{7, -7, large, INT64_MIN, 5}, by({2, 2, -3, -1, 0})),
            (Longs{3, -3, -366503875925, INT64_MIN, 0}));  // ONNX says nothing of the last two
}

// Those of constants, beyond the integers that a double holds.
TEST(OnnxIndex, ReductionsOfConstantIntegersAreExact) {
  const int64_t large = (int64_t{1} << 60) + 1;
  const Message x = longs({2, 2}, {large, 1, 6, -9});
  EXPECT_EQ(computed("ReduceSum", {x, longs({1}, {1})}), (Longs{large + 1, -3}));
  EXPECT_EQ(computed("ReduceMax", {x}), (Longs{large}));
  EXPECT_EQ(computed("ReduceMean", {x}, {attr_ints("axes", {1})}), (Longs{(large + 1) / 2, -1}));
  EXPECT_EQ(computed("ReduceProd", {x}, {attr_ints("axes", {1})}), (Longs{large, -54}));
}

TEST(OnnxIndex, ArithmeticOnIntegersOfRunTime) {
  const int64_t large = int64_t{1} << 40;
  const Longs x = {7, -7, large, 0};
  const auto with_other = [](OnnxBuilder& b, Names& inputs) {
    b.ints("other", {3, 3, -5, -2});
    inputs.push_back("other");
  };
  const auto of_two = [&](const char* name) { return run<int64_t>({name}, kInt64, {4}, x, with_other); };
  EXPECT_EQ(of_two("Add"), (Longs{10, -4, large - 5, -2}));
  EXPECT_EQ(of_two("Sub"), (Longs{4, -10, large + 5, 2}));
  EXPECT_EQ(of_two("Mul"), (Longs{21, -21, -5 * large, 0}));
  EXPECT_EQ(of_two("Max"), (Longs{7, 3, large, 0}));
  EXPECT_EQ(of_two("Min"), (Longs{3, -7, -5, -2}));
  EXPECT_EQ(of_two("Mod"), (Longs{1, 2, -4, 0}));  // the sign of the divisor
  EXPECT_EQ(run<int64_t>({"Neg"}, kInt64, {4}, x), (Longs{-7, 7, -large, 0}));
  EXPECT_EQ(run<int64_t>({"Abs"}, kInt64, {4}, x), (Longs{7, 7, large, 0}));
  EXPECT_EQ(run<int64_t>({"Sign"}, kInt64, {4}, x), (Longs{1, -1, 1, 0}));
}

// RoBERTa numbers the words that are no padding (1) from 2 on, and padding 1.
TEST(OnnxIndex, PlacesOfWordsBesidePadding) {
  OnnxBuilder b(17);
  b.input("ids", kInt64, {2, 4}).constant<int64_t>("one", kInt64, {}, {1});
  b.node("Equal", {"ids", "one"}, {"is_padding"}).node("Not", {"is_padding"}, {"is_word"});
  b.node("Cast", {"is_word"}, {"mask"}, {attr_int("to", kInt64)}).node("CumSum", {"mask", "one"}, {"sums"});
  b.node("Mul", {"sums", "mask"}, {"counts"}).node("Add", {"counts", "one"}, {"places"});
  ModelSession session(packed(b.output("places", kInt64, {2, 4})), QPLAN_ISA_AUTO, 1);
  const Longs ids = {0, 5, 2, 1, 0, 2, 1, 1};
  EXPECT_EQ(values_of<int64_t>(session.run({bytes_of(ids)}).at(0)), (Longs{2, 3, 4, 1, 2, 3, 1, 1}));
}

TEST(OnnxIndex, ScatteredElements) {
  const Message along_rows = longs({1, 2}, {2, 0}), along_columns = longs({3, 1}, {1, 0, -1});
  expect_moved({{"ScatterElements"},
                {3, 2},
                {along_rows, longs({1, 2}, {70, 71})},
                {0, 71, 2, 3, 70, 5},
                {along_rows, floats({1, 2}, {70, 71})}});
  expect_moved({{.op = "Scatter", .opset = 9},  // its former name
                {3, 2},
                {along_rows, longs({1, 2}, {70, 71})},
                {0, 71, 2, 3, 70, 5},
                {along_rows, floats({1, 2}, {70, 71})}});
  expect_moved({{"ScatterElements", {attr_int("axis", 1)}},
                {3, 2},
                {along_columns, longs({3, 1}, {70, 80, 90})},
                {0, 70, 80, 3, 4, 90},
                {along_columns, floats({3, 1}, {70, 80, 90})}});
}

TEST(OnnxIndex, TrianglesOfMatrices) {
  const std::vector<int64_t> shape = {2, 2, 3};
  expect_moved({{"Trilu"}, shape, {}, {0, 1, 2, 0, 4, 5, 6, 7, 8, 0, 10, 11}});
  expect_moved({{"Trilu"}, shape, {scalar(1)}, {0, 1, 2, 0, 0, 5, 0, 7, 8, 0, 0, 11}});
  expect_moved(
      {{"Trilu", {attr_int("upper", 0)}}, shape, {scalar(0)}, {0, 0, 0, 3, 4, 0, 6, 0, 0, 9, 10, 0}});
}

TEST(OnnxIndex, OneHotCodes) {
  const Longs indices = {0, -1, 7, 2};
  const Message values = longs({2}, {-5, 9});
  EXPECT_EQ(computed("OneHot", {longs({4}, indices), scalar(3), values}),
            (Longs{9, -5, -5, -5, -5, 9, -5, -5, -5, -5, -5, 9}));
  const Floats found = run<float>({"OneHot", {attr_int("axis", 0)}}, kInt64, {4}, indices,
                                  with({scalar(3), floats({2}, {-5, 9})}));
  EXPECT_EQ(found, (Floats{9, -5, -5, -5, -5, -5, -5, -5, -5, 9, -5, 9}));
}

TEST(OnnxIndex, RemaindersOfInt32ThatTheNetworkReads) {
  EXPECT_EQ(run<int32_t>({"Mod"}, kInt32, {4}, std::vector<int32_t>{7, -7, 6, 0},
                         with({tensor<int32_t>("", kInt32, {1}, {3})})),
            (std::vector<int32_t>{1, 2, 0, 0}));
}

}  // namespace
}  // namespace qplan::testing::onnx_index_test
