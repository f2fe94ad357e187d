// Which operator becomes which step; the steps compute what the operators mean. Expected values are worked
// out by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/packer/evaluate/evaluate.h"
#include "src/packer/import/import.h"
#include "src/packer/target/program.h"
#include "tests/packer/target/lower_helpers.h"

namespace qplan::testing::lower_test {
namespace {

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// 1x1 convolution of two channels into one: x0 - 2 * x1 + 3, half of it.
std::string conv_text(const std::string& tail) {
  return main_text(
      "%x: Tensor[(1, 1, 2, 2), int8]",
      "  %0 = qnn.conv2d(%x, const(Tensor[(1, 1, 1, 2), int8], [1, -2]), 0, 0, 1f, 1f, data_layout=\"NHWC\", "
      "kernel_layout=\"OHWI\", name=\"conv\");\n"
      "  %1 = nn.bias_add(%0, const(Tensor[(1), int32], [3]), axis=3, name=\"conv\");\n"
      "  %2 = qnn.requantize(%1, 1f, 0, 2f, 0, name=\"conv\");\n" +
          tail);
}

TEST(LowerConv2d, BiasRequantizeAndClipAreOneStep) {
  const std::string text = conv_text("  %3 = clip(%2, a_min=-4f, a_max=5f, name=\"conv\");\n  %3");
  EXPECT_EQ(kernels_of(lower_text(text)), "conv2d");
  // (1 - 4 + 3) / 2 = 0; (20 - 2 + 3) / 2 = 10.5, clipped to 5.
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int8_t>{1, 2, 20, 1})), (std::vector<int8_t>{0, 5}));
}

TEST(LowerConv2d, HalvesRoundUpInTheDoublingMultiplication) {
  const std::string text = conv_text("  %2");
  // (4 + 3) / 2 = 3.5 -> 4; (-8 + 3) / 2 = -2.5 -> -2
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int8_t>{4, 0, -8, 0})), (std::vector<int8_t>{4, -2}));
}

TEST(LowerConv2d, WithoutBiasTheBiasIsZero) {
  const std::string text = main_text(
      "%x: Tensor[(1, 1, 1, 1), int8]",
      "  %0 = qnn.conv2d(%x, const(Tensor[(1, 1, 1, 1), int8], [3]), 0, 0, 1f, 1f, data_layout=\"NHWC\", "
      "kernel_layout=\"OHWI\");\n  %1 = qnn.requantize(%0, 1f, 0, 1f, 7);\n  %1");
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int8_t>{5})), (std::vector<int8_t>{22}));
}

TEST(LowerConv2d, UnsignedWeightsAreStoredSigned) {
  const std::string text = main_text(
      "%x: Tensor[(1, 1, 1, 2), uint8]",
      "  %0 = qnn.conv2d(%x, const(Tensor[(1, 1, 1, 2), uint8], [130, 0]), 10, 128, 1f, 1f, "
      "data_layout=\"NHWC\", "
      "kernel_layout=\"OHWI\");\n  %1 = qnn.requantize(%0, 1f, 0, 1f, 100, out_dtype=\"uint8\");\n  %1");
  // (20 - 10) * 2 + (11 - 10) * -128 + 100
  EXPECT_EQ((run_text<uint8_t>(text, std::vector<uint8_t>{20, 11})), (std::vector<uint8_t>{0}));
  EXPECT_EQ((run_text<uint8_t>(text, std::vector<uint8_t>{20, 10})), (std::vector<uint8_t>{120}));
}

TEST(LowerConv2d, PadValueNeedNotBeTheInputZeroPoint) {
  const std::string text = main_text(
      "%x: Tensor[(1, 1, 1, 1), int8]",
      "  %0 = qnn.conv2d(%x, const(Tensor[(1, 1, 3, 1), int8], [1, 1, 1]), 0, 0, 1f, 1f, padding=[0, 1, 0, "
      "1], pad_value=5, "
      "data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n  %1 = qnn.requantize(%0, 1f, 0, 1f, 0);\n  %1");
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int8_t>{2})), (std::vector<int8_t>{12}));
}

