// Values are written out, or NumPy's (rounded by hand where float32 matters).
#include <gtest/gtest.h>

#include "tests/packer/op/evaluate_text.h"

namespace qplan::evaluate_test {
namespace {

std::string floats(const std::string& elements, int count) {
  return constant("(" + std::to_string(count) + "), float32", elements);
}

TEST(EvaluateBinary, BroadcastsAsNumPy) {
  EXPECT_EQ(evaluate_text("add(" + constant("(2, 1), int32", "10, 20") + ", " +
                          constant("(3), int32", "1, 2, 3") + ")"),
            "int32(2, 3): 11 12 13 21 22 23");
  EXPECT_EQ(evaluate_text("subtract(5i64, " + constant("(2), int64", "7, -1") + ")"), "int64(2): -2 6");
}

TEST(EvaluateBinary, IntegersWrapAndDivisionTruncates) {
  EXPECT_EQ(evaluate_text("add(2147483647, 1)"), "int32(): -2147483648");
  EXPECT_EQ(evaluate_text("multiply(-9223372036854775808i64, -1i64)"), "int64(): -9223372036854775808");
  EXPECT_EQ(evaluate_text("divide(-9223372036854775808i64, -1i64)"), "int64(): -9223372036854775808");
  EXPECT_EQ(evaluate_text("subtract(3u8, 5u8)"), "uint8(): 254");
  EXPECT_EQ(evaluate_text("divide(" + constant("(4), int32", "7, -7, 7, -7") + ", " +
                          constant("(4), int32", "2, 2, -2, -2") + ")"),
            "int32(4): 3 -3 -3 3");
  EXPECT_EQ(evaluate_text("divide(1, 0, name=\"n\")"), "divide 'n': an integer is divided by 0");
}

TEST(EvaluateBinary, FloatsRoundInTheirOwnDtype) {
  EXPECT_EQ(evaluate_text("add(16777216f, 1f)"), "float32(): 16777216");
  EXPECT_EQ(evaluate_text("divide(1f, 3f)"), "float32(): 0.33333334");
  EXPECT_EQ(evaluate_text("divide(" + floats("1, -1, 0", 3) + ", 0f)"), "float32(3): inf -inf nan");
  EXPECT_EQ(evaluate_text("maximum(" + floats("1, 2", 2) + ", " + floats("3, -1", 2) + ")"),
            "float32(2): 3 2");
  EXPECT_EQ(evaluate_text("maximum(nanf, 3f)"), "float32(): nan");
  EXPECT_EQ(evaluate_text("minimum(3f, nanf)"), "float32(): nan");
}

TEST(EvaluateBinary, ComparisonsGiveBooleans) {
  EXPECT_EQ(evaluate_text("less(" + floats("1, 2, 3", 3) + ", 2f)"), "bool(3): True False False");
  EXPECT_EQ(evaluate_text("equal(" + constant("(3), int64", "1, 2, 3") + ", 2i64)"),
            "bool(3): False True False");
  EXPECT_EQ(evaluate_text("equal(nanf, nanf)"), "bool(): False");
}

TEST(EvaluateWhere, BroadcastsAllThree) {
  EXPECT_EQ(evaluate_text("where(" + constant("(2, 1), bool", "True, False") + ", " +
                          constant("(3), int8", "1, 2, 3") + ", 9i8)"),
            "int8(2, 3): 1 2 3 9 9 9");
}

TEST(EvaluateUnary, FunctionsInDoubleRoundedOnce) {
  EXPECT_EQ(evaluate_text("sigmoid(" + floats("0, 1, -1, -100, 100", 5) + ")"),
            "float32(5): 0.5 0.7310586 0.26894143 3.8e-44 1");
  EXPECT_EQ(evaluate_text("tanh(" + floats("0, 1, -1, 1e-06, 50", 5) + ")"),
            "float32(5): 0 0.7615942 -0.7615942 1e-06 1");
  EXPECT_EQ(evaluate_text("exp(" + floats("0, 1, -1, 89, -200", 5) + ")"),
            "float32(5): 1 2.7182817 0.36787945 inf 0");
  EXPECT_EQ(evaluate_text("sqrt(" + floats("2, 9, -1", 3) + ")"), "float32(3): 1.4142135 3 nan");
  EXPECT_EQ(evaluate_text("hard_sigmoid(" + floats("-3, 0, 1, 3", 4) + ")"), "float32(4): 0 0.5 0.7 1");
  EXPECT_EQ(evaluate_text("nn.leaky_relu(" + floats("-2, 2", 2) + ", alpha=0.25f)"), "float32(2): -0.5 2");
}

// Values at which double, rounded once, gives a neighbour; expected are those of NumPy in float32.
TEST(EvaluateUnary, RoundsEachOperationOfArithmetic) {
  EXPECT_EQ(evaluate_text("hard_sigmoid(" + floats("-1.89, -1.464, -1.186", 3) + ")"),
            "float32(3): 0.12200001 0.20719999 0.26279998");
  EXPECT_EQ(evaluate_text("rsqrt(" + floats("6.23, 4.83, 6.71", 3) + ")"),
            "float32(3): 0.40064156 0.45501578 0.3860457");
  EXPECT_EQ(evaluate_text("nn.leaky_relu(" + floats("-6.63, -8.3, -7.89", 3) + ", alpha=0.01f)"),
            "float32(3): -0.0663 -0.083 -0.078899994");
  EXPECT_EQ(evaluate_text("nn.elu(" + floats("-4.61, -5.23, -0.14", 3) + ", alpha=0.3f)"),
            "float32(3): -0.29701447 -0.29839396 -0.039192528");
}

// Many turns away from 0; expected are those of the library in double.
TEST(EvaluateUnary, TurnsAnglesExactly) {
  EXPECT_EQ(evaluate_text("sin(" + floats("-234907870, -36893750, -28871026", 3) + ")"),
            "float32(3): 1.1097537e-05 -4.0838993e-05 0.00021759066");
  EXPECT_EQ(evaluate_text("cos(" + floats("-276438720", 1) + ")"), "float32(1): -2.268862e-05");
}

TEST(EvaluateUnary, KeepsTheSignOfZero) {
  for (const char* op : {"sin", "sqrt", "nn.leaky_relu", "nn.elu", "tanh", "erf", "round"})
    EXPECT_EQ(evaluate_text(std::string(op) + "(" + floats("-0, 0", 2) + ")"), "float32(2): -0 0") << op;
}

TEST(EvaluateUnary, RoundIsHalfToEven) {
  EXPECT_EQ(evaluate_text("round(" + floats("0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 8388609", 7) + ")"),
            "float32(7): 0 2 2 -0 -2 0 8388609");
  EXPECT_EQ(evaluate_text("floor(" + floats("1.5, -1.5", 2) + ")"), "float32(2): 1 -2");
  EXPECT_EQ(evaluate_text("ceil(" + floats("1.5, -1.5", 2) + ")"), "float32(2): 2 -1");
}

TEST(EvaluateUnary, IntegersToo) {
  EXPECT_EQ(evaluate_text("abs(" + constant("(3), int32", "-3, 4, -2147483648") + ")"),
            "int32(3): 3 4 -2147483648");
  EXPECT_EQ(evaluate_text("negative(" + constant("(2), int8", "-128, 5") + ")"), "int8(2): -128 -5");
  EXPECT_EQ(evaluate_text("nn.relu(" + constant("(2), int64", "-5, 5") + ")"), "int64(2): 0 5");
  EXPECT_EQ(evaluate_text("round(7i64)"), "int64(): 7");
}

TEST(EvaluateUnary, NanAndInfinity) {
  for (const char* op : {"nn.relu", "sigmoid", "tanh", "exp", "sqrt", "negative", "abs", "round", "floor",
                         "ceil", "hard_sigmoid", "nn.leaky_relu"}) {
    EXPECT_EQ(evaluate_text(std::string(op) + "(nanf)"), "float32(): nan") << op;
  }
  EXPECT_EQ(evaluate_text("tanh(" + floats("inf, -inf", 2) + ")"), "float32(2): 1 -1");
  EXPECT_EQ(evaluate_text("sigmoid(" + floats("inf, -inf", 2) + ")"), "float32(2): 1 0");
  EXPECT_EQ(evaluate_text("exp(" + floats("inf, -inf", 2) + ")"), "float32(2): inf 0");
}

TEST(EvaluateSoftmax, AlongItsAxis) {
  EXPECT_EQ(evaluate_text("nn.softmax(" + constant("(2, 2), float32", "0, 0, 1, 1") + ")"),
            "float32(2, 2): 0.5 0.5 0.5 0.5");
  EXPECT_EQ(evaluate_text("nn.softmax(" + constant("(2, 2), float32", "0, 0, 1, 1") + ", axis=0)"),
            "float32(2, 2): 0.26894143 0.26894143 0.7310586 0.7310586");
  EXPECT_EQ(evaluate_text("nn.softmax(" + floats("1000, 1000, -inf", 3) + ")"), "float32(3): 0.5 0.5 0");
}

TEST(EvaluateCast, SaturatesFloatsAndWrapsIntegers) {
  EXPECT_EQ(evaluate_text("cast(" + floats("1.9, -1.9, 300, -300, inf", 5) + ", dtype=\"int8\")"),
            "int8(5): 1 -1 127 -128 127");
  EXPECT_EQ(evaluate_text("cast(nanf, dtype=\"int64\")"), "int64(): 0");
  EXPECT_EQ(evaluate_text("cast(" + floats("1e+30, -1e+30", 2) + ", dtype=\"int64\")"),
            "int64(2): 9223372036854775807 -9223372036854775808");
  EXPECT_EQ(evaluate_text("cast(" + floats("-1, 1e+30", 2) + ", dtype=\"uint64\")"),
            "uint64(2): 0 18446744073709551615");
  EXPECT_EQ(evaluate_text("cast(" + constant("(3), int32", "300, -1, 128") + ", dtype=\"int8\")"),
            "int8(3): 44 -1 -128");
  EXPECT_EQ(evaluate_text("cast(-1i64, dtype=\"uint8\")"), "uint8(): 255");
  EXPECT_EQ(evaluate_text("cast(16777217i64, dtype=\"float32\")"), "float32(): 16777216");
  EXPECT_EQ(evaluate_text("cast(" + floats("0, -0.5", 2) + ", dtype=\"bool\")"), "bool(2): False True");
  EXPECT_EQ(evaluate_text("cast(True, dtype=\"float32\")"), "float32(): 1");
  EXPECT_EQ(evaluate_text("cast(1e+300f64, dtype=\"float32\")"), "float32(): inf");
}

TEST(EvaluateClip, LeavesNanAndTakesInfiniteBounds) {
  EXPECT_EQ(evaluate_text("clip(" + floats("-1, 3, 9", 3) + ", a_min=0f, a_max=6f)"), "float32(3): 0 3 6");
  EXPECT_EQ(evaluate_text("clip(nanf, a_min=0f, a_max=6f)"), "float32(): nan");
  EXPECT_EQ(evaluate_text("clip(" + constant("(3), int8", "-128, 3, 127") + ", a_min=-inff, a_max=100f)"),
            "int8(3): -128 3 100");
  EXPECT_EQ(evaluate_text("clip(-5i64, a_min=-inff, a_max=inff)"), "int64(): -5");
}

TEST(EvaluateMovement, KeepsElementsOfEveryDtype) {
  const std::string six = constant("(2, 3), int64", "1, 2, 3, 4, 5, 6");
  EXPECT_EQ(evaluate_text("transpose(" + six + ", axes=[1, 0])"), "int64(3, 2): 1 4 2 5 3 6");
  EXPECT_EQ(evaluate_text("reshape(" + six + ", newshape=[3, -1])"), "int64(3, 2): 1 2 3 4 5 6");
  EXPECT_EQ(evaluate_text("squeeze(" + constant("(1, 2, 1), bool", "True, False") + ", axis=[0])"),
            "bool(2, 1): True False");
  EXPECT_EQ(evaluate_text("expand_dims(" + constant("(2), int8", "1, 2") + ", axis=-1, num_newaxis=2)"),
            "int8(2, 1, 1): 1 2");
  EXPECT_EQ(evaluate_text("nn.batch_flatten(" + constant("(2, 1, 2), int8", "1, 2, 3, 4") + ")"),
            "int8(2, 2): 1 2 3 4");
  EXPECT_EQ(evaluate_text("concatenate((" + six + ", " + constant("(2, 1), int64", "7, 8") + "), axis=-1)"),
            "int64(2, 4): 1 2 3 7 4 5 6 8");
  EXPECT_EQ(evaluate_text("split(" + six + ", indices_or_sections=[1], axis=1)"),
            "int64(2, 1): 1 4; int64(2, 2): 2 3 5 6");
}

TEST(EvaluateSlice, AsNumPy) {
  const std::string five = constant("(5), int32", "0, 1, 2, 3, 4");
  const auto slice = [&](const std::string& attrs) {
    return evaluate_text("strided_slice(" + five + ", " + attrs + ")");
  };
  EXPECT_EQ(slice("begin=[1], end=[4]"), "int32(3): 1 2 3");
  EXPECT_EQ(slice("begin=[-2], end=[9223372036854775807]"), "int32(2): 3 4");
  EXPECT_EQ(slice("begin=[0], end=[5], strides=[2]"), "int32(3): 0 2 4");
  EXPECT_EQ(slice("begin=[-1], end=[-9223372036854775808], strides=[-1]"), "int32(5): 4 3 2 1 0");
  EXPECT_EQ(slice("begin=[9], end=[0], strides=[-2]"), "int32(2): 4 2");
  EXPECT_EQ(slice("begin=[2], end=[5], strides=[9223372036854775807]"), "int32(1): 2");
  EXPECT_EQ(evaluate_text("strided_slice(" + constant("(2, 3), int8", "1, 2, 3, 4, 5, 6") +
                          ", begin=[1], end=[3], axes=[-1])"),
            "int8(2, 2): 2 3 5 6");
}

TEST(EvaluateTake, GathersAlongAnAxis) {
  const std::string six = constant("(2, 3), int64", "1, 2, 3, 4, 5, 6");
  EXPECT_EQ(evaluate_text("take(" + six + ", 1, axis=0)"), "int64(3): 4 5 6");
  EXPECT_EQ(
      evaluate_text("take(" + six + ", " + constant("(2), int64", "-1, 0") + ", axis=1, mode=\"fast\")"),
      "int64(2, 2): 3 1 6 4");
  EXPECT_EQ(evaluate_text("take(" + six + ", 3, axis=1, mode=\"fast\", name=\"g\")"),
            "take 'g': index 3 is out of range, expected from -3 to 2");
}

// 17000 * 17000 bytes of two rows.
TEST(Evaluate, DeclinesResultsBeyondItsBudget) {
  ir::Function function("main");
  const auto make = [](ir::Shape shape) {
    return ir::make_constant(ir::kInt8, std::move(shape), std::vector<int8_t>(17000, 1));
  };
  const op::Results operands = {make({17000, 1}), make({17000})};
  ir::Node& node = function.add_node(
      op::get_op("add"), {function.add_constant(operands[0]), function.add_constant(operands[1])}, {}, "big");
  EXPECT_FALSE(op::evaluate(node, operands).has_value());
}

TEST(Evaluate, HasNothingForOperatorsWithAKernel) {
  EXPECT_EQ(evaluate_text("qnn.quantize(1f, 1f, 0)"), "not evaluated");
}

}  // namespace
}  // namespace qplan::evaluate_test
