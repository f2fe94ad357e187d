// Numbers, lists and devices of TorchScript, which are known when the model is read. Expected numbers are
// Python's.
#include <gtest/gtest.h>

#include "tests/packer/import/pytorch_helpers.h"

namespace qplan::pytorch_test::pytorch_numbers_test {
namespace {

// The scalar that x is multiplied by.
std::string factor(const std::string& expression) {
  const std::string text = import_forward("    return torch.mul(x, " + expression + ")\n");
  const std::string before = "%0 = multiply(%x, ", after = ");\n%0\n";
  if (!text.starts_with(before) || !text.ends_with(after)) return text;
  return text.substr(before.size(), text.size() - before.size() - after.size());
}

TEST(PytorchNumbers, DoublesAreComputedAsDoubles) {
  EXPECT_EQ(factor("torch.mul(1e10, 1e10)"), "1e+20f");
  EXPECT_EQ(factor("torch.mul(0.5, 2.5)"), "1.25f");
  EXPECT_EQ(factor("torch.add(1, 0.5)"), "1.5f");
  EXPECT_EQ(factor("torch.sub(0.25, 1)"), "-0.75f");
  EXPECT_EQ(factor("torch.mul(2147483648, 2)"), "4294967296f");
}

TEST(PytorchNumbers, QuotientsAreDoublesUnlessTheyAreRounded) {
  EXPECT_EQ(factor("torch.div(7, 2)"), "3.5f");
  EXPECT_EQ(factor("torch.div(-7, 2, rounding_mode=\"trunc\")"), "-3f");
  EXPECT_EQ(factor("torch.div(-7, 2, rounding_mode=\"floor\")"), "-4f");
  EXPECT_EQ(factor("torch.div(-7., 2, rounding_mode=\"floor\")"), "-4f");
  EXPECT_EQ(factor("torch.floordiv(-7, 2)"), "-4f");
  EXPECT_EQ(factor("torch.remainder(-7, 4)"), "1f");
  EXPECT_EQ(factor("torch.remainder(7, -4)"), "-1f");
  EXPECT_EQ(factor("torch.remainder(-5.5, 2)"), "0.5f");
  EXPECT_NE(factor("torch.remainder(7, 0)").find("division by zero"), std::string::npos);
  EXPECT_NE(factor("torch.div(7, 0, rounding_mode=\"trunc\")").find("division by zero"), std::string::npos);
}

TEST(PytorchNumbers, FunctionsOfNumbers) {
  EXPECT_EQ(factor("torch.pow(float(torch.size(x, 2)), -0.5)"), "0.5f");
  EXPECT_EQ(factor("torch.pow(3, 2)"), "9f");
  EXPECT_EQ(factor("torch.sqrt(torch.size(x, -1))"), "2f");
  EXPECT_EQ(factor("torch.neg(torch.size(x, 1))"), "-2f");
  EXPECT_EQ(factor("ops.prim.min(3, 2)"), "2f");
  EXPECT_EQ(factor("ops.prim.max(3, 2.5)"), "3f");
  EXPECT_EQ(factor("ops.prim.max(torch.size(x))"), "4f");
  EXPECT_EQ(factor("int(torch.div(torch.size(x, 2), 3))"), "1f");
  EXPECT_EQ(factor("torch.floor(2.5)"), "2f");
  EXPECT_EQ(factor("torch.ceil(2.5)"), "3f");
  EXPECT_EQ(factor("torch.to(0.1, 6)"), "0.1f");
}

TEST(PytorchNumbers, ListsArePartedJoinedAndGrown) {
  EXPECT_EQ(import_forward(
                "    return torch.reshape(x, torch.add([2], torch.list(torch.slice(torch.size(x), -2))))\n"),
            "%0 = reshape(%x, newshape=[2, 4, 4]);\n%0\n");
  EXPECT_EQ(import_forward("    return torch.reshape(x, torch.slice([9, 8, 9, 4, 9], 1, 4, 2))\n"),
            "%0 = reshape(%x, newshape=[8, 4]);\n%0\n");
  EXPECT_EQ(import_forward("    o = annotate(List[Tensor], [])\n    p = o\n"
                           "    _0 = torch.append(o, x)\n    _1 = torch.append(p, torch.relu(x))\n"
                           "    return torch.cat(o, 1)\n"),
            "%0 = nn.relu(%x);\n%1 = concatenate((%x, %0), axis=1);\n%1\n");
}

TEST(PytorchNumbers, AnOperatorThatIsNotImportedMayChangeItsList) {
  EXPECT_EQ(import_forward("    o = [x]\n    torch.clear(o)\n    torch.append(o, x)\n"
                           "    return torch.cat(o, 1)\n"),
            "-49: pytorch: 'net.pt': 1 operator that qplan does not import: aten::clear ('clear')");
}

// A traced LSTM makes its first state like this.
TEST(PytorchNumbers, DevicesAreNoOperators) {
  const std::string zeros = "%0 = add(%x, const(Tensor[(2), float32], [0, 0]));\n%0\n";
  EXPECT_EQ(import_forward("    return torch.add(x, torch.zeros([2], dtype=6, layout=None, "
                           "device=torch.device(\"cpu\"), pin_memory=False))\n",
                           {1, 2}),
            zeros);
  EXPECT_EQ(import_forward("    return torch.add(x, torch.zeros([2], dtype=ops.prim.dtype(x), "
                           "device=ops.prim.device(x)))\n",
                           {1, 2}),
            zeros);
  const std::string relu = "%0 = nn.relu(%x);\n%0\n";
  for (const char* same :
       {"torch.to(x, torch.device(\"cpu\"))", "torch.to(x, torch.device(\"cpu\"), 6)",
        "torch.to(x, torch.device(\"cpu\"), 6, False, False, None)",
        "torch.to(x, torch.device(\"cpu\"), False, False)",
        "torch.to(x, dtype=6, layout=0, device=torch.device(\"cpu\"))", "torch.type_as(x, x)"})
    EXPECT_EQ(import_forward("    return torch.relu(" + std::string(same) + ")\n"), relu) << same;
  EXPECT_NE(import_forward("    return torch.to(x, torch.device(\"cpu\"), 4)\n")
                .find("aten::to with another dtype"),
            std::string::npos);
}

// PyTorch computes in float64 with a tensor of doubles that has axes; a number may be one.
TEST(PytorchNumbers, TensorsOfDoublesAreRefused) {
  const auto text = [](std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    PickleWriter module;  // Net { w: one double }
    module.global("__torch__", "Net").raw(")\x81}(").text("w");
    module.tensor("DoubleStorage", "5", 1, 0, std::move(sizes), std::move(strides)).raw("ub");
    ArchiveBuilder builder("    return torch.mul(x, self.w)\n");
    builder.module(module).storage("data/5", bytes_of<double>({2}));
    return import_text(builder.build(), with_input({1, 4}));
  };
  EXPECT_EQ(text({}, {}).find("%0 = multiply(%x, 2f);"), 0u) << text({}, {});
  EXPECT_NE(text({1}, {1}).find("aten::mul with float64 tensors"), std::string::npos) << text({1}, {1});
}

}  // namespace
}  // namespace qplan::pytorch_test::pytorch_numbers_test