TEST(LowerConv2d, GroupsOfOneChannelAreDepthwise) {
  const auto text = [](int channels) {
    const std::string c = std::to_string(channels);
    std::string ones = "1";
    for (int i = 1; i < channels; ++i) ones += ", 1";
    return main_text("%x: Tensor[(1, 2, 2, " + c + "), int8]",
                     "  %0 = qnn.conv2d(%x, const(Tensor[(" + c + ", 1, 1, 1), int8], [" + ones +
                         "]), 0, 0, 1f, 1f, groups=" + c +
                         ", data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
                         "  %1 = qnn.requantize(%0, 1f, 0, 1f, 0);\n  %1");
  };
  EXPECT_EQ(kernels_of(lower_text(text(3))), "depthwise_conv2d");
  EXPECT_EQ(kernels_of(lower_text(text(1))), "conv2d");  // the same computation, and a faster kernel
}

TEST(LowerConv2d, AccumulatorsWithASecondUserAreATensor) {
  const std::string text = conv_text("  (%1, %2)");
  EXPECT_EQ(kernels_of(lower_text(text)), "conv2d requantize");
  EXPECT_EQ((run_text<int32_t>(text, std::vector<int8_t>{4, 0, -8, 0})), (std::vector<int32_t>{7, -5}));
}

TEST(LowerConv2d, NothingElseReadsAccumulators) {
  EXPECT_TRUE(
      mentions(lower_refusal(conv_text("  %3 = clip(%1, a_min=0f, a_max=6f, name=\"c\");\n  (%2, %3)")),
               "clip 'c': no kernel computes it"));
}

TEST(LowerDense, MultiplierRulesDiffer) {
  // 0.1f * 0.3f rounds up in float32: 0.03f * 2^k ties break differently.
  const auto text = [](const std::string& rule) {
    return main_text("%x: Tensor[(1, 1), int8]",
                     "  %0 = qnn.dense(%x, const(Tensor[(1, 1), int8], [1]), 0, 0, 0.1f, 0.3f, units=1);\n"
                     "  %1 = qnn.requantize(%0, 0.030000001f, 0, 1f, 0, multiplier=\"" +
                         rule + "\");\n  %1");
  };
  const auto multiplier = [&](const std::string& rule) {
    const target::Program program = lower_text(text(rule));
    int32_t value = 0;
    std::memcpy(&value, program.tensors[program.steps.at(0).inputs.at(3)].constant->data(), sizeof(value));
    return value;
  };
  // 0.1f = 13421773 * 2^-27, 0.3f = 10066330 * 2^-25; the exact product times 2^36, rounded, and that of
  // float32(0.1f * 0.3f) = 16106128 * 2^-29.
  EXPECT_EQ(multiplier("product_f64"), 2061584415);
  EXPECT_EQ(multiplier("product_f32"), 16106128 * 128);
}

TEST(LowerDense, ARequantizeScaleOfItsOwnIsMeant) {
  const std::string text =
      main_text("%x: Tensor[(1, 1), int8]",
                "  %0 = qnn.dense(%x, const(Tensor[(1, 1), int8], [1]), 0, 0, 1f, 1f, units=1);\n"
                "  %1 = qnn.requantize(%0, 2f, 0, 1f, 0);\n  %1");
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int8_t>{5})), (std::vector<int8_t>{10}));
}

TEST(LowerExtremum, OfTwoTensorsAndOfAConstantThatIsRepeated) {
  const std::string text = main_text("%a: Tensor[(1, 3), int8], %b: Tensor[(1, 3), int8]",
                                     "  %0 = maximum(%a, %b);\n"
                                     "  %1 = minimum(%0, const(Tensor[(1), int8], [4]));\n  %1");
  EXPECT_EQ(kernels_of(lower_text(text)), "maximum minimum");
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int8_t>{-128, 3, 9}, std::vector<int8_t>{-7, 1, 8})),
            (std::vector<int8_t>{-7, 3, 4}));
}

TEST(LowerAdd, RescalesBothInputs) {
  const std::string text = main_text("%a: Tensor[(1, 3), int8], %b: Tensor[(1, 3), int8]",
                                     "  %0 = qnn.add(%a, %b, 1f, 0, 0.5f, 0, 1f, -1);\n  %0");
  EXPECT_EQ(kernels_of(lower_text(text)), "add");
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int8_t>{1, 100, -7}, std::vector<int8_t>{4, 100, 2})),
            (std::vector<int8_t>{2, 127, -7}));
}

