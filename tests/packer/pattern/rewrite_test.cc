#include <gtest/gtest.h>

#include "src/packer/error.h"
#include "src/packer/pattern/pattern.h"
#include "tests/packer/passes/pass_test_support.h"

namespace qplan::pattern::rewrite_test {
namespace {

using passes_test::parse_main;
using passes_test::print_body;

const char kParams[] = "%x: Tensor[(1, 4), int8]";

Rewrite drop(std::string name, int benefit = 0) {
  return {std::move(name), benefit, op("reshape", {op("reshape", {any().as("data")})}).as("outer"),
          [](const RewriteContext& c, std::string* why) -> std::optional<PostValue> {
            *why = "two in a row";
            return c.post().call("reshape", {c["data"]}, c.node("outer").attrs(), c.root.name());
          }};
}

const char kTwoReshapes[] = "%0 = reshape(%x, newshape=[4, 1]);\nreshape(%0, newshape=[2, 2])\n";

// Visits until none fires.
std::string run(const ir::Function& function, std::span<const Rewrite> rewrites, std::string* log = nullptr) {
  const Fired fired = [&](std::string_view rewrite, std::string_view node, std::string_view why) {
    if (log != nullptr)
      *log += std::string(rewrite) + " " + std::string(node) + ": " + std::string(why) + "\n";
  };
  std::unique_ptr<ir::Function> result;
  while (auto next = rewrite_once(result ? *result : function, rewrites, fired)) result = std::move(next);
  return result ? print_body(*result) : "unchanged";
}

TEST(Rewrite, ReplacesTheMatchedValue) {
  const ir::Module module = parse_main(kParams, kTwoReshapes);
  std::string log;
  EXPECT_EQ(run(module.main(), std::vector{drop("join")}, &log), "%0 = reshape(%x, newshape=[2, 2]);\n%0\n");
  EXPECT_EQ(log, "join : two in a row\n");
  EXPECT_EQ(
      run(parse_main(kParams, "%0 = reshape(%x, newshape=[2, 2]);\n%0\n").main(), std::vector{drop("join")}),
      "unchanged");
}

TEST(Rewrite, HigherBenefitIsTriedFirstThenTheOrderOfTheList) {
  const ir::Module module = parse_main(kParams, kTwoReshapes);
  const auto first = [&](const std::vector<Rewrite>& rewrites) {
    std::string log;
    run(module.main(), rewrites, &log);
    return log.substr(0, log.find(' '));
  };
  EXPECT_EQ(first({drop("a"), drop("b")}), "a");
  EXPECT_EQ(first({drop("a"), drop("b", 1)}), "b");
  EXPECT_EQ(first({drop("a", -1), drop("b")}), "b");
}

TEST(Rewrite, ACallbackMayDecline) {
  const ir::Module module = parse_main(kParams, kTwoReshapes);
  Rewrite rewrite = drop("join");
  rewrite.build = [](const RewriteContext& c, std::string* why) -> std::optional<PostValue> {
    c.post().call("clip", {c["data"]}, {{"a_min", 0.0}, {"a_max", 1.0}}, "left behind");
    *why = "the moon is full";
    return std::nullopt;
  };
  EXPECT_EQ(run(module.main(), std::vector{rewrite}), "unchanged");
  EXPECT_EQ(run(module.main(), std::vector{rewrite, drop("other")}),
            "%0 = reshape(%x, newshape=[2, 2]);\n%0\n")
      << "what it built is not kept, the next one is asked";
  EXPECT_EQ(why_not(rewrite, module.main(), module.main().outputs()[0]),
            "reshape (node 1): the pattern matches, but the moon is full");
}

TEST(Rewrite, NodesThatNothingReadsAreLeftAlone) {
  const ir::Module module = parse_main(kParams, std::string("%9 = reshape(%x, newshape=[4, 1]);\n") +
                                                    "%8 = reshape(%9, newshape=[2, 2]);\n(%x)\n");
  EXPECT_EQ(run(module.main(), std::vector{drop("join")}), "unchanged");
}

TEST(Rewrite, ErrorsNameTheRewrite) {
  const ir::Module module = parse_main(kParams, kTwoReshapes);
  Rewrite rewrite = drop("join");
  rewrite.build = [](const RewriteContext& c, std::string*) -> std::optional<PostValue> { return c["data"]; };
  try {
    run(module.main(), std::vector{rewrite});
    FAIL();
  } catch (const PackError& error) {
    EXPECT_STREQ(error.what(),
                 "rewrite 'join' at reshape (node 1): rebuild: reshape (node 1) (Tensor[(2, 2), int8]) is "
                 "replaced by a value of another type, Tensor[(1, 4), int8]");
  }
}

TEST(Rewrite, WhyNotTellsTheNearMiss) {
  const ir::Module module = parse_main(kParams, kTwoReshapes);
  const ir::Function& main = module.main();
  EXPECT_EQ(why_not(drop("join"), main, main.outputs()[0]), "");
  EXPECT_EQ(why_not(drop("join"), main, main.nodes()[0].results[0]),
            "reshape (node 0): operand 0 (data): expected reshape(any), found parameter '%x' (Tensor[(1, "
            "4), int8])");
  EXPECT_EQ(why_not(drop("join"), main, main.params()[0]),
            "rewrites look at the results of nodes with one result");
}

TEST(Rewrite, ALongChainCollapsesInFewVisits) {
  ir::Function function("main");
  ir::ValueId value = function.add_param("x", {ir::kInt8, {2, 2}});
  for (int i = 0; i < 100000; ++i) {
    value = function
                .add_node(op::get_op("reshape"), {value},
                          {{"newshape", i % 2 == 0 ? ir::Ints{4, 1} : ir::Ints{2, 2}}}, "")
                .results[0];
  }
  function.set_outputs({value});
  uint32_t visits = 0;
  std::unique_ptr<ir::Function> result;
  const std::vector rewrites{drop("join")};
  while (auto next = rewrite_once(result ? *result : function, rewrites, {})) {
    result = std::move(next);
    ++visits;
  }
  EXPECT_EQ(result->nodes().size(), 1u);
  EXPECT_LE(visits, 20u);
}

}  // namespace
}  // namespace qplan::pattern::rewrite_test
