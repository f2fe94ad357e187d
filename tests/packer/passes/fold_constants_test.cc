#include "src/packer/error.h"
#include "src/packer/op/op_def.h"
#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test {
namespace {

// Evaluates `clip` to a constant of zeros, nothing else.
std::optional<std::vector<ir::ConstantRef>> zeros_for_clip(const ir::Node& node,
                                                           std::span<const ir::ConstantRef> operands) {
  if (node.op->name != "clip") return std::nullopt;
  const ir::TensorType& type = operands[0]->type();
  return {{std::make_shared<const ir::Constant>(
      type, std::vector<uint8_t>(static_cast<size_t>(type.size_bytes())))}};
}

passes::PassContext context(passes::Evaluate evaluate = zeros_for_clip) {
  passes::PassContext made;
  made.evaluate = std::move(evaluate);
  return made;
}

const std::string kClip = "clip(const(Tensor[(2), int8], [1, 2]), a_min=0f, a_max=1f)";

TEST(FoldConstants, ANodeOfConstantsBecomesItsValue) {
  EXPECT_EQ(run_pass("fold_constants", "", "  " + kClip + "\n", context()),
            "const(Tensor[(2), int8], [0, 0])\n");
}

TEST(FoldConstants, FoldsThroughChains) {
  EXPECT_EQ(run_pass("fold_constants", "%x: Tensor[(4), int8]",
                     "  %0 = " + kClip + ";\n  %1 = clip(%0, a_min=0f, a_max=5f);\n  concatenate((%x, %1))\n",
                     context()),
            "%0 = concatenate((%x, const(Tensor[(2), int8], [0, 0])));\n%0\n");
}

TEST(FoldConstants, LeavesWhatDependsOnAnInput) {
  EXPECT_EQ(
      run_pass("fold_constants", "%x: Tensor[(4), int8]", "  clip(%x, a_min=0f, a_max=1f)\n", context()),
      "unchanged");
}

TEST(FoldConstants, LeavesWhatHasNoKernel) {
  EXPECT_EQ(run_pass("fold_constants", "", "  " + kClip + "\n"), "unchanged");
  EXPECT_EQ(run_pass("fold_constants", "", "  reshape(const(Tensor[(2), int8], [1, 2]), newshape=[1, 2])\n",
                     context()),
            "unchanged");
}

TEST(FoldConstants, LeavesWhatWouldTakeTooMuchMemory) {
  const auto everything =
      [](const ir::Node&, std::span<const ir::ConstantRef>) -> std::optional<std::vector<ir::ConstantRef>> {
    throw std::logic_error("must not be asked");
  };
  EXPECT_EQ(run_pass("fold_constants", "",
                     "  nn.pad(const(Tensor[(1), int8], [1]), 0, pad_width=[[0, 300000000]])\n",
                     context(everything)),
            "unchanged");
}

TEST(FoldConstants, AnEvaluationOfAnotherTypeIsAnError) {
  const auto wrong = [](const ir::Node&, std::span<const ir::ConstantRef>) {
    return std::optional<std::vector<ir::ConstantRef>>({ir::make_scalar(1.0f)});
  };
  EXPECT_THROW(run_pass("fold_constants", "", "  " + kClip + "\n", context(wrong)), PackError);
}

}  // namespace
}  // namespace qplan::passes_test