TEST(LowerSubtract, AndMul) {
  EXPECT_EQ((run_text<uint8_t>(main_text("%a: Tensor[(2), uint8], %b: Tensor[(2), uint8]",
                                         "  %0 = qnn.subtract(%a, %b, 1f, 128, 1f, 128, 1f, 128);\n  %0"),
                               std::vector<uint8_t>{130, 128}, std::vector<uint8_t>{127, 130})),
            (std::vector<uint8_t>{131, 126}));
  EXPECT_EQ((run_text<int8_t>(main_text("%a: Tensor[(2), int8], %b: Tensor[(2), int8]",
                                        "  %0 = qnn.mul(%a, %b, 0.5f, 0, 0.5f, 0, 1f, 3);\n  %0"),
                              std::vector<int8_t>{6, -4}, std::vector<int8_t>{2, 4})),
            (std::vector<int8_t>{6, -1}));
}

TEST(LowerQuantize, TakesTheTransposeOfAnInputInPlanesIn) {
  const auto kernels = [](const std::string& shape, const std::string& axes, const std::string& result) {
    return kernels_of(
        lower_text(main_text("%x: Tensor[(" + shape + "), float32]",
                             "  %0 = qnn.quantize(%x, 0.5f, 3, out_dtype=\"int8\", contract=\"f32e\");\n"
                             "  %1 = transpose(%0, axes=[" +
                                 axes + "]);\n  " + result)));
  };
  EXPECT_EQ(kernels("2, 3, 4, 5", "0, 2, 3, 1", "%1"), "quantize");
  EXPECT_EQ(kernels("2, 3, 4", "0, 2, 1", "%1"), "quantize");
  EXPECT_EQ(kernels("2, 3, 4, 5", "0, 3, 1, 2", "%1"), "quantize transpose");
  EXPECT_EQ(kernels_of(lower_text(
                main_text("%x: Tensor[(2, 3, 4, 5), float32]",
                          "  %0 = transpose(%x, axes=[0, 2, 3, 1]);\n"
                          "  %1 = qnn.quantize(%0, 0.5f, 3, out_dtype=\"int8\", contract=\"f32e\");\n  %1"))),
            "quantize");
  EXPECT_EQ(kernels("2, 3, 4, 5", "1, 2, 3, 0", "%1"), "quantize transpose");
  EXPECT_EQ(kernels("2, 3", "1, 0", "%1"), "quantize transpose");
  // What is read between them has to be somewhere.
  EXPECT_EQ(kernels("2, 3, 4, 5", "0, 2, 3, 1", "(%0, %1)"), "quantize transpose");
  // A step says by its shapes that channels move.
  EXPECT_EQ(kernels("2, 4, 4, 4", "0, 2, 3, 1", "%1"), "quantize transpose");
}

// One channel is in planes and at the end at once: the passes leave a reshape.
TEST(LowerQuantize, TakesTheReshapeOfAnInputOfOneChannelIn) {
  const std::string quantize = ", 0.5f, 3, out_dtype=\"int8\", contract=\"f32e\");\n  ";
  const auto text = [&](const std::string& shape) {
    return main_text(
        "%x: Tensor[(1, 1, 2, 3), float32]",
        "  %0 = reshape(%x, newshape=[" + shape + "]);\n  %1 = qnn.quantize(%0" + quantize + "%1");
  };
  EXPECT_EQ(kernels_of(lower_text(text("1, 2, 3, 1"))), "quantize");
  EXPECT_EQ(kernels_of(lower_text(text("1, 3, 2, 1"))), "copy quantize");
  EXPECT_EQ((run_text<int8_t>(text("1, 2, 3, 1"), std::vector<float>{0, 1, 2, 10, 20, 30})),
            (std::vector<int8_t>{3, 5, 7, 23, 43, 63}));
  const std::string after =
      main_text("%x: Tensor[(1, 1, 2, 3), float32]",
                "  %0 = qnn.quantize(%x" + quantize + "%1 = reshape(%0, newshape=[1, 2, 3, 1]);\n  %1");
  EXPECT_EQ(kernels_of(lower_text(after)), "quantize");
}

TEST(LowerQuantize, MovesChannelsAsTheTransposeDoes) {
  const std::string text =
      main_text("%x: Tensor[(1, 2, 1, 3), float32]",
                "  %0 = qnn.quantize(%x, 0.5f, 3, out_dtype=\"int8\", contract=\"f32e\");\n"
                "  %1 = transpose(%0, axes=[0, 2, 3, 1]);\n  %1");
  EXPECT_EQ((run_text<int8_t>(text, std::vector<float>{0, 1, 2, 10, 20, 30})),
            (std::vector<int8_t>{3, 23, 5, 43, 7, 63}));
}

