#include "src/packer/error.h"
#include "src/packer/op/op_def.h"
#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::fold_constants_test {
namespace {

// Evaluates `qnn.requantize`, which has no evaluation of its own, to a constant of zeros, nothing else.
std::optional<std::vector<ir::ConstantRef>> zeros_for_requantize(const ir::Node& node,
                                                                 std::span<const ir::ConstantRef> operands) {
  if (node.op->name != "qnn.requantize") return std::nullopt;
  const ir::TensorType& type = operands[0]->type();
  return {{std::make_shared<const ir::Constant>(
      type, std::vector<uint8_t>(static_cast<size_t>(type.size_bytes())))}};
}

passes::PassContext context(passes::Evaluate evaluate = zeros_for_requantize) {
  passes::PassContext made;
  made.evaluate = std::move(evaluate);
  return made;
}

const std::string kRequantize = "qnn.requantize(const(Tensor[(2), int8], [1, 2]), 1f, 0, 0.5f, 0)";

TEST(FoldConstants, ANodeOfConstantsBecomesItsValue) {
  EXPECT_EQ(run_pass("fold_constants", "", "  " + kRequantize + "\n", context()),
            "const(Tensor[(2), int8], [0, 0])\n");
}

TEST(FoldConstants, FoldsThroughChains) {
  EXPECT_EQ(
      run_pass("fold_constants", "%x: Tensor[(4), int8]",
               "  %0 = " + kRequantize + ";\n  %1 = clip(%0, a_min=0f, a_max=5f);\n  concatenate((%x, %1))\n",
               context()),
      "%0 = concatenate((%x, const(Tensor[(2), int8], [0, 0])));\n%0\n");
}

TEST(FoldConstants, LeavesWhatDependsOnAnInput) {
  EXPECT_EQ(
      run_pass("fold_constants", "%x: Tensor[(4), int8]", "  clip(%x, a_min=0f, a_max=1f)\n", context()),
      "unchanged");
}

TEST(FoldConstants, LeavesWhatHasNoKernel) {
  EXPECT_EQ(run_pass("fold_constants", "", "  " + kRequantize + "\n"), "unchanged");
  EXPECT_EQ(
      run_pass("fold_constants", "",
               "  nn.max_pool2d(const(Tensor[(1, 1, 1, 1), int8], [1]), pool_size=[1, 1])\n", context()),
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

// The body after each of two runs with one context.
std::vector<std::string> run_twice(const std::string& body, passes::PassContext context) {
  const ir::Module module = parse_main("%x: Tensor[(1), int8]", body);
  const passes::Pass* pass = passes::find_pass("fold_constants");
  const auto first = pass->run(module, module.main(), context);
  if (first == nullptr) return {};
  const auto second = pass->run(module, *first, context);
  return {print_body(*first), second == nullptr ? "unchanged" : print_body(*second)};
}

TEST(FoldConstants, TheBudgetOfBytesIsForAllRuns) {
  passes::PassContext made = context();
  made.fold_budget.bytes = 3;
  const std::string other = "qnn.requantize(const(Tensor[(2), int8], [3, 4]), 1f, 0, 0.5f, 0)";
  EXPECT_EQ(
      run_twice("  %0 = " + kRequantize + ";\n  %1 = " + other + ";\n  concatenate((%x, %0, %1))\n", made),
      (std::vector<std::string>{
          "%0 = " + other + ";\n%1 = concatenate((%x, const(Tensor[(2), int8], " + "[0, 0]), %0));\n%1\n",
          "unchanged"}));
}

TEST(FoldConstants, ReadingCostsWorkAsWritingDoes) {
  passes::PassContext made = context();
  made.fold_budget.work = 19;  // two bytes, two scales and two zero points are read, and two bytes written
  EXPECT_EQ(run_pass("fold_constants", "", "  " + kRequantize + "\n", made), "unchanged");
  made.fold_budget.work = 20;
  EXPECT_EQ(run_pass("fold_constants", "", "  " + kRequantize + "\n", made),
            "const(Tensor[(2), int8], [0, 0])\n");
}

TEST(FoldConstants, LeavesAPoolWhoseWindowTakesTooMuchTime) {
  passes::PassContext made = context(
      [](const ir::Node&, std::span<const ir::ConstantRef>) -> std::optional<std::vector<ir::ConstantRef>> {
        return {{ir::make_constant(ir::kInt8, {1, 1, 3, 1}, std::vector<int8_t>{1, 2, 3})}};
      });
  const std::string pool =
      "  nn.max_pool2d(const(Tensor[(1, 1, 4, 1), int8], [1, 2, 3, 4]), pool_size=[1, 2], strides=[1, 1], "
      "padding=[0], layout=\"NHWC\")\n";
  made.fold_budget.work = 4 + 3 * 2 - 1;
  EXPECT_EQ(run_pass("fold_constants", "", pool, made), "unchanged");
  made.fold_budget.work = 4 + 3 * 2;
  EXPECT_NE(run_pass("fold_constants", "", pool, made), "unchanged");
}

TEST(FoldConstants, AnEvaluationOfAnotherTypeIsAnError) {
  const auto wrong = [](const ir::Node&, std::span<const ir::ConstantRef>) {
    return std::optional<std::vector<ir::ConstantRef>>({ir::make_scalar(1.0f)});
  };
  EXPECT_THROW(run_pass("fold_constants", "", "  " + kRequantize + "\n", context(wrong)), PackError);
}

TEST(FoldConstants, LeavesQuantisationOfConstants) {
  const auto everything = [](const ir::Node& node, std::span<const ir::ConstantRef>) {
    ADD_FAILURE() << node.op->name << " must not be evaluated";
    return std::optional<std::vector<ir::ConstantRef>>();
  };
  EXPECT_EQ(run_pass("fold_constants", "", "  qnn.dequantize(const(Tensor[(2), int8], [1, 2]), 0.5f, 0)\n",
                     context(everything)),
            "unchanged");
  EXPECT_EQ(run_pass("fold_constants", "", "  qnn.quantize(const(Tensor[(2), float32], [1, 2]), 0.5f, 0)\n",
                     context(everything)),
            "unchanged");
}

// Once floats stay, dequantised constants are constants, of every dtype that they may have.
TEST(FoldConstants, DequantisesIntegersOfEveryWidth) {
  const auto folded = [](const std::string& integers) {
    passes::PassContext made = context();
    made.floats_stay = true;
    return run_pass("fold_constants", "", "  qnn.dequantize(" + integers + ")\n", made);
  };
  for (const std::string dtype : {"int8", "int16", "int32"}) {
    EXPECT_EQ(folded("const(Tensor[(2), " + dtype + "], [100, -28]), 0.5f, 3"),
              "const(Tensor[(2), float32], [48.5, -15.5])\n");
  }
  EXPECT_EQ(folded("const(Tensor[(2), uint8], [100, 228]), 0.5f, 3"),
            "const(Tensor[(2), float32], [48.5, 112.5])\n");
  EXPECT_EQ(folded("const(Tensor[(2), int16], [-32768, 32767]), const(Tensor[(2), float32], [0.5, 2]), 0, "
                   "axis=0"),
            "const(Tensor[(2), float32], [-16384, 65534])\n");
}

}  // namespace
}  // namespace qplan::passes_test::fold_constants_test
