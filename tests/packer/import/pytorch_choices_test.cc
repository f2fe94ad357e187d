// Conditions that tensors make, what they choose, positions of elements, and repeated elements: the IR of
// each operator. tests/python/torch_operators_test.py compares what they compute with PyTorch.
#include <gtest/gtest.h>

#include "tests/packer/import/pytorch_helpers.h"

namespace qplan::pytorch_test::pytorch_choices_test {
namespace {

std::string of(const std::string& expression, const ir::Shape& shape = {2, 4}) {
  return import_forward("    return " + expression + "\n", shape);
}

TEST(PytorchChoices, ComparisonsMakeBools) {
  EXPECT_EQ(of("torch.lt(x, 0.5)"), "%0 = less(%x, 0.5f);\n%0\n");
  EXPECT_EQ(of("torch.gt(x, torch.relu(x))"), "%0 = nn.relu(%x);\n%1 = less(%0, %x);\n%1\n");
  EXPECT_EQ(of("torch.le(x, 1)"), "%0 = less_equal(%x, 1f);\n%0\n");
  EXPECT_EQ(of("torch.ge(x, 1)"), "%0 = less_equal(1f, %x);\n%0\n");
  EXPECT_EQ(of("torch.eq(x, 1)"), "%0 = equal(%x, 1f);\n%0\n");
  EXPECT_EQ(of("torch.ne(x, 1)"), "%0 = equal(%x, 1f);\n%1 = where(%0, False, True);\n%1\n");
  EXPECT_EQ(of("torch.logical_not(torch.bitwise_not(torch.lt(x, 1)))"),
            "%0 = less(%x, 1f);\n%1 = where(%0, False, True);\n%2 = where(%1, False, True);\n%2\n");
}

TEST(PytorchChoices, ConditionsChoose) {
  EXPECT_EQ(of("torch.where(torch.lt(x, 0.5), x, torch.relu(x))"),
            "%0 = less(%x, 0.5f);\n%1 = nn.relu(%x);\n%2 = where(%0, %x, %1);\n%2\n");
  EXPECT_EQ(of("torch.masked_fill(x, torch.lt(x, 0.5), -inf)"),
            "%0 = less(%x, 0.5f);\n%1 = where(%0, -inff, %x);\n%1\n");
  EXPECT_EQ(of("torch.mul(x, torch.to(torch.lt(x, 0.5), 6))"),
            "%0 = less(%x, 0.5f);\n%1 = where(%0, 1f, 0f);\n%2 = multiply(%x, %1);\n%2\n");
  EXPECT_EQ(of("torch.mul(x, torch.lt(x, 0.5))"),
            "%0 = less(%x, 0.5f);\n%1 = where(%0, 1f, 0f);\n%2 = multiply(%x, %1);\n%2\n");
  EXPECT_EQ(import_forward(
                "    y = torch.relu(x)\n    z = torch.masked_fill_(y, torch.lt(x, 0.5), 2)\n    return y\n"),
            "%0 = nn.relu(%x);\n%1 = less(%x, 0.5f);\n%2 = where(%1, 2f, %0);\n%2\n");
}

// x of int64 or int32.
std::string of_integers(const std::string& expression, ir::DType dtype = ir::kInt64) {
  ImportOptions options;
  options.input_types["x"] = {dtype, {2, 4}};
  return import_text(ArchiveBuilder("    return " + expression + "\n").build(), options);
}

TEST(PytorchChoices, IntegersAreComputedAsSuch) {
  EXPECT_EQ(of_integers("torch.mul(x, torch.add(x, 3))"),
            "%0 = add(%x, 3i64);\n%1 = multiply(%x, %0);\n%1\n");
  EXPECT_EQ(of_integers("torch.rsub(x, 3)", ir::kInt32), "%0 = subtract(3, %x);\n%0\n");
  EXPECT_EQ(of_integers("torch.lt(x, 3)"), "%0 = less(%x, 3i64);\n%0\n");
  EXPECT_EQ(of_integers("torch.floor_divide(x, 3)"), "%0 = floor_divide(%x, 3i64);\n%0\n");
  EXPECT_EQ(of_integers("torch.div(x, x, rounding_mode=\"trunc\")"), "%0 = divide(%x, %x);\n%0\n");
  EXPECT_EQ(of_integers("torch.amax(x, [1], True)", ir::kInt32),
            "%0 = max(%x, axis=[1], keepdims=True);\n%0\n");
  EXPECT_EQ(of_integers("torch.prod(x, 1)"), "%0 = prod(%x, axis=[1]);\n%0\n");
  EXPECT_EQ(of_integers("torch.sum(x, [0, 1])", ir::kInt32),
            "%0 = cast(%x, dtype=\"int64\");\n%1 = sum(%0, axis=[0, 1]);\n%1\n");
}

TEST(PytorchChoices, IntegersBesideOthersAreUnsupported) {
  EXPECT_NE(of_integers("torch.mul(x, 0.5)").find("with int64 tensors"), std::string::npos);
  EXPECT_NE(of_integers("torch.div(x, x)").find("with int64 tensors"), std::string::npos);
  EXPECT_NE(of_integers("torch.add(x, x, alpha=2)").find("with integers and a factor"), std::string::npos);
  EXPECT_NE(of_integers("torch.add(x, 2147483648)", ir::kInt32).find("with a number beyond int32"),
            std::string::npos);
  EXPECT_NE(of_integers("torch.sum(x, dtype=6)").find("with a result other than int64"), std::string::npos);
}

// PyTorch's result is bool or int64.
TEST(PytorchChoices, BoolsBesideBoolsAndIntegersAreUnsupported) {
  for (const char* expression :
       {"torch.mul(torch.lt(x, 0.5), 2)", "torch.add(torch.lt(x, 0.5), torch.lt(x, 1.))",
        "torch.where(torch.lt(x, 0.5), torch.lt(x, 1.), torch.lt(x, 2.))"})
    EXPECT_NE(of(expression).find("with bool tensors"), std::string::npos) << of(expression);
  EXPECT_NE(of("torch.where(torch.lt(x, 0.5), 1, 0)").find("with two integers"), std::string::npos);
  EXPECT_EQ(of("torch.where(torch.lt(x, 0.5), 1., 0.)"),
            "%0 = less(%x, 0.5f);\n%1 = where(%0, 1f, 0f);\n%1\n");
}

TEST(PytorchChoices, ConditionsOfAnotherTypeAreUnsupported) {
  EXPECT_EQ(of("torch.where(x, x, x)"),
            "-49: pytorch: 'net.pt': 1 operator that qplan does not import: aten::where with a condition of "
            "float32 ('where')");
  EXPECT_EQ(of("torch.where(torch.lt(x, 0.5))"),
            "-49: pytorch: 'net.pt': 1 operator that qplan does not import: aten::where with a condition "
            "alone: as many positions as the data has ('where')");
  EXPECT_EQ(of("torch.where(torch.lt(x, 0.5), torch.quantize_per_tensor(x, 0.5, 3, 13), x)"),
            "-49: pytorch: 'net.pt': 1 operator that qplan does not import: aten::where with a quantised "
            "tensor ('where')");
}

TEST(PytorchChoices, PositionsOfElements) {
  EXPECT_EQ(of("torch.argmax(x, 1)"), "%0 = argmax(%x, axis=1, dtype=\"int64\");\n%0\n");
  EXPECT_EQ(of("torch.argmax(x, -2, True)"),
            "%0 = argmax(%x, axis=0, keepdims=True, dtype=\"int64\");\n%0\n");
  EXPECT_EQ(of("torch.argmax(x)"),
            "%0 = reshape(%x, newshape=[8]);\n%1 = argmax(%0, axis=0, dtype=\"int64\");\n%1\n");
  EXPECT_EQ(of("torch.argmax(x, None, True)"),
            "%0 = reshape(%x, newshape=[8]);\n%1 = argmax(%0, axis=0, dtype=\"int64\");\n%2 = reshape(%1, "
            "newshape=[1, 1]);\n%2\n");
  EXPECT_EQ(of("torch.argmin(x, 1)"), "%0 = negative(%x);\n%1 = argmax(%0, axis=1, dtype=\"int64\");\n%1\n");
}

TEST(PytorchChoices, RepeatedElements) {
  EXPECT_EQ(of("torch.repeat(x, [2, 1, 2])"),
            "%0 = reshape(%x, newshape=[1, 2, 4]);\n%1 = take(%0, const(Tensor[(2), int64], [0, 0]), "
            "axis=0);\n%2 = take(%1, const(Tensor[(8), int64], [0, 1, 2, 3, 0, 1, 2, 3]), axis=2);\n%2\n");
  EXPECT_EQ(of("torch.expand_as(torch.slice(x, 0, 0, 1), x)"),
            "%0 = strided_slice(%x, begin=[0], end=[1], strides=[1], axes=[0]);\n%1 = take(%0, "
            "const(Tensor[(2), int64], [0, 0]), axis=0);\n%1\n");
  EXPECT_EQ(of("torch.flip(x, [0, -1])"),
            "%0 = strided_slice(%x, begin=[1], end=[-3], strides=[-1], axes=[0]);\n%1 = strided_slice(%0, "
            "begin=[3], end=[-5], strides=[-1], axes=[1]);\n%1\n");
  EXPECT_EQ(of("torch.repeat(x, [2])"),
            "-48: pytorch: 'net.pt': aten::repeat 'repeat': 1 repeats of a tensor of rank 2");
  EXPECT_EQ(of("torch.repeat(x, [1, 0])"),
            "-49: pytorch: 'net.pt': 1 operator that qplan does not import: aten::repeat with 0 repeats "
            "('repeat')");
}

TEST(PytorchChoices, FactorsOfSumsAndDifferences) {
  EXPECT_EQ(of("torch.add(x, torch.relu(x), alpha=3)"),
            "%0 = nn.relu(%x);\n%1 = multiply(%0, 3f);\n%2 = add(%x, %1);\n%2\n");
  EXPECT_EQ(of("torch.sub(x, 2, alpha=3)"), "%0 = multiply(2f, 3f);\n%1 = subtract(%x, %0);\n%1\n");
  EXPECT_EQ(of("torch.rsub(x, 2.5)"), "%0 = subtract(2.5f, %x);\n%0\n");
  EXPECT_EQ(of("torch.rsub(x, torch.relu(x), alpha=2)"),
            "%0 = nn.relu(%x);\n%1 = multiply(%x, 2f);\n%2 = subtract(%0, %1);\n%2\n");
  EXPECT_EQ(import_forward("    y = torch.relu(x)\n    z = torch.sub_(y, x)\n    return y\n"),
            "%0 = nn.relu(%x);\n%1 = subtract(%0, %x);\n%1\n");
}

TEST(PytorchChoices, ActivationsOfSeveralOperators) {
  EXPECT_EQ(of("torch.softplus(x)"),
            "%0 = abs(%x);\n%1 = negative(%0);\n%2 = exp(%1);\n%3 = nn.relu(%x);\n%4 = add(%2, 1f);\n%5 = "
            "log(%4);\n%6 = add(%3, %5);\n%6\n");
  EXPECT_EQ(of("torch.softplus(x, 2., 3.)"),
            "%0 = multiply(%x, 2f);\n%1 = abs(%0);\n%2 = negative(%1);\n%3 = exp(%2);\n%4 = nn.relu(%0);\n%5 "
            "= add(%3, 1f);\n%6 = log(%5);\n%7 = add(%4, %6);\n%8 = divide(%7, 2f);\n%9 = less(3f, %0);\n%10 "
            "= where(%9, %x, %8);\n%10\n");
  EXPECT_EQ(of("torch.square(x)"), "%0 = multiply(%x, %x);\n%0\n");
  EXPECT_EQ(of("torch.selu(x)"),
            "%0 = nn.elu(%x, alpha=1.6732632423543772f64);\n%1 = multiply(%0, 1.050701f);\n%1\n");
  EXPECT_EQ(of("torch.log_sigmoid(x)"),
            "%0 = negative(%x);\n%1 = abs(%0);\n%2 = negative(%1);\n%3 = exp(%2);\n%4 = nn.relu(%0);\n%5 = "
            "add(%3, 1f);\n%6 = log(%5);\n%7 = add(%4, %6);\n%8 = negative(%7);\n%8\n");
  for (const std::string name : {"tanh", "selu"})
    EXPECT_EQ(import_forward("    y = torch.relu(x)\n    z = torch." + name + "_(y)\n    return y\n"),
              of("torch." + name + "(torch.relu(x))"));
  EXPECT_EQ(of("torch.feature_dropout(x, 0.5, False)"), "%x\n");
  EXPECT_EQ(of("torch.unsafe_chunk(x, 2, 1)"), of("torch.chunk(x, 2, 1)"));
  EXPECT_EQ(of("torch.mish(x)"),
            "%0 = abs(%x);\n%1 = negative(%0);\n%2 = exp(%1);\n%3 = nn.relu(%x);\n%4 = add(%2, 1f);\n%5 = "
            "log(%4);\n%6 = add(%3, %5);\n%7 = tanh(%6);\n%8 = multiply(%x, %7);\n%8\n");
  EXPECT_EQ(import_forward("    y = torch.relu(x)\n    z = torch.mish_(y)\n    return y\n"),
            of("torch.mish(torch.relu(x))"));
  EXPECT_EQ(of("torch.prelu(x, torch.full([4], 0.5, dtype=6))"),
            "%0 = reshape(const(Tensor[(4), float32], [0.5, 0.5, 0.5, 0.5]), newshape=[1, 4]);\n%1 = "
            "minimum(%x, 0f);\n%2 = nn.relu(%x);\n%3 = multiply(%1, %0);\n%4 = add(%2, %3);\n%4\n");
  EXPECT_EQ(of("torch._prelu_kernel(x, torch.full([1], 0.5, dtype=6))"),
            "%0 = reshape(const(Tensor[(1), float32], [0.5]), newshape=[1, 1]);\n%1 = minimum(%x, 0f);\n%2 = "
            "nn.relu(%x);\n%3 = multiply(%1, %0);\n%4 = add(%2, %3);\n%4\n");
  EXPECT_EQ(of("torch.prelu(x, torch.full([3], 0.5, dtype=6))"),
            "-48: pytorch: 'net.pt': aten::prelu 'prelu': there are 3 weights for a tensor [2, 4]");
}

}  // namespace
}  // namespace qplan::pytorch_test::pytorch_choices_test