TEST(LowerDequantize, TakesTheTransposeToAnOutputInPlanesIn) {
  struct Case {
    const char* shape;
    const char* axes;
    bool is_one;
  };
  for (const Case& c : {Case{"2, 3, 4, 5", "0, 3, 1, 2", true}, Case{"2, 3, 4", "0, 2, 1", true},
                        Case{"2, 3, 4, 5", "0, 2, 3, 1", false}, Case{"2, 3, 4, 5", "3, 0, 1, 2", false},
                        Case{"2, 3", "1, 0", false},
                        // A step says by its shapes that channels move.
                        Case{"2, 4, 4, 4", "0, 3, 1, 2", false}}) {
    const std::string input = "%x: Tensor[(" + std::string(c.shape) + "), int8]";
    const std::string transpose = ", axes=[" + std::string(c.axes) + "]);\n  ";
    const auto kernels = [&](const std::string& body) {
      return kernels_of(lower_text(main_text(input, body)));
    };
    const std::string after = "  %0 = qnn.dequantize(%x, 0.5f, 3);\n  %1 = transpose(%0" + transpose;
    const std::string before = "  %0 = transpose(%x" + transpose + "  %1 = qnn.dequantize(%0, 0.5f, 3);\n  ";
    EXPECT_EQ(kernels(after + "%1"), c.is_one ? "dequantize" : "dequantize transpose") << c.axes;
    EXPECT_EQ(kernels(before + "%1"), c.is_one ? "dequantize" : "transpose dequantize") << c.axes;
    // What is read between them has to be somewhere.
    EXPECT_EQ(kernels(after + "(%0, %1)"), "dequantize transpose");
    EXPECT_EQ(kernels(before + "(%0, %1)"), "transpose dequantize");
  }
}

TEST(LowerDequantize, MovesChannelsAsTheTransposeDoes) {
  for (const char* body :
       {"  %0 = qnn.dequantize(%x, 0.5f, 3);\n  %1 = transpose(%0, axes=[0, 3, 1, 2]);\n  %1",
        "  %0 = transpose(%x, axes=[0, 3, 1, 2]);\n  %1 = qnn.dequantize(%0, 0.5f, 3);\n  %1"}) {
    EXPECT_EQ((run_text<float>(main_text("%x: Tensor[(1, 1, 3, 2), int8]", body),
                               std::vector<int8_t>{3, 23, 5, 43, 7, 63})),
              (std::vector<float>{0, 1, 2, 10, 20, 30}));
  }
}

TEST(LowerUnary, AChainIsOneTable) {
  const std::string text = main_text("%x: Tensor[(4), uint8]",
                                     "  %0 = qnn.requantize(%x, 1f, 128, 1f, 0);\n"
                                     "  %1 = clip(%0, a_min=-100f, a_max=100f);\n"
                                     "  %2 = qnn.requantize(%1, 1f, 0, 2f, 5);\n  %2");
  EXPECT_EQ(kernels_of(lower_text(text)), "lut8");
  EXPECT_EQ((run_text<int8_t>(text, std::vector<uint8_t>{128, 255, 0, 129})),
            (std::vector<int8_t>{5, 55, -45, 6}));
}

TEST(LowerUnary, SigmoidIsATable) {
  const std::string text =
      main_text("%x: Tensor[(3), int8]", "  %0 = qnn.sigmoid(%x, 0.1f, 0, 0.00390625f, -128);\n  %0");
  EXPECT_EQ(kernels_of(lower_text(text)), "lut8");
  // 256 / (1 + exp(-v)) - 128 for v = 0, 12.7, -12.8
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int8_t>{0, 127, -128})), (std::vector<int8_t>{0, 127, -128}));
}

TEST(LowerMean, DividesByTheCount) {
  const std::string text = main_text("%x: Tensor[(1, 2, 2, 1), int8]",
                                     "  %0 = qnn.mean(%x, 1f, 0, 1f, 0, axis=[1, 2], keepdims=False);\n  %0");
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int8_t>{1, 2, 3, 6})), (std::vector<int8_t>{3}));
}

