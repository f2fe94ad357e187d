#include "src/packer/pattern/matcher.h"

#include <gtest/gtest.h>

#include "src/packer/error.h"
#include "src/packer/text/text.h"

namespace qplan::pattern {
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

const char kChain[] =
    "  %0 = clip(%x, a_min=0f, a_max=6f);\n"
    "  %1 = reshape(%0, newshape=[4, 1]);\n"
    "  cast(%1, dtype=\"int32\")\n";

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

}  // namespace
}  // namespace qplan::pattern
