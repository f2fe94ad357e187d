#include <gtest/gtest.h>

#include <type_traits>

#include "src/packer/error.h"
#include "src/packer/pattern/pattern.h"
#include "src/packer/text/text.h"

namespace qplan::pattern::rebuild_test {
namespace {

// A value of the old function is no operand of the new one, nor the other way round.
static_assert(!std::is_convertible_v<PreValue, PostValue> && !std::is_convertible_v<PostValue, PreValue>);
static_assert(!std::is_invocable_v<decltype(&Post::call), Post&, std::string_view,
                                   const std::vector<PreValue>&, ir::Attrs, const std::string&>);
static_assert(!std::is_invocable_v<decltype(&Rebuild::replace), Rebuild&, PostValue, PreValue>);

ir::Module parse(const std::string& body) {
  return text::parse("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(4), int8]) {\n" + body + "}\n", "test");
}

TEST(Rebuild, WithoutARewriteThereIsNoNewFunction) {
  const ir::Module module = parse("  clip(%x, a_min=0f, a_max=1f)\n");
  EXPECT_EQ(rebuild(module.main(), [](Rebuild&, PreNode) { return false; }), nullptr);
}

TEST(Rebuild, ReplacementsReachEveryUserAndDeadNodesGo) {
  const ir::Module module = parse(
      "  %0 = clip(%x, a_min=0f, a_max=1f);\n"
      "  %1 = clip(%0, a_min=0f, a_max=2f);\n"
      "  %2 = clip(%1, a_min=0f, a_max=3f);\n"
      "  (%2, %1)\n");
  // %1 becomes %x: %0 is then unused.
  const auto result = rebuild(module.main(), [](Rebuild& r, PreNode node) {
    if (!node.is("clip") || op::attr_float(node.node(), "a_max") != 2) return false;
    const auto inner = r.pre().producer(node.operand(0), "clip");
    r.replace(node.result(), r[inner->operand(0)]);
    return true;
  });
  ASSERT_NE(result, nullptr);
  ASSERT_EQ(result->nodes().size(), 1u);
  EXPECT_EQ(result->nodes()[0].operands[0], result->params()[0]);
  EXPECT_EQ(result->outputs()[1], result->params()[0]);
}

TEST(Rebuild, CountsUsesByOperandsAndOutputs) {
  const ir::Module module =
      parse("  %0 = clip(%x, a_min=0f, a_max=1f);\n  %1 = concatenate((%0, %0));\n  (%0, %1)\n");
  Rebuild r(module.main());
  EXPECT_EQ(r.pre().num_uses(PreNode(module.main(), 0).result()), 3u);
  EXPECT_EQ(r.pre().num_uses(PreNode(module.main(), 1).result()), 1u);
}

TEST(Rebuild, CallsOfFunctionsAreCopied) {
  ir::Module module;
  ir::Function& main = module.add_function("main");
  const ir::ValueId x = main.add_param("x", {ir::kInt8, {4}});
  ir::Node& call = main.add_call("region", {x}, {{ir::kInt8, {4}}, {ir::kInt32, {2}}}, "call");
  call.attrs.set("k", int64_t{1});
  const std::vector<ir::ValueId> results = call.results;
  const ir::ValueId clip =
      main.add_node(op::get_op("clip"), {results[0]}, {{"a_min", 0.0}, {"a_max", 1.0}}, "clip").results[0];
  main.set_outputs({clip, results[1]});
  const auto result = rebuild(main, [](Rebuild& r, PreNode node) {
    if (!node.is("clip")) return false;
    r.replace(node.result(), r[node.operand(0)]);
    return true;
  });
  ASSERT_EQ(result->nodes().size(), 1u);
  EXPECT_EQ(result->nodes()[0].callee, "region");
  EXPECT_EQ(result->nodes()[0].attrs.get_int("k", 0), 1);
  EXPECT_EQ(result->type(result->outputs()[1]), (ir::TensorType{ir::kInt32, {2}}));
}

TEST(Rebuild, AReplacementOfAnotherTypeIsOurBug) {
  const ir::Module module = parse("  argmax(%x, axis=0)\n");
  EXPECT_THROW(rebuild(module.main(),
                       [](Rebuild& r, PreNode node) {
                         r.replace(node.result(), r[node.operand(0)]);
                         return true;
                       }),
               PackError);
}

}  // namespace
}  // namespace qplan::pattern::rebuild_test