TEST(LowerPool, AverageRefusesRescaling) {
  const auto text = [](const std::string& scale) {
    return main_text("%x: Tensor[(1, 2, 2, 1), int8]",
                     "  %0 = qnn.avg_pool2d(%x, 1f, 0, " + scale +
                         ", 0, pool_size=[2, 2], layout=\"NHWC\", name=\"pool\");\n  %0");
  };
  EXPECT_EQ((run_text<int8_t>(text("1f"), std::vector<int8_t>{1, 2, 3, 5})), (std::vector<int8_t>{3}));
  EXPECT_TRUE(
      mentions(lower_refusal(text("2f")), "qnn.avg_pool2d 'pool': input and output have different scales"));
}

TEST(LowerMovement, ReshapeIsACopyInPlace) {
  const std::string text = main_text("%x: Tensor[(2, 3), int8]",
                                     "  %0 = transpose(%x, axes=[1, 0]);\n  %1 = reshape(%0, newshape=[6]);\n"
                                     "  %2 = nn.pad(%1, 9f, pad_width=[[1, 0]]);\n  %2");
  EXPECT_EQ(kernels_of(lower_text(text)), "transpose copy pad");
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int8_t>{1, 2, 3, 4, 5, 6})),
            (std::vector<int8_t>{9, 1, 4, 2, 5, 3, 6}));
}

TEST(LowerMovement, WideConcatenationsAndSplitsTakeSeveralSteps) {
  std::string parts, results;
  for (int i = 0; i < 60; ++i) parts += (i == 0 ? "%0." : ", %0.") + std::to_string(59 - i);
  const std::string text = main_text("%x: Tensor[(1, 60), int8]",
                                     "  %0 = split(%x, indices_or_sections=60, axis=1);\n"
                                     "  %1 = concatenate((" +
                                         parts + "), axis=1);\n  %1");
  std::vector<int8_t> input, reversed;
  for (int8_t i = 0; i < 60; ++i) input.push_back(i);
  reversed.assign(input.rbegin(), input.rend());
  EXPECT_EQ((run_text<int8_t>(text, input)), reversed);
}

TEST(LowerOutputs, AConstantIsCopiedAndAnInputIsItself) {
  const std::string constant = main_text("%x: Tensor[(2), int8]", "  const(Tensor[(3), int8], [7, 8, 9])");
  EXPECT_EQ(kernels_of(lower_text(constant)), "copy");
  EXPECT_EQ((run_text<int8_t>(constant, std::vector<int8_t>{0, 0})), (std::vector<int8_t>{7, 8, 9}));
  const std::string identity = main_text("%x: Tensor[(2), int8]", "  %x");
  EXPECT_EQ(kernels_of(lower_text(identity)), "");
  EXPECT_EQ((run_text<int8_t>(identity, std::vector<int8_t>{4, 5})), (std::vector<int8_t>{4, 5}));
}

// "<name> <scale>" of each output, and whether it is a tensor of its own.
std::vector<std::string> outputs_of(const target::Program& program) {
  std::vector<std::string> texts;
  std::vector<target::TensorId> seen = program.inputs;
  for (const target::TensorId output : program.outputs) {
    const target::ProgramTensor& tensor = program.tensors[output];
    const bool shared = std::ranges::find(seen, output) != seen.end();
    const float scale = tensor.quantization.scales.empty() ? 0.0f : tensor.quantization.scales[0];
    texts.push_back(tensor.name + " " + std::to_string(static_cast<int>(scale)) + (shared ? " shared" : ""));
    seen.push_back(output);
  }
  return texts;
}

// Rewrites can make several outputs, or an input and an output, one value: the model still has all of them.
TEST(LowerOutputs, OutputsOfOneValueKeepTheirNamesAndQuantisation) {
  ir::Module module = text::parse(
      main_text("%x: Tensor[(2), int8]", "  %0 = clip(%x, a_min=0f, a_max=9f);\n  (%0, %0, %0, %0, %x, %x)"),
      "test");
  ir::Function& main = *module.functions()[0];
  main.set_outputs({main.outputs().begin(), main.outputs().end()}, {"a", "b", "a", "a", "x", "y"});
  set_input_quantization(main, 0, {2.0f, 1});
  for (const size_t i : {0, 1, 2}) set_output_quantization(main, i, {3.0f, 0});
  set_output_quantization(main, 3, {4.0f, 0});
  set_output_quantization(main, 4, {2.0f, 1});
  set_output_quantization(main, 5, {2.0f, 1});
  const target::Program program = target::lower_function(main, target::parse_target("cpu"));
  EXPECT_EQ(outputs_of(program),
            (std::vector<std::string>{"a 3", "b 3", "a 3 shared", "a 4", "x 2 shared", "y 2"}));
  EXPECT_EQ(program.tensors[program.inputs[0]].name, "x");
  const std::vector<ir::ConstantRef> results = evaluate::run_function(
      main, std::vector{ir::make_constant(ir::kInt8, {2}, std::vector<int8_t>{-3, 5})});
  const std::vector<std::vector<int8_t>> expected = {{0, 5}, {0, 5}, {0, 5}, {0, 5}, {-3, 5}, {-3, 5}};
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(results[i]->as<int8_t>(), expected[i])) << i;
  }
}

