// The code of archives: what is followed, what is refused, and with which line.
#include <gtest/gtest.h>

#include "tests/packer/import/pytorch_helpers.h"

namespace qplan::pytorch_test::pytorch_script_test {
namespace {

constexpr char kUnsupported[] = "-49: pytorch: 'net.pt': 1 operator that qplan does not import: ";

constexpr char kTrace[] =
    "a plan has one path through the model: trace it, which leaves only that, m = "
    "torch.jit.freeze(torch.jit.trace(m.eval(), example_inputs)), m.save('model.pt'), or take conditions and "
    "loops on tensors out of forward";

// The error for a forward with these statements that does not import.
std::string refusal(const std::string& body) { return import_forward(body, {1, 4}); }

TEST(PytorchScript, TuplesAreTakenApartAndLinesJoinInBrackets) {
  EXPECT_EQ(import_forward("    a, b, = (torch.relu(x),\n"
                           "  2.)  # a comment (\n"
                           "    _0 = [a, torch.mul(\n"
                           "a, b)]\n"
                           "    c, d = _0\n"
                           "    return torch.add(c, d)\n"),
            "%0 = nn.relu(%x);\n%1 = multiply(%0, 2f);\n%2 = add(%0, %1);\n%2\n");
}

TEST(PytorchScript, ConditionsOnKnownValuesAreFollowed) {
  EXPECT_EQ(import_forward("    if torch.eq(torch.size(x, 1), 2):\n"
                           "      if torch.__isnot__(None, None):\n        y = torch.cumsum(x)\n"
                           "      else:\n        y = torch.relu(x)\n"
                           "    else:\n      y = torch.fft(x)\n"
                           "    return y\n"),
            "%0 = nn.relu(%x);\n%0\n");
}

TEST(PytorchScript, NumbersAreComputed) {
  EXPECT_EQ(import_forward("    if torch.__not__(torch.__is__(None, None)):\n      y = torch.cumsum(x)\n"
                           "    else:\n      torch.warn(\"text\", 2)\n"
                           "      y = torch.reshape(x, [torch.floordiv(32, 2), 2])\n"
                           "    return y\n"),
            "%0 = reshape(%x, newshape=[16, 2]);\n%0\n");
  EXPECT_EQ(import_forward(
                "    n = torch.dim(x)\n"
                "    if torch.ne(n, 4):\n      ops.prim.RaiseException(\"rank\")\n    else:\n      pass\n"
                "    if torch.lt(n, 4):\n      y = torch.cumsum(x)\n"
                "    else:\n      if torch.ge(n, 4):\n        y = torch.relu(x)\n"
                "      else:\n        y = torch.cumsum(x)\n"
                "    if torch.le(ops.prim.NumToTensor(n), 4):\n      z = y\n"
                "    else:\n      z = torch.cumsum(y)\n"
                "    return z\n"),
            "%0 = nn.relu(%x);\n%0\n");
  EXPECT_EQ(import_forward("    if ops.prim.is_quantized(x):\n      y = torch.cumsum(x)\n"
                           "    else:\n      y = torch.relu(x)\n"
                           "    return y\n"),
            "%0 = nn.relu(%x);\n%0\n");
}

// torch.nn.LSTM compares the sizes of its states like this.
TEST(PytorchScript, ListsOfKnownValuesAreCompared) {
  const auto text = [](const std::string& condition) {
    return import_forward("    if " + condition + ":\n      y = torch.relu(x)\n    else:\n" +
                              "      y = torch.neg(x)\n    return y\n",
                          {1, 4});
  };
  const std::string then = "%0 = nn.relu(%x);\n%0\n", otherwise = "%0 = negative(%x);\n%0\n";
  EXPECT_EQ(text("torch.eq(torch.size(x), [1, 4])"), then);
  EXPECT_EQ(text("torch.ne(torch.size(x), [1, 4])"), otherwise);
  for (const char* other : {"[1, 5]", "[1]", "[1, 4, 1]", "[]"}) {
    EXPECT_EQ(text(std::string("torch.eq(torch.size(x), ") + other + ")"), otherwise) << other;
    EXPECT_EQ(text(std::string("torch.ne(torch.size(x), ") + other + ")"), then) << other;
  }
  EXPECT_EQ(text("torch.eq([9007199254740993], [9007199254740992])"), otherwise);  // 2^53: no doubles
  EXPECT_EQ(text("torch.eq([0.5, 2.], [0.5, 2.])"), then);
  EXPECT_EQ(text("torch.ne([\"a\"], [\"b\"])"), then);
  EXPECT_EQ(text("torch.eq([True], [False])"), otherwise);
  EXPECT_EQ(text("torch.lt(\"a\", \"b\")"), then);
  EXPECT_EQ(text("torch.gt(\"a\", \"b\")"), otherwise);
  EXPECT_EQ(text("torch.ge(\"b\", \"b\")"), then);
}

TEST(PytorchScript, ListsOfTensorsAreNotCompared) {
  EXPECT_EQ(refusal("    if torch.lt([1], [2]):\n      y = x\n    else:\n      y = x\n    return y\n"),
            std::string(kUnsupported) + "aten::lt with lists, of which one comes first ('lt')");
  EXPECT_EQ(refusal("    if torch.eq([x], [x]):\n      y = x\n    else:\n      y = x\n    return y\n"),
            std::string(kUnsupported) + "aten::eq with lists of other than numbers and strings ('eq')");
}

// Its zero points are floats.
TEST(PytorchScript, QuantisedEmbeddingsAreUnsupportedByName) {
  PickleWriter module;  // Net { w: a quantised tensor }
  module.global("__torch__", "Net").raw(")\x81}(").text("w");
  module.begin_quantized("5", 12, {3, 4}, {4, 1}).global("torch", "per_channel_affine_float_qparams");
  module.tensor("FloatStorage", "6", 3, 0, {3}, {1}).tensor("FloatStorage", "7", 3, 0, {3}, {1}).integer(0);
  module.end_quantized().raw("ub");
  const auto text = [&](const std::string& body) {
    ArchiveBuilder builder(body);
    builder.module(module).storage("data/5", bytes_of<int8_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
    builder.storage("data/6", bytes_of<float>({1, 2, 3})).storage("data/7", bytes_of<float>({0, 0.5, 1}));
    return import_text(builder.build(), with_input({1, 4}));
  };
  EXPECT_EQ(text("    return ops.quantized.embedding_byte(self.w, x)\n")
                .find(std::string(kUnsupported) + "quantized::embedding_byte ('embedding_byte')"),
            0u);
  EXPECT_EQ(
      text("    return torch.dequantize(self.w)\n")
          .find(std::string(kUnsupported) + "aten::dequantize with zero points in float32 ('dequantize')"),
      0u);
}

TEST(PytorchScript, ConditionsOnComputedValuesAreUnsupported) {
  EXPECT_EQ(refusal("    if torch.gt(x, 0):\n      y = x\n    else:\n      y = x\n    return y\n"),
            std::string(kUnsupported) +
                "control flow: 'if' in line 4 on a tensor that the model computes ('forward')\n" + kTrace);
}

TEST(PytorchScript, LoopsAreUnsupported) {
  EXPECT_EQ(refusal("    for i in range(3):\n      y = x\n    return y\n"),
            std::string("-49: pytorch: 'net.pt': a model with control flow: 'for' in line 4\n") + kTrace);
}

TEST(PytorchScript, ModulesAndFunctionsAreFollowedInPlace) {
  PickleWriter module;  // Net { inner: Inner { slope: 0.5 } }
  module.global("__torch__", "Net").raw(")\x81}(").text("inner");
  module.global("__torch__.layers.block", "Inner").raw(")\x81}(").text("slope").number(0.5).raw("ubub");
  ArchiveBuilder builder(
      "    inner = self.inner\n"
      "    return (inner).forward((getattr(self, \"inner\")).forward(x, ), )\n");
  builder.module(module);
  builder.file("__torch__/layers/block.py",
               "class Inner(Module):\n"
               "  slope : float\n"
               "  def forward(self: __torch__.layers.block.Inner,\n"
               "    x: Tensor) -> Tensor:\n"
               "    slope = self.slope\n"
               "    _0 = __torch__.layers.f.leaky\n"
               "    y = _0(__torch__.layers.f.same(x), slope=slope)\n"
               "    return y\n");
  builder.file(
      "__torch__/layers/f.py",
      "def leaky(input: Tensor,\n    slope: float=0.25,\n    unused: Optional[int]=None) -> Tensor:\n"
      "  return torch.leaky_relu(input, slope)\n"
      "def same(x: Tensor) -> Tensor:\n  return x\n");
  EXPECT_EQ(import_text(builder.build(), with_input({1, 4})),
            "%0 = nn.leaky_relu(%x, alpha=0.5f);\n%1 = nn.leaky_relu(%0, alpha=0.5f);\n%1\n");
}

TEST(PytorchScript, NodesAreNamedAfterModulesAndVariables) {
  PickleWriter module;
  module.global("__torch__", "Net").raw(")\x81}(").text("0");
  module.global("__torch__", "Inner").raw(")\x81}bub");
  ArchiveBuilder with_inner(
      "    _0 = getattr(self, \"0\")\n    return (_0).forward(torch.relu(x), )\n"
      "class Inner(Module):\n  def forward(self, x: Tensor) -> Tensor:\n"
      "    y = torch.sigmoid(torch.tanh(x))\n    return y\n");
  with_inner.module(module);
  const ir::Module imported = import_pytorch(with_inner.build(), "net.pt", {}, with_input({1, 4}));
  const auto nodes = imported.main().nodes();
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0].name, "relu");
  EXPECT_EQ(nodes[1].name, "0/y/tanh");
  EXPECT_EQ(nodes[2].name, "0/y");
  EXPECT_EQ(imported.main().value(nodes[2].results[0]).name, "0/y");
}

// torch.jit.trace keeps the quantised modules' own state, which their __setstate__ packs.
TEST(PytorchScript, StateOfModulesIsSetByTheirCode) {
  PickleWriter module;
  module.global("__torch__", "Net").raw(")\x81(").integers({1, 1});
  module.begin_quantized("5", 12, {3, 4}, {4, 1}).global("torch", "per_tensor_affine").number(0.5).integer(0);
  module.end_quantized().op('t').op('b');
  ArchiveBuilder builder(
      "    q = torch.quantize_per_tensor(x, 0.5, 3, 13)\n"
      "    return ops.quantized.linear(q, self.packed, 2., 7)\n"
      "  def __setstate__(self: __torch__.Net,\n    state: Tuple[Tuple[int, int], Tensor]) -> NoneType:\n"
      "    self.packed = ops.quantized.linear_prepack((state)[1], None)\n"
      "    return None\n");
  builder.module(module);
  builder.storage("data/5", bytes_of<int8_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_NE(import_text(builder.build(), with_input({1, 4})).find("qnn.dense"), std::string::npos);
}

TEST(PytorchScript, ConvolutionsArePackedByTheirCodeToo) {
  PickleWriter module;
  module.global("__torch__", "Net").raw(")\x81(").integers({1, 1});
  module.begin_quantized("5", 6, {3, 2, 1, 1}, {2, 1, 1, 1});
  module.global("torch", "per_tensor_affine").number(0.5).integer(0);
  module.end_quantized().op('t').op('b');
  ArchiveBuilder builder(
      "    q = torch.quantize_per_tensor(x, 0.5, 3, 13)\n"
      "    return ops.quantized.conv2d(q, self.packed, 2., 7)\n"
      "  def __setstate__(self: __torch__.Net,\n    state: Tuple[Tuple[int, int], Tensor]) -> NoneType:\n"
      "    self.packed = ops.quantized.conv2d_prepack((state)[1], None, [1, 1], [0, 0], [1, 1], 1)\n"
      "    return None\n");
  builder.module(module);
  builder.storage("data/5", bytes_of<int8_t>({1, 2, 3, 4, 5, 6}));
  EXPECT_NE(import_text(builder.build(), with_input({1, 2, 4, 4})).find("qnn.conv2d"), std::string::npos);
}

// PyTorch gives exp(relu(x)) for all of these but the copy.
TEST(PytorchScript, ViewsOfWhatIsChangedInPlaceAreRefused) {
  const std::string stale = "a tensor that shares its elements with one that is changed in place";
  const auto refused = [&](const std::string& op, const std::string& node) {
    return "-49: pytorch: 'net.pt': 1 operator that qplan does not import: " + op + " with " + stale + " ('" +
           node + "')";
  };
  const auto forward = [](const std::string& body) {
    const std::string text = import_forward("    n = torch.neg(x)\n" + body);
    return text.substr(0, text.find("')") == std::string::npos ? text.size() : text.find("')") + 2);
  };
  for (const char* view :
       {"torch.view(n, [32])", "torch.flatten(n, 0, -1)", "torch.select(n, 1, 0)", "torch.contiguous(n)",
        "torch.slice(n, 1, 0, 1)", "torch.permute(n, [3, 2, 1, 0])"}) {
    const std::string made = std::string("    v = ") + view + "\n";
    EXPECT_EQ(forward(made + "    _0 = torch.relu_(n)\n    y = torch.exp(v)\n    return y\n"),
              refused("aten::exp", "y"))
        << view;
    EXPECT_EQ(forward(made + "    _0 = torch.relu_(v)\n    y = torch.exp(n)\n    return y\n"),
              refused("aten::exp", "y"))
        << view;
    EXPECT_EQ(forward(made + "    _0 = torch.relu_(n)\n    y = torch.cat([n, v], 0)\n    return y\n"),
              refused("aten::cat", "y"))
        << view;
    const std::string returned = forward(made + "    _0 = torch.relu_(n)\n    return v\n");
    EXPECT_NE(returned.find(stale), std::string::npos) << view << ": " << returned;
    // What it was made for is read after all, and of the stale one only the shape.
    EXPECT_EQ(forward(made + "    _0 = torch.relu_(v)\n    _1 = torch.size(n, 0)\n    return torch.exp(v)\n")
                  .find("-49"),
              std::string::npos)
        << view;
  }
  EXPECT_EQ(forward("    c = torch.clone(n)\n    _0 = torch.relu_(n)\n    return torch.exp(c)\n"),
            "%0 = negative(%x);\n%1 = nn.relu(%0);\n%2 = exp(%0);\n%2\n");
}

TEST(PytorchScript, OperatorsInPlaceChangeTheirOperandUnderAllNames) {
  EXPECT_EQ(import_forward("    y = torch.relu_(x)\n    return torch.add(y, x)\n"),
            "%0 = nn.relu(%x);\n%1 = add(%0, %0);\n%1\n");
  EXPECT_EQ(import_forward("    a = torch.detach(x)\n    b = torch.clone(x)\n    torch.mul_(x, 2.)\n"
                           "    return torch.add(torch.add(a, b), x)\n"),
            "%0 = multiply(%x, 2f);\n%1 = add(%0, %x);\n%2 = add(%1, %0);\n%2\n");
  EXPECT_EQ(import_forward("    y = torch.relu(x)\n    return torch.add(y, x)\n"),
            "%0 = nn.relu(%x);\n%1 = add(%0, %x);\n%1\n");
  EXPECT_EQ(import_forward(
                "    q = torch.quantize_per_tensor(x, 0.5, 0, 13)\n    r = ops.quantized.relu6(q, True)\n"
                "    return (torch.dequantize(q), r)\n"),
            import_forward(
                "    q = torch.quantize_per_tensor(x, 0.5, 0, 13)\n    r = ops.quantized.relu6(q, False)\n"
                "    return (torch.dequantize(r), r)\n"));
}

// The next call would see them: qplan keeps no state from one run to the next.
TEST(PytorchScript, AttributesThatForwardAssignsAreRefused) {
  PickleWriter module;  // Net { n: 1, h: a tensor, inner: Inner { n: 2 } }
  module.global("__torch__", "Net").raw(")\x81}(").text("n").integer(1);
  module.text("h").tensor("FloatStorage", "0", 4, 0, {1, 4}, {4, 1});
  module.text("inner").global("__torch__", "Inner").raw(")\x81}(").text("n").integer(2).raw("ubub");
  const auto text = [&](const std::string& body) {
    ArchiveBuilder builder(body +
                           "class Inner(Module):\n  n : int\n  def forward(self: __torch__.Inner,\n"
                           "    x: Tensor) -> Tensor:\n    self.n = 3\n    return x\n");
    builder.module(module).storage("data/0", bytes_of<float>({1, 2, 3, 4}));
    return import_text(builder.build(), with_input({1, 4}));
  };
  EXPECT_EQ(text("    return torch.add(x, torch.mul(self.h, self.n))\n").find("-4"), std::string::npos);
  for (const char* body : {"    y = torch.add(x, self.h)\n    self.h = y\n    return y\n",
                           "    self.n = torch.add(self.n, 1)\n    return torch.mul(x, self.n)\n",
                           "    inner = self.inner\n    inner.n = 5\n    return torch.relu(x)\n",
                           "    inner = self.inner\n    return torch.relu((inner).forward(x, ))\n",
                           "    self.n, b = (2, 3)\n    return torch.mul(x, b)\n"}) {
    const std::string refused = text(body);
    EXPECT_EQ(refused.find(std::string(kUnsupported) + "an attribute that the model changes ('forward')"), 0u)
        << refused;
  }
}

TEST(PytorchScript, TensorsOfAnotherByteOrderAreRefused) {
  const auto text = [](const std::string& byte_order) {
    ArchiveBuilder builder("    return torch.relu(x)\n");
    builder.byte_order = byte_order;
    return import_text(builder.build(), with_input({1, 4}));
  };
  EXPECT_EQ(text("little"), "%0 = nn.relu(%x);\n%0\n");
  EXPECT_EQ(
      text("big"),
      "-49: pytorch: 'net.pt': the archive's numbers have byte order 'big', expected 'little'; save the "
      "model on a little-endian machine");
}

TEST(PytorchScript, LengthOfAScalarIsRefused) {
  EXPECT_NE(import_forward("    n = torch.len(x)\n    return x\n", {}).find("-48: "), std::string::npos);
}

TEST(PytorchScript, ErrorsSayTheLine) {
  EXPECT_EQ(refusal("    y = torch.relu(x\n    return y\n"),
            "-48: pytorch: 'net.pt': 'net/code/__torch__.py', line 6: a bracket is not closed");
  EXPECT_EQ(refusal("    y = * x\n    return y\n"),
            "-48: pytorch: 'net.pt': line 4: found '*', expected an expression");
  EXPECT_EQ(refusal("    return y\n"), "-48: pytorch: 'net.pt': line 4: 'y' is not defined");
  EXPECT_EQ(refusal("    a, b = x\n    return a\n"),
            "-48: pytorch: 'net.pt': line 4: a computed tensor cannot be taken apart into 2 values");
  EXPECT_EQ(refusal("    return CONSTANTS.c9\n"),
            "-48: pytorch: 'net.pt': the code uses CONSTANTS.c9, but there are 2 constants");
}

TEST(PytorchScript, DeepAndEndlessCodeIsRefused) {
  const std::string deep = std::string(5000, '(') + "x" + std::string(5000, ')');
  EXPECT_NE(refusal("    return " + deep + "\n").find("the code is nested too deeply"), std::string::npos);
  EXPECT_NE(refusal("    return (self).forward(x, )\n").find("calls and expressions are nested too deeply"),
            std::string::npos);
  // Each function calls the next one twice: 2^60 calls.
  std::string functions;
  for (int i = 0; i < 60; ++i) {
    const std::string next = "__torch__.f.f" + std::to_string(i + 1) + "(a)";
    functions += "def f" + std::to_string(i) + "(a: int) -> int:\n  b = " + next + "\n  c = " + next +
                 "\n  return a\n";
  }
  functions += "def f60(a: int) -> int:\n  return a\n";
  ArchiveBuilder builder("    a = __torch__.f.f0(1)\n    return x\n");
  builder.file("__torch__/f.py", functions);
  EXPECT_NE(import_text(builder.build(), with_input({1, 4})).find("steps: it is no network"),
            std::string::npos);
}

TEST(PytorchScript, LongCodeIsRefusedBeforeItTakesMemory) {
  std::string code = "    return x\n";
  code.append(3'000'000, ';');
  EXPECT_NE(refusal(code).find("the archive's code is too long"), std::string::npos);
}

// 2,000 objects that share a dict of 2,000 entries.
TEST(PytorchScript, AttributesOfObjectsThatShareThemAreCounted) {
  PickleWriter list;
  list.global("__torch__", "Net").raw(")\x81}(").text("d").raw("}q\x01(");
  for (int i = 0; i < 2000; ++i) list.text("k" + std::to_string(i)).op('N');
  list.op('u').text("o").raw("](");
  for (int i = 0; i < 2000; ++i) list.global("__torch__", "In").raw(")\x81h\x01").op('b');
  list.raw("eub");
  std::string body = "    o = self.o\n";
  for (int i = 0; i < 2000; ++i) body += "    a = (o[" + std::to_string(i) + "]).k0\n";
  ArchiveBuilder builder(body + "    return x\n");
  builder.module(list);
  EXPECT_NE(import_text(builder.build(), with_input({1, 4})).find("steps: it is no network"),
            std::string::npos);
}

}  // namespace
}  // namespace qplan::pytorch_test::pytorch_script_test
