#include <gtest/gtest.h>

#include "src/packer/error.h"
#include "src/packer/pattern/pattern.h"
#include "src/packer/text/text.h"

namespace qplan::pattern::matcher_test {
namespace {

// The last value of the body of a function of %x, %y: Tensor[(1, 4), int8] against a pattern.
class Graph {
 public:
  explicit Graph(const std::string& body)
      : module_(text::parse(
            "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 4), int8], %y: Tensor[(1, 4), int8]) {\n" +
                body + "}\n",
            "test")),
        pre_(module_.main()) {}

  PreValue last() const { return {module_.main().nodes().back().results[0]}; }
  PreValue value(size_t node) const { return {module_.main().nodes()[node].results[0]}; }
  PreValue param(size_t index) const { return {module_.main().params()[index]}; }
  const Pre& pre() const { return pre_; }

  std::optional<Matches> match(const Pattern& pattern) const { return pattern::match(pattern, pre_, last()); }
  bool matches(const Pattern& pattern) const { return match(pattern).has_value(); }
  // "" when it matches.
  std::string miss(const Pattern& pattern) const {
    const std::optional<NearMiss> miss = explain(pattern, pre_, last());
    return miss ? miss->text() : "";
  }

 private:
  ir::Module module_;
  Pre pre_;
};

TEST(Matcher, OpConstantParamAndAnyLookAtTheValueItself) {
  const Graph graph("  %0 = clip(%x, a_min=0f, a_max=6f);\n  nn.pad(%0, 0, pad_width=[[0, 0], [1, 1]])\n");
  EXPECT_TRUE(graph.matches(any()));
  EXPECT_TRUE(graph.matches(op("nn.pad")));
  EXPECT_TRUE(graph.matches(op("nn.pad", {op("clip", {param()}), constant()})));
  EXPECT_TRUE(graph.matches(one_of({"clip", "nn.pad"})));
  EXPECT_EQ(graph.miss(op("clip")),
            "nn.pad (node 1): expected clip, found nn.pad (node 1) (Tensor[(1, 6), int8])");
  EXPECT_EQ(graph.miss(op("nn.pad", {any(), param()})),
            "nn.pad (node 1): operand 1 (pad_value): expected parameter, found a constant (int32)");
  EXPECT_EQ(graph.miss(op("nn.pad", {op("clip", {constant()})})),
            "nn.pad (node 1): operand 0 (data) -> clip (node 0): operand 0 (data): expected constant, found "
            "parameter '%x' (Tensor[(1, 4), int8])");
  EXPECT_EQ(graph.miss(op("nn.pad", {any(), any(), any()})),
            "nn.pad (node 1): expected nn.pad with at least 3 operands, found 2 in nn.pad (node 1)");
}

TEST(Matcher, AMatchTakesTheNodesThatOperatorsOfThePatternStandFor) {
  const Graph graph(
      "  %0 = clip(%x, a_min=0f, a_max=6f);\n  %1 = negative(%y);\n  %2 = add(%0, %1);\n  abs(%2)\n");
  const auto nodes = [&](const Pattern& pattern) { return graph.match(pattern)->nodes(); };
  using Nodes = std::vector<uint32_t>;
  EXPECT_EQ(nodes(any()), Nodes{});
  EXPECT_EQ(nodes(op("abs", {op("add", {any(), op("negative")})})), (Nodes{1, 2, 3}));
  // The nodes of an alternative are released when the match continues without it.
  EXPECT_EQ(nodes(op("abs", {op("add", {op("clip", {constant()}) | any(), any()})})), (Nodes{2, 3}));
  EXPECT_EQ(nodes(optional("abs", optional("add", optional("clip", param()), {any()}))), (Nodes{0, 2, 3}));
  EXPECT_EQ(nodes(dominates(op("clip"), {"add"}, op("abs"))), (Nodes{0, 2, 3}));
}

TEST(Matcher, AnOperandListMayBeShorterThanTheNodes) {
  const Graph graph("  %0 = clip(%x, a_min=0f, a_max=6f);\n  nn.pad(%0, 0, pad_width=[[0, 0], [1, 1]])\n");
  EXPECT_TRUE(graph.matches(op("nn.pad", {op("clip")})));
  EXPECT_TRUE(graph.matches(op("nn.pad", {})));
}

TEST(Matcher, AlternativesAreTriedLeftToRightAndAgainWhenSomethingLaterFails) {
  const Graph graph("  add(%x, %y)\n");
  EXPECT_EQ(graph.match(param().as("first") | any().as("second"))->has("second"), true);
  EXPECT_EQ(graph.match(any().as("first") | any().as("second"))->has("second"), false);
  // The first alternative binds 'v' to %x, which the second operand then refuses: the binding is undone.
  const auto matches = graph.match(op("add", {any().as("v") | any().as("w"), any().as("v")}));
  ASSERT_TRUE(matches);
  EXPECT_EQ((*matches)["v"], graph.param(1));
  EXPECT_EQ((*matches)["w"], graph.param(0));
}

TEST(Matcher, TheNearMissOfAlternativesIsTheOneThatHeldLongest) {
  const Graph graph("  %0 = clip(%x, a_min=0f, a_max=6f);\n  cast(%0, dtype=\"int32\")\n");
  EXPECT_EQ(graph.miss(op("clip") | op("cast", {op("clip", {constant()})}) | op("reshape")),
            "cast (node 1): operand 0 (data) -> clip (node 0): operand 0 (data): expected constant, found "
            "parameter "
            "'%x' (Tensor[(1, 4), int8])");
  EXPECT_EQ(graph.miss(op("clip") | op("reshape")),
            "cast (node 1): expected clip, found cast (node 1) (Tensor[(1, 4), int32])")
      << "the first of equals";
}

TEST(Matcher, OptionalIsThereOrLeftOut) {
  const Pattern pattern =
      op("cast", {optional("clip", op("reshape", {any().as("data")}).as("inner")).as("outer")});
  const Graph with(
      "  %0 = reshape(%x, newshape=[4, 1]);\n  %1 = clip(%0, a_min=0f, a_max=6f);\n"
      "  cast(%1, dtype=\"int32\")\n");
  const Graph without("  %0 = reshape(%x, newshape=[4, 1]);\n  cast(%0, dtype=\"int32\")\n");
  ASSERT_TRUE(with.matches(pattern));
  EXPECT_EQ((*with.match(pattern))["inner"], with.value(0));
  EXPECT_EQ((*with.match(pattern))["outer"], with.value(1));
  ASSERT_TRUE(without.matches(pattern));
  EXPECT_EQ((*without.match(pattern))["outer"], without.value(0));
  EXPECT_EQ(Graph("  cast(%x, dtype=\"int32\")\n").miss(pattern),
            "cast (node 0): operand 0 (data): expected clip(reshape(...)), found parameter '%x' (Tensor[(1, "
            "4), int8])");
}

TEST(Matcher, OptionalTakesFurtherOperandsOfTheOperator) {
  const Pattern pattern = optional("nn.pad", param(), {constant().as("value")});
  const Graph graph("  nn.pad(%x, 0, pad_width=[[0, 0], [1, 1]])\n");
  ASSERT_TRUE(graph.matches(pattern));
  EXPECT_TRUE(graph.match(pattern)->has("value"));
}

TEST(Matcher, AttributesAreComparedWithTheirFallbacks) {
  const Graph graph("  clip(%x, a_min=0f, a_max=6f)\n");
  EXPECT_TRUE(graph.matches(op("clip").attr("a_max", 6.0).attr("a_min", 0)));
  EXPECT_EQ(graph.miss(op("clip").attr("a_max", 6.5)),
            "clip (node 0): expected a_max=6.5, found 6 in clip (node 0)");
  EXPECT_EQ(graph.miss(op("clip").attr("axis", 1)),
            "clip (node 0): expected axis=1, found no such attribute in clip (node 0)");
  EXPECT_EQ(
      graph.miss(op("clip", {any().attr("axis", 1)})),
      "clip (node 0): operand 0 (data): expected a value with axis=1, found parameter '%x' (Tensor[(1, 4), "
      "int8])");
  const Graph fallback("  concatenate((%x, %y))\n");
  EXPECT_TRUE(fallback.matches(op("concatenate").attr("axis", 0)));
  EXPECT_FALSE(fallback.matches(op("concatenate").attr("axis", 1)));
  const Graph list("  reshape(%x, newshape=[4, 1])\n");
  EXPECT_TRUE(list.matches(op("reshape").attr("newshape", ir::Ints{4, 1})));
  EXPECT_EQ(list.miss(op("reshape").attr("newshape", ir::Ints{4})),
            "reshape (node 0): expected newshape=[4], found [4, 1] in reshape (node 0)");
}

TEST(Matcher, DtypeShapeAndRank) {
  const Graph graph("  cast(%x, dtype=\"int32\")\n");
  EXPECT_TRUE(graph.matches(op("cast", {any().dtype(ir::kInt8)}).dtype(ir::kInt32)));
  EXPECT_TRUE(graph.matches(any().dtypes({ir::kUint8, ir::kInt32}).shape({1, 4}).rank(2)));
  EXPECT_EQ(
      graph.miss(any().dtypes({ir::kUint8, ir::kInt8})),
      "cast (node 0): expected a value of dtype uint8 or int8, found cast (node 0) (Tensor[(1, 4), int32])");
  EXPECT_EQ(graph.miss(any().shape({4})),
            "cast (node 0): expected a value of shape [4], found cast (node 0) (Tensor[(1, 4), int32])");
  EXPECT_EQ(graph.miss(any().rank(4)),
            "cast (node 0): expected a value of rank 4, found cast (node 0) (Tensor[(1, 4), int32])");
}

TEST(Matcher, OneUseCountsOperandsAndOutputs) {
  const Pattern pattern = op("cast", {op("clip").one_use()});
  EXPECT_TRUE(Graph("  %0 = clip(%x, a_min=0f, a_max=6f);\n  cast(%0, dtype=\"int32\")\n").matches(pattern));
  const Graph output("  %0 = clip(%x, a_min=0f, a_max=6f);\n  %1 = cast(%0, dtype=\"int32\");\n  (%0, %1)\n");
  EXPECT_EQ(
      output.miss(pattern),
      "cast (node 1): operand 0 (data): expected a value that is read once, found clip (node 0) (Tensor[(1, "
      "4), int8]), read 2 times");
  const Graph twice("  %0 = clip(%x, a_min=0f, a_max=6f);\n  add(%0, %0)\n");
  EXPECT_FALSE(twice.matches(op("add", {op("clip").one_use()})));
}

TEST(Matcher, TheSameNameIsTheSameValue) {
  const Pattern same = op("add", {any().as("a"), any().as("a")});
  EXPECT_TRUE(Graph("  add(%x, %x)\n").matches(same));
  EXPECT_EQ(
      Graph("  add(%x, %y)\n").miss(same),
      "add (node 0): operand 1 (rhs): expected the value 'a' again, parameter '%x' (Tensor[(1, 4), int8]), "
      "found parameter '%y' (Tensor[(1, 4), int8])");
}

TEST(Matcher, ConstantsOfTheSameContentAreOneValue) {
  const Pattern pattern = op("qnn.requantize", {any(), constant().as("s"), constant(), constant().as("s")});
  EXPECT_TRUE(Graph("  qnn.requantize(%x, 0.5f, 1, 0.5f, 2)\n").matches(pattern));
  EXPECT_EQ(Graph("  qnn.requantize(%x, 0.5f, 1, 0.25f, 2)\n").miss(pattern),
            "qnn.requantize (node 0): operand 3 (output_scale): expected the value 's' again, a constant "
            "(float32), "
            "found a constant (float32)");
}

TEST(Matcher, CommutativeTriesTheOperandsAsWrittenThenSwapped) {
  const Pattern pattern = commutative("add", {op("clip").as("clip"), any().as("other")});
  const Graph left("  %0 = clip(%x, a_min=0f, a_max=6f);\n  add(%0, %y)\n");
  const Graph right("  %0 = clip(%x, a_min=0f, a_max=6f);\n  add(%y, %0)\n");
  for (const Graph* graph : {&left, &right}) {
    ASSERT_TRUE(graph->matches(pattern));
    EXPECT_EQ((*graph->match(pattern))["clip"], graph->value(0));
    EXPECT_EQ((*graph->match(pattern))["other"], graph->param(1));
  }
  EXPECT_TRUE(right.matches(commutative("add", {op("clip")})))
      << "one operand alone stands for itself and any()";
  const auto as_written = right.match(commutative("add", {any().as("first"), any().as("second")}));
  EXPECT_EQ((*as_written)["first"], right.param(1));
}

TEST(Matcher, WhereIsAskedAfterEverythingBelowHeld) {
  const Graph graph("  %0 = clip(%x, a_min=0f, a_max=6f);\n  cast(%0, dtype=\"int32\")\n");
  std::vector<std::string> asked;
  const auto note = [&](const std::string& who, bool answer) {
    return [&asked, who, answer](const ir::Function&, ir::ValueId) {
      asked.push_back(who);
      return answer;
    };
  };
  EXPECT_TRUE(graph.matches(
      op("cast", {any().where("that is inner", note("inner", true))}).where("outer", note("outer", true))));
  EXPECT_EQ(asked, (std::vector<std::string>{"inner", "outer"}));
  asked.clear();
  EXPECT_EQ(graph.miss(op("cast", {op("clip")}).where("with luck", note("luck", false))),
            "cast (node 1): expected a value with luck, found cast (node 1) (Tensor[(1, 4), int32])");
  EXPECT_FALSE(graph.matches(op("cast", {param()}).where("never asked", note("never", true))));
  EXPECT_EQ(asked, (std::vector<std::string>{"luck"}));
}

TEST(Matcher, DominatesWalksThePath) {
  const Pattern pattern =
      dominates(op("clip").as("parent"), {"reshape", "nn.relu"}, op("cast").as("child")).as("whole");
  const Graph graph(
      "  %0 = clip(%x, a_min=0f, a_max=6f);\n  %1 = reshape(%0, newshape=[4, 1]);\n"
      "  %2 = nn.relu(%1);\n  cast(%2, dtype=\"int32\")\n");
  ASSERT_TRUE(graph.matches(pattern));
  EXPECT_EQ((*graph.match(pattern))["parent"], graph.value(0));
  EXPECT_EQ((*graph.match(pattern))["child"], graph.value(3));
  const Graph direct("  %0 = clip(%x, a_min=0f, a_max=6f);\n  cast(%0, dtype=\"int32\")\n");
  EXPECT_TRUE(direct.matches(pattern)) << "the path may be empty";
  const Graph foreign(
      "  %0 = clip(%x, a_min=0f, a_max=6f);\n  %1 = transpose(%0, axes=[1, 0]);\n"
      "  %2 = reshape(%1, newshape=[4, 1]);\n  cast(%2, dtype=\"int32\")\n");
  EXPECT_EQ(foreign.miss(pattern),
            "cast (node 3): operand 0 (data) through 1 node: expected clip, found transpose (node 1) "
            "(Tensor[(4, 1), int8])");
  const Graph shared(
      "  %0 = clip(%x, a_min=0f, a_max=6f);\n  %1 = reshape(%0, newshape=[4, 1]);\n"
      "  %2 = cast(%1, dtype=\"int32\");\n  (%0, %2)\n");
  EXPECT_FALSE(shared.matches(pattern)) << "the parent is read elsewhere";
}

TEST(Matcher, ALongPathNeedsNoStack) {
  ir::Function function("main");
  ir::ValueId value = function.add_param("x", {ir::kInt8, {4}});
  constexpr int kLength = 100000;
  value = function.add_node(op::get_op("abs"), {value}, {}, "").results[0];
  for (int i = 0; i < kLength; ++i)
    value = function.add_node(op::get_op("nn.relu"), {value}, {}, "").results[0];
  function.set_outputs({value});
  const Pre pre(function);
  const Pattern found = dominates(op("abs").as("parent"), {"nn.relu"}, op("nn.relu"));
  ASSERT_TRUE(pattern::match(found, pre, {value}));
  EXPECT_EQ((*pattern::match(found, pre, {value}))["parent"].id, function.nodes()[0].results[0]);
  const auto miss = explain(dominates(constant(), {"nn.relu"}, op("nn.relu")), pre, {value});
  ASSERT_TRUE(miss);
  EXPECT_FALSE(miss->text().empty());
}

TEST(Matcher, MatchesThatTakeTooLongAreGivenUp) {
  // Each level tries both orders of the levels below: 2^40 ways, all of which fail at the bottom.
  std::string body = "  %0 = add(%x, %x);\n";
  Pattern pattern = commutative("add", {constant(), constant()});
  for (int i = 1; i < 40; ++i) {
    body += "  %" + std::to_string(i) + " = add(%" + std::to_string(i - 1) + ", %x);\n";
    pattern = commutative("add", {pattern, any()}) | commutative("add", {pattern, param()});
  }
  const Graph graph(body + "  add(%39, %x)\n");
  try {
    graph.matches(commutative("add", {pattern, any()}));
    FAIL() << "it ended";
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_MODEL_UNSUPPORTED);
    EXPECT_NE(std::string(error.what()).find("fewer choices"), std::string::npos) << error.what();
  }
}

TEST(Pattern, RefusesUnknownOperatorsAndTowers) {
  EXPECT_THROW(op("qnn.conv3d"), PackError);
  EXPECT_THROW(one_of({"clip", "clop"}), PackError);
  EXPECT_THROW(dominates(any(), {"clop"}, any()), PackError);
  Pattern tower = any();
  EXPECT_THROW(
      {
        for (int i = 0; i < 100000; ++i) tower = op("clip", {tower});
      },
      PackError);
}

TEST(Pattern, ReadsAsWords) {
  EXPECT_EQ(to_string(optional("clip", op("qnn.requantize", {any().as("data"), constant()}).one_use())),
            "optional clip(qnn.requantize(any as 'data', constant) read once)");
  EXPECT_EQ(to_string((constant() | param()).dtype(ir::kInt8)), "(constant | parameter) of dtype int8");
  EXPECT_EQ(to_string(commutative("add", {any()})
                          .attr("axis", ir::Ints{1, 2})
                          .where("that sings", [](const Pre&, PreValue) { return true; })),
            "commutative add(any, any) with axis=[1, 2] that sings");
  EXPECT_EQ(to_string(dominates(any(), {"clip", "cast"}, one_of({"add", "multiply"}))),
            "add|multiply over {clip, cast} over any");
  Pattern wide = any();
  for (int i = 0; i < 60; ++i) wide = op("add", {wide, wide});
  EXPECT_LE(to_string(wide).size(), 600u) << "shared branches do not blow up";
}

}  // namespace
}  // namespace qplan::pattern::matcher_test