TEST(LowerRefusals, LimitsOfPlansAreToldBeforeTheRuntimeTellsThem) {
  EXPECT_TRUE(
      mentions(lower_refusal(main_text("%x: Tensor[(1, 1, 1, 1, 1, 1, 2), int8]", "  %x")), "rank 7"));
  EXPECT_TRUE(
      mentions(lower_refusal(main_text("%x: Tensor[(65536, 65536), int8]", "  %x")), "2^31 - 1 elements"));
  EXPECT_TRUE(mentions(lower_refusal(main_text("%x: Tensor[(2), int4]", "  %x")), "dtype"));
  std::string params;
  for (int i = 0; i < 257; ++i)
    params += (i == 0 ? "%x" : ", %x") + std::to_string(i) + ": Tensor[(1), int8]";
  EXPECT_EQ(lower_refusal(main_text(params, "  %x0")), "the model has 257 inputs, a plan at most 256");
}

TEST(LowerRefusals, AllAreListedInOneError) {
  const std::string text = main_text("%x: Tensor[(1, 4), int64], %y: Tensor[(1, 4), int8]",
                                     "  %0 = negative(%x, name=\"root\");\n"
                                     "  %1 = clip(%y, a_min=0f, a_max=6f);\n"
                                     "  %2 = abs(%0, name=\"below\");\n  %2");
  EXPECT_EQ(
      lower_refusal(text),
      "target 'cpu' cannot run 2 of 3 operators:\n  1 x negative 'root': no kernel computes it on int64 "
      "[cpu.op.negative]\n"
      "  1 x abs 'below': no kernel computes it on int64 [cpu.op.abs]");
}

TEST(LowerRefusals, OperatorsOfOneKindAndReasonAreCounted) {
  const std::string text = main_text("%x: Tensor[(1, 4), int64]",
                                     "  %0 = negative(%x, name=\"a\");\n  %1 = negative(%0, name=\"b\");\n"
                                     "  %2 = negative(%1, name=\"c\");\n  %2");
  EXPECT_EQ(lower_refusal(text),
            "target 'cpu' cannot run 3 of 3 operators: negative (first 'a'): no kernel computes it on int64 "
            "[cpu.op.negative]");
}

TEST(LowerRefusals, OperatorsWithoutANameAreCountedAlone) {
  EXPECT_EQ(
      lower_refusal(main_text("%x: Tensor[(1, 4), int64]", "  %0 = negative(%x);\n  negative(%0)")),
      "target 'cpu' cannot run 2 of 2 operators: negative: no kernel computes it on int64 [cpu.op.negative]");
}

