// Relay text as TVM prints it: bodies without a header, types in comments, constants without data, old
// spellings.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/op/op_def.h"
#include "src/packer/text/text.h"
#include "tests/support/relay_fragments.h"

namespace qplan::text::relay_test {
namespace {

using testing::kFloatsAtRest;
using testing::kIntegersAtRest;

const ir::TensorType kImage{ir::kFloat32, {1, 3, 224, 224}};

// "input: Tensor[(1, 3), int8], ... -> Tensor[...]", or the refusal.
std::string signature(const std::string& text, const ParseOptions& options = {}) {
  try {
    const ir::Module module = parse(text, "t", options);
    std::string result;
    for (const ir::ValueId id : module.main().params()) {
      result += (result.empty() ? "" : ", ") + module.main().value(id).name + ": " +
                ir::to_string(module.main().type(id));
    }
    for (const ir::ValueId id : module.main().outputs())
      result += " -> " + ir::to_string(module.main().type(id));
    return result;
  } catch (const PackError& error) {
    return error.what();
  }
}

TEST(RelayFragment, FloatsAtRestAreTypedByTheirUse) {
  ParseOptions options;
  options.input_types["input"] = kImage;
  EXPECT_EQ(signature(kFloatsAtRest, options),
            "input: Tensor[(1, 3, 224, 224), float32], features.0.0_weight: Tensor[(32, 3, 3, 3), float32], "
            "features.0.0_bias: Tensor[(32), float32] -> Tensor[(1, 32, 112, 112), uint8]");
}

TEST(RelayFragment, WithoutATypeTheInputIsNamed) {
  EXPECT_EQ(
      signature(kFloatsAtRest),
      "t:2:19: the type of '%input' is float32 of unknown shape: neither the text nor its uses state it; "
      "give "
      "it "
      "with --input-shape input=EXTENTS:DTYPE, 1x3x224x224:float32, or data with --bind input=FILE: `%0 = "
      "qnn.quantize(%input, 0.0186579f, 114, out_dtype=\"uint8\", axis=1);`");
}

TEST(RelayFragment, IntegersAtRestAreTypedByComments) {
  ParseOptions options;
  EXPECT_EQ(signature(kIntegersAtRest).substr(0, 133),
            "t:4:21: there is no section #[metadata] with the data of meta[relay.Constant][0], Tensor[(32, "
            "3, 3, 3), "
            "int8]; --synthesize-constants");
  options.synthesize_constants = 1;
  EXPECT_EQ(signature(kIntegersAtRest, options),
            "input: Tensor[(1, 3, 224, 224), float32] -> Tensor[(1, 32, 112, 112), uint8]");
}

TEST(RelayFragment, WeightsAreSynthesisedAndInputsStay) {
  ParseOptions options;
  options.input_types["input"] = kImage;
  options.synthesize_constants = 7;
  std::string logged;
  options.log = [&](uint32_t, const std::string& line) { logged += line; };
  EXPECT_EQ(signature(kFloatsAtRest, options),
            "input: Tensor[(1, 3, 224, 224), float32] -> Tensor[(1, 32, 112, 112), uint8]");
  EXPECT_EQ(logged,
            "t: 2 constants, 3584 bytes, synthesised, the first is 'features.0.0_weight': results mean "
            "nothing");

  const auto weight_of = [&] {
    const ir::Module module = parse(kFloatsAtRest, "t", options);
    const ir::Function& main = module.main();
    const auto node = std::ranges::find_if(main.nodes(), [&](const ir::Node& n) {
      return n.op->name == "qnn.quantize" && main.is_constant(n.operands[0]);
    });
    const auto values = main.value(node->operands[0]).constant->as<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<float> weight = weight_of();
  EXPECT_EQ(weight, weight_of());
  // Within 100 steps of the scale it is quantised with, and not all near 0.
  EXPECT_LE(*std::ranges::max_element(weight), 0.288959f);
  EXPECT_GE(*std::ranges::max_element(weight), 0.25f);
  EXPECT_GE(*std::ranges::min_element(weight), -0.288959f);
  options.synthesize_constants = 8;
  EXPECT_NE(weight, weight_of());
}

TEST(RelayFragment, BoundParametersAreConstants) {
  ParseOptions options;
  options.input_types["x"] = {ir::kFloat32, {1, 2}};
  options.bindings["w"] = ir::make_constant(ir::kFloat32, {3, 2}, std::vector<float>(6, 0.5f));
  EXPECT_EQ(signature("nn.dense(%x, %w)", options), "x: Tensor[(1, 2), float32] -> Tensor[(1, 3), float32]");
  EXPECT_EQ(
      signature("def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(3, 2), float32]) { nn.dense(%x, %w) }",
                options),
      "x: Tensor[(1, 2), float32] -> Tensor[(1, 3), float32]");
  EXPECT_EQ(
      signature("def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(4, 2), float32]) { nn.dense(%x, %w) }",
                options)
          .substr(0, 103),
      "t:1:40: '%w' is Tensor[(4, 2), float32], but what is bound to it is Tensor[(3, 2), float32]: `def "
      "@main");
}

TEST(RelayFragment, UnknownNamesInOptionsAreRefused) {
  ParseOptions options;
  options.input_types["y"] = {ir::kFloat32, {1, 2}};
  EXPECT_EQ(signature("def @main(%x: int8) { %x }", options),
            "t: --input-shape: there is no input or free variable 'y'; there are 'x'");
  options.input_types.clear();
  options.bindings["y"] = ir::make_scalar(1.0f);
  EXPECT_EQ(signature("def @main() { 1f }", options),
            "t: --bind: there is no input or free variable 'y'; there are none");
}

TEST(RelayFragment, FreeVarLinesTypeThem) {
  EXPECT_EQ(
      signature("free_var %x: Tensor[(1, 2), float32];\nfree_var %w: Tensor[(3, 2), float32] /* ty=... */;\n"
                "%0 = nn.dense(%x, %w, units=None);\nnn.relu(%0)"),
      "x: Tensor[(1, 2), float32], w: Tensor[(3, 2), float32] -> Tensor[(1, 3), float32]");
}

TEST(RelayFragment, AFunctionWithoutItsModule) {
  EXPECT_EQ(
      signature("fn (%x: Tensor[(1, 2), float32], Primitive=1) -> Tensor[(1, 2), float32] { nn.relu(%x) }"),
      "x: Tensor[(1, 2), float32] -> Tensor[(1, 2), float32]");
}

TEST(RelayFragment, ParametersWithoutATypeAreDeducedToo) {
  EXPECT_EQ(signature("def @main(%x: Tensor[(1, 2), float32], %w) { nn.dense(%x, %w, units=5) }"),
            "x: Tensor[(1, 2), float32], w: Tensor[(5, 2), float32] -> Tensor[(1, 5), float32]");
}

TEST(RelayFragment, NumbersAreNeverFree) {
  EXPECT_EQ(signature("%0 = nn.relu(%1);"), "t:1:14: '%1' is not defined: `%0 = nn.relu(%1);`");
}

TEST(RelayFragment, AFailureBeforeAnUnknownTypeIsTold) {
  ParseOptions options;
  options.input_types["x"] = {ir::kFloat32, {1, 3, 8, 8}};
  EXPECT_EQ(signature("%0 = nn.pad(%x, 0f, pad_width=[[1, 1]]);\n%1 = nn.bias_add(%0, %b);", options),
            "t:1:6: nn.pad (node 0): attribute 'pad_width' has 1 pairs, but 'data' is Tensor[(1, 3, 8, 8), "
            "float32]: "
            "`%0 = nn.pad(%x, 0f, pad_width=[[1, 1]]);`");
}

TEST(RelayFragment, LongChainsOfUnknownTypesAreLinear) {
  std::string text = "%0 = nn.relu(%x);\n";
  for (int i = 1; i < 20000; ++i) {
    text += "%" + std::to_string(i) + " = nn.relu(%" + std::to_string(i - 1) + ");\n";
  }
  text += "nn.relu(%19999) /* ty=Tensor[(2), float32] */";
  EXPECT_EQ(signature(text), "x: Tensor[(2), float32] -> Tensor[(2), float32]");
}

TEST(RelayCalls, AttributesWithoutMeaningAreAccepted) {
  EXPECT_EQ(signature("nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2], dilation=[1, 1], ceil_mode=False, "
                      "out_layout=\"\") /* ty=Tensor[(1, 2, 4, 4), float32] */",
                      {.input_types = {{"x", {ir::kFloat32, {1, 2, 8, 8}}}},
                       .bindings = {},
                       .synthesize_constants = {},
                       .log = {}}),
            "x: Tensor[(1, 2, 8, 8), float32] -> Tensor[(1, 2, 4, 4), float32]");
  EXPECT_EQ(signature("def @main(%x: Tensor[(1, 2, 8, 8), float32]) { nn.max_pool2d(%x, pool_size=[2, 2], "
                      "ceil_mode=True) }")
                .substr(0, 85),
            "t:1:84: attribute 'ceil_mode' is True, which is not supported, expected False or 0: `");
}

TEST(RelayCalls, OtherSpellings) {
  const std::string head = "def @main(%x: Tensor[(1, 2, 8, 8), float32]) { ";
  EXPECT_EQ(signature(head + "nn.adaptive_avg_pool2d(%x, output_size=[1, 1]) }").substr(33),
            "-> Tensor[(1, 2, 1, 1), float32]");
  EXPECT_EQ(signature(head + "%0 = nn.dropout(%x, rate=0.5f); copy(%0.0) }").substr(33),
            "-> Tensor[(1, 2, 8, 8), float32]");
  EXPECT_EQ(signature(head + "reshape(%x, newshape=[0, -1]) }").substr(33), "-> Tensor[(1, 128), float32]");
  EXPECT_EQ(signature(head + "transpose(%x, axes=None) }").substr(33), "-> Tensor[(8, 8, 2, 1), float32]");
  EXPECT_EQ(signature(head + "transpose(%x, axes=[0, -2, -1, 1]) }").substr(33),
            "-> Tensor[(1, 8, 8, 2), float32]");
  EXPECT_EQ(
      signature(head + "nn.pad(%x, pad_value=0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]) }").substr(33),
      "-> Tensor[(1, 2, 10, 10), float32]");
  EXPECT_EQ(
      signature(head +
                "%0 = nn.batch_norm(%x, const(Tensor[(2), float32], [1, 1]), const(Tensor[(2), float32], "
                "[0, 0]), const(Tensor[(2), float32], [0, 0]), const(Tensor[(2), float32], [1, 1]), "
                "center=True, scale=True); %0.0 }")
          .substr(33),
      "-> Tensor[(1, 2, 8, 8), float32]");
}

TEST(RelayCalls, QnnConcatenateRequantisesWhatDiffers) {
  const ir::Module module = parse(
      "def @main(%a: Tensor[(1, 2), uint8], %b: Tensor[(1, 3), uint8]) {\n"
      "  qnn.concatenate((%a, %b), (0.5f, 0.25f), (3, 4), 0.5f, 3, axis=1)\n}",
      "t");
  EXPECT_EQ(
      print(module),
      "#[version = \"0.0.5\"]\n"
      "def @main(%a: Tensor[(1, 2), uint8], %b: Tensor[(1, 3), uint8]) -> Tensor[(1, 5), uint8] {\n"
      "  %0 = qnn.requantize(%b, 0.25f, 4, 0.5f, 3, out_dtype=\"uint8\") /* ty=Tensor[(1, 3), uint8] */;\n"
      "  %1 = concatenate((%a, %0), axis=1) /* ty=Tensor[(1, 5), uint8] */;\n"
      "  %1\n}\n");
  EXPECT_EQ(signature("qnn.concatenate((%a, %b), (1f,), (1, 2), 1f, 1)").substr(0, 50),
            "t:1:1: expected a tuple of data, as long ones of s");
}

TEST(RelayCalls, RoundingIsAContract) {
  const std::string head = "def @main(%x: Tensor[(4), int32]) { qnn.requantize(%x, 1f, 0, 2f, 0, ";
  const auto contract = [&](const std::string& attrs) {
    const ir::Module module = parse(head + attrs + ") }", "t");
    return op::attr_string(module.main().nodes()[0], "contract");
  };
  EXPECT_EQ(contract("rounding=\"UPWARD\""), "tfl1");
  EXPECT_EQ(contract("rounding=\"None\", compute_dtype=\"None\""), "tfl2");
  EXPECT_EQ(contract("rounding=None"), "tfl2");
  EXPECT_EQ(signature(head + "rounding=\"TONEAREST\") }").substr(0, 122),
            "t:1:70: rounding \"TONEAREST\" (halves away from zero, in one step) is computed by no kernel, "
            "expected "
            "\"UPWARD\" or \"None\": `");
}

// The numbers: 0.0186579f * 0.00288958f / 0.0150183f = 0.00358985351.
TEST(RelayScales, TheLogTellsWhichScaleIsMeant) {
  const auto log_of = [](std::string text) {
    std::string logged;
    ImportOptions options;
    options.input_types["input"] = kImage;
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    import_relay(
        bytes, "t",
        [&](uint32_t level, const std::string& line) {
          if (level == QPLAN_LOG_INFO) logged += line;
        },
        options);
    return logged;
  };
  EXPECT_EQ(log_of(kFloatsAtRest),
            "t: qnn.requantize '' %6: the product of the layer's scales is meant, multiplier 1973542840 with "
            "shift -8; "
            "its printed scale 5.39136e-05 is that product rounded, which alone would give 1973546653 with "
            "shift -8");
  std::string other = kFloatsAtRest;
  const std::string printed = "qnn.requantize(%5, 5.39136e-05f";
  other.replace(other.find(printed), printed.size(), "qnn.requantize(%5, 5.4e-05f");
  EXPECT_EQ(log_of(other),
            "t: qnn.requantize '' %6: its scale 5.4e-05 differs from 5.3913496e-05, the product of the "
            "layer's scales, "
            "by more than 1e-5: it is meant, multiplier 1976709328 with shift -8");
}

}  // namespace
}  // namespace qplan::text::relay_test
