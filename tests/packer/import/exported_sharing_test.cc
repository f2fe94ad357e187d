// Programs with operators in place: what else shares the elements that one of them changes. PyTorch's results
// are in the comments; what qplan cannot follow it refuses.
#include <gtest/gtest.h>

#include "tests/packer/import/exported_builder.h"
#include "tests/packer/import/pytorch_helpers.h"

namespace qplan::pytorch_test::exported_sharing_test {
namespace {

using Arguments = ExportedBuilder::Arguments;

constexpr char kStale[] = "a tensor that shares its elements with one that is changed in place";

std::string refused(const std::string& op, const std::string& node, const std::string& reason = kStale) {
  return "-49: pytorch: 'net.pt': 1 operator that qplan does not import: " + op + " with " + reason + " ('" +
         node + "')";
}

// n = -x, of 2 x 3.
ExportedBuilder negated() {
  ExportedBuilder b;
  b.input("x", {2, 3}).node("aten.neg.default", "n", {{"self", tensor("x")}});
  return b;
}
// changed.relu_(); y = exp(read).
std::string then_read(ExportedBuilder b, const std::string& changed, const std::string& read) {
  b.node("aten.relu_.default", "r", {{"self", tensor(changed)}});
  b.node("aten.exp.default", "y", {{"self", tensor(read)}}).output("y");
  return import_text(b.build(), {});
}

TEST(ExportedSharing, TheChangedTensorIsReadUnderItsNames) {
  const std::string body = "%0 = negative(%x);\n%1 = nn.relu(%0);\n%2 = exp(%1);\n%2\n";
  EXPECT_EQ(then_read(negated(), "n", "n"), body);
  EXPECT_EQ(then_read(negated(), "n", "r"), body);
  for (const char* same : {"aten.detach.default", "aten.alias.default"}) {
    ExportedBuilder b = negated();
    b.node(same, "s", {{"self", tensor("n")}});
    EXPECT_EQ(then_read(b, "s", "n"), body) << same;
    EXPECT_EQ(then_read(b, "n", "s"), body) << same;
  }
}

TEST(ExportedSharing, ViewsAreStaleAndSoIsTheirSource) {
  const std::pair<const char*, Arguments> views[] = {
      {"aten.view.default", {{"self", tensor("n")}, {"size", integers({6})}}},
      {"aten.view.default", {{"self", tensor("n")}, {"size", integers({2, 3})}}},
      {"aten.reshape.default", {{"self", tensor("n")}, {"shape", integers({3, 2})}}},
      {"aten.flatten.using_ints", {{"self", tensor("n")}}},
      {"aten.permute.default", {{"self", tensor("n")}, {"dims", integers({1, 0})}}},
      {"aten.transpose.int", {{"self", tensor("n")}, {"dim0", integer(0)}, {"dim1", integer(1)}}},
      {"aten.unsqueeze.default", {{"self", tensor("n")}, {"dim", integer(0)}}},
      {"aten.select.int", {{"self", tensor("n")}, {"dim", integer(0)}, {"index", integer(1)}}},
      {"aten.slice.Tensor",
       {{"self", tensor("n")}, {"dim", integer(1)}, {"start", integer(0)}, {"end", integer(2)}}},
      {"aten.contiguous.default", {{"self", tensor("n")}}}};
  for (const auto& [target, arguments] : views) {
    ExportedBuilder b = negated();
    b.node(target, "v", arguments);
    EXPECT_EQ(then_read(b, "n", "v"), refused("aten::exp", "y")) << target;
    EXPECT_EQ(then_read(b, "v", "n"), refused("aten::exp", "y")) << target;
    EXPECT_NE(then_read(b, "v", "r").find("nn.relu"), std::string::npos) << target;
    b.node("aten.view.default", "w", {{"self", tensor("v")}, {"size", integers({-1, 1})}});
    EXPECT_EQ(then_read(b, "n", "w"), refused("aten::exp", "y")) << target;
  }
}

// z is a copy of y where y is not contiguous: y + relu(y), not 2 * relu(y).
TEST(ExportedSharing, ContiguousCopiesWhatIsNotContiguous) {
  ExportedBuilder b = negated();
  b.node("aten.permute.default", "p", {{"self", tensor("n")}, {"dims", integers({1, 0})}});
  b.node("aten.contiguous.default", "z", {{"self", tensor("p")}});
  EXPECT_EQ(then_read(b, "z", "p"), refused("aten::exp", "y"));
  EXPECT_EQ(then_read(b, "p", "z"), refused("aten::exp", "y"));
}

TEST(ExportedSharing, CopiesAreTheirOwn) {
  for (const char* copy : {"aten.clone.default", "aten.lift_fresh_copy.default", "aten._to_copy.default"}) {
    ExportedBuilder b = negated();
    b.node(copy, "c", {{"self", tensor("n")}});
    EXPECT_EQ(then_read(b, "c", "n"), "%0 = negative(%x);\n%1 = nn.relu(%0);\n%2 = exp(%0);\n%2\n") << copy;
    EXPECT_EQ(then_read(b, "n", "c"), "%0 = negative(%x);\n%1 = nn.relu(%0);\n%2 = exp(%0);\n%2\n") << copy;
  }
  // The data has the size already.
  ExportedBuilder same;
  same.input("x", {1, 1, 2, 3}).node("aten.neg.default", "n", {{"self", tensor("x")}});
  same.node("aten.upsample_nearest2d.default", "u",
            {{"self", tensor("n")}, {"output_size", integers({2, 3})}});
  EXPECT_EQ(then_read(same, "u", "n"), "%0 = negative(%x);\n%1 = nn.relu(%0);\n%2 = exp(%0);\n%2\n");
}

TEST(ExportedSharing, PartsOfOneSplitAreApart) {
  ExportedBuilder b = negated();
  b.raw_node("torch.ops.aten.split.Tensor", Json::array({tensors({"s", "t", "u"})}),
             {{"self", tensor("n")}, {"split_size", integer(1)}, {"dim", integer(1)}});
  b.node("aten.view.default", "v", {{"self", tensor("s")}, {"size", integers({2})}});
  b.node("aten.slice.Tensor", "o",
         {{"self", tensor("n")}, {"dim", integer(1)}, {"start", integer(0)}, {"end", integer(2)}});
  EXPECT_NE(then_read(b, "s", "t").find("exp(%1.1)"), std::string::npos) << then_read(b, "s", "t");
  EXPECT_NE(then_read(b, "v", "t").find("exp(%1.1)"), std::string::npos) << then_read(b, "v", "t");
  for (const char* other : {"n", "v", "o"}) EXPECT_EQ(then_read(b, "s", other), refused("aten::exp", "y"));
  for (const char* part : {"s", "v", "o"}) EXPECT_EQ(then_read(b, "n", part), refused("aten::exp", "y"));
  EXPECT_EQ(then_read(b, "o", "t"), refused("aten::exp", "y"));
}

// The state would be lost between two runs.
TEST(ExportedSharing, BuffersThatAnOperatorChangesAreRefused) {
  ExportedBuilder b;
  b.input("x", {2}).weight("acc", {2}, kFloat, bytes_of<float>({1, -2}));
  ExportedBuilder sum = b;
  sum.node("aten.add_.Tensor", "y", {{"self", tensor("p_acc")}, {"other", tensor("x")}}).output("y");
  EXPECT_EQ(import_text(sum.build(), {}), refused("aten::add_", "y", "a buffer that the model changes"));
  ExportedBuilder view = b;
  view.node("aten.view.default", "v", {{"self", tensor("p_acc")}, {"size", integers({1, 2})}});
  view.node("aten.view.default", "w", {{"self", tensor("v")}, {"size", integers({2})}});
  view.node("aten.relu_.default", "r", {{"self", tensor("w")}});
  view.node("aten.add.Tensor", "y", {{"self", tensor("x")}, {"other", tensor("r")}}).output("y");
  const std::string text = import_text(view.build(), {});
  EXPECT_EQ(text, refused("aten::relu_", "r", "a buffer that the model changes"));
  ExportedBuilder copy = b;
  copy.node("aten.clone.default", "c", {{"self", tensor("p_acc")}});
  copy.node("aten.add_.Tensor", "y", {{"self", tensor("c")}, {"other", tensor("x")}}).output("y");
  EXPECT_EQ(import_text(copy.build(), {}), "%0 = add(const(Tensor[(2), float32], [1, -2]), %x);\n%0\n");
}

// v has the elements of n, which the block changes.
TEST(ExportedSharing, BlocksChangeWhatIsSharedOutsideOfThem) {
  ExportedBuilder body;
  body.graph()["inputs"] = Json::array({tensor("i")});
  body.graph()["outputs"] = Json::array({tensor("r")});
  body.node("aten.relu_.default", "r", {{"self", tensor("i")}});
  ExportedBuilder b = negated();
  b.node("aten.view.default", "v", {{"self", tensor("n")}, {"size", integers({6})}});
  b.raw_node("torch.ops.higher_order.wrap_with_set_grad_enabled", Json::array({tensor("w")}),
             {{"a", boolean(false)},
              {"b", {{"as_graph", {{"name", "g"}, {"graph", body.graph()}}}}},
              {"c", tensor("n")}});
  ExportedBuilder stale = b;
  stale.output("v");
  EXPECT_EQ(import_text(stale.build(), {}), "-49: pytorch: 'net.pt': a model with " + std::string(kStale));
  ExportedBuilder read = b;
  read.node("aten.exp.default", "y", {{"self", tensor("v")}}).output("y");
  EXPECT_EQ(import_text(read.build(), {}), refused("aten::exp", "y"));
  b.output("w").output("n");
  EXPECT_EQ(import_text(b.build(), {}).find("-49"), std::string::npos) << import_text(b.build(), {});
}

// An operand has one shape: PyTorch refuses to run these.
TEST(ExportedSharing, OperandsKeepTheirShape) {
  ExportedBuilder b = negated();
  b.input("z", {4, 2, 3});
  b.node("aten.add_.Tensor", "y", {{"self", tensor("n")}, {"other", tensor("z")}}).output("y");
  EXPECT_EQ(import_text(b.build(), {}),
            "-48: pytorch: 'net.pt': aten::add_ 'y': the result has shape [4, 2, 3], which an operand of "
            "[2, 3] has no place for");
}

// A deep network: what an operator in place costs does not depend on how many tensors there are.
TEST(ExportedSharing, DeepNetworksAreImported) {
  constexpr int kBlocks = 3000;
  ExportedBuilder b = negated();
  std::string last = "n";
  for (int i = 0; i < kBlocks; ++i) {
    const std::string name = std::to_string(i);
    b.node("aten.neg.default", "m" + name, {{"self", tensor(last)}});
    b.node("aten.relu_.default", "r" + name, {{"self", tensor("m" + name)}});
    last = "r" + name;
  }
  b.output(last);
  EXPECT_EQ(import_text(b.build(), {}).find("%0 = negative(%x);"), 0u) << import_text(b.build(), {});
}

}  // namespace
}  // namespace qplan::pytorch_test::exported_sharing_test