// Groups of some outputs over 3x3 windows of few channels: merged into blocks of 16 outputs for vectors, with
// the same bytes as left alone. So are depthwise ones with several outputs for a channel.
TEST(LowerConv2d, MergesGroupsUntilTheyHaveBlocksOf16Outputs) {
  struct Case {
    int groups, group_o, group_c;
    const char* expected;  // groups of the step
  };
  for (const Case& c : {Case{8, 4, 3, "2"}, Case{4, 8, 3, "2"}, Case{3, 16, 3, "3"}, Case{3, 5, 3, "1"},
                        Case{67, 2, 3, "67"}, Case{24, 2, 1, "3"}, Case{24, 1, 1, "24"}}) {
    const int inputs = c.group_c * c.groups, outputs = c.group_o * c.groups;
    std::string weights;
    for (int i = 0; i < outputs * 9 * c.group_c; ++i)
      weights += (i == 0 ? "" : ", ") + std::to_string((i * 37) % 251);
    const std::string text = testing::main_text(
        "%x: Tensor[(1, 5, 6, " + std::to_string(inputs) + "), uint8]",
        "  %0 = qnn.conv2d(%x, const(Tensor[(" + std::to_string(outputs) + ", 3, 3, " +
            std::to_string(c.group_c) + "), uint8], [" + weights +
            "]), 7, 111, 1f, 1f, padding=[1, 1, 1, 1], groups=" + std::to_string(c.groups) +
            ", data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
            "  %1 = qnn.requantize(%0, 1f, 0, 900f, 99, out_dtype=\"uint8\");\n  %1");
    std::vector<std::vector<uint8_t>> results;
    for (const std::string target : {"cpu", "cpu,isa=reference"}) {
      const AlignedBytes plan =
          evaluate::make_plan(testing::lower_text(text, target), target::parse_target(target), {});
      const inspect::PlanReader reader(plan.span());
      for (const auto& [name, value] : inspect::step_params(reader.view().step(0))) {
        if (name == "groups" && target == "cpu") {
          EXPECT_EQ(value, c.expected) << c.groups;
        }
      }
      evaluate::ReferenceSession session(plan.span());
      const std::span<uint8_t> input = session.io(QPLAN_INPUT, 0);
      for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<uint8_t>(i * 91);
      session.invoke();
      const std::span<uint8_t> output = session.io(QPLAN_OUTPUT, 0);
      results.emplace_back(output.begin(), output.end());
    }
    EXPECT_EQ(results[0], results[1]) << c.groups << " groups";
    EXPECT_NE(results[0].front(), results[0].back());
  }
}

// As a relu in front of a quantisation to int16 becomes, where no layer takes it along.
TEST(LowerClip, OfInt16AloneIsAStep) {
  const std::string text = main_text("%x: Tensor[(7), int16]", "  clip(%x, a_min=-300f, a_max=32766f)");
  EXPECT_EQ(kernels_of(lower_text(text)), "requantize");
  EXPECT_EQ((run_text<int16_t>(text, std::vector<int16_t>{-32768, -301, -300, -1, 0, 32766, 32767})),
            (std::vector<int16_t>{-300, -300, -300, -1, 0, 32766, 32766}));
}

TEST(LowerGather, SlicesAndTakesOneAfterTheOtherAreOneStep) {
  // Rows 4, 2, 0 of 5; of these rows 1 and 1, of them column 2: twice row 2, column 2.
  const std::string text =
      main_text("%x: Tensor[(5, 3), int16]",
                "  %0 = strided_slice(%x, begin=[4], end=[-9], strides=[-2]);\n"
                "  %1 = take(%0, const(Tensor[(2), int64], [1, -2]), axis=0, mode=\"fast\");\n"
                "  %2 = strided_slice(%1, begin=[2], end=[3], axes=[1]);\n  %2");
  EXPECT_EQ(kernels_of(lower_text(text)), "gather");
  EXPECT_EQ(
      (run_text<int16_t>(text, std::vector<int16_t>{0, 1, 2, 3, 4, 5, 6, 7, 800, 9, 10, 11, 12, 13, 14})),
      (std::vector<int16_t>{800, 800}));
}

TEST(LowerGather, PositionsAtEqualDistancesNeedNoList) {
  const auto inputs_of = [](const std::string& indices) {
    return lower_text(main_text("%x: Tensor[(6, 2), float32]",
                                "  take(%x, const(Tensor[(3), int32], [" + indices + "]), axis=0)"))
        .steps.at(0)
        .inputs.size();
  };
  EXPECT_EQ(inputs_of("5, 3, 1"), 1u);
  EXPECT_EQ(inputs_of("2, 2, 2"), 1u);
  EXPECT_EQ(inputs_of("0, 1, 3"), 2u);
}

TEST(LowerGather, AResultThatOthersReadIsAStepOfItsOwn) {
  const std::string text = main_text("%x: Tensor[(4), int8]",
                                     "  %0 = strided_slice(%x, begin=[1], end=[4]);\n"
                                     "  %1 = strided_slice(%0, begin=[1], end=[3]);\n  (%0, %1)");
  EXPECT_EQ(kernels_of(lower_text(text)), "gather gather");
}

TEST(LowerPad, AFloatValueIsPaddedAsItIs) {
  const std::string text = main_text("%x: Tensor[(2), float32]", "  nn.pad(%x, -0.75f, pad_width=[[1, 0]])");
  EXPECT_EQ((run_text<float>(text, std::vector<float>{1, 2})), (std::vector<float>{-0.75f, 1, 2}));
}

}  // namespace
}  // namespace qplan::testing::lower_test
