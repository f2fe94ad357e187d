#include <gtest/gtest.h>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/pipeline/stages.h"
#include "tests/packer/passes/pass_test_support.h"

namespace qplan::pipeline::interface_test {
namespace {

using passes_test::parse_main;

std::string body_of(const ir::Module& module) { return passes_test::print_body(module.main()); }

std::string input_type(const ir::Module& module, size_t index = 0) {
  return ir::to_string(module.main().type(module.main().params()[index]));
}

// By the zero point of the weights: TFLite's int8 convolutions know none, its uint8 ones do. The activations'
// dtype in the source does not matter.
TEST(SetContract, MultipliersAreFormedAsTfliteFormsThem) {
  for (const char* dtype : {"uint8", "int8"}) {
    for (const auto& [zero_point, rule] :
         {std::pair{"3", ", multiplier=\"product_f32\""}, std::pair{"0", ""}}) {
      ir::Module module =
          parse_main(std::string("%x: Tensor[(1, 1, 1, 2), ") + dtype + "], %w: Tensor[(2, 1, 1, 2), int8]",
                     std::string("  %0 = qnn.conv2d(%x, %w, 0, ") + zero_point +
                         ", 0.5f, 0.5f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
                         "  qnn.requantize(%0, 0.25f, 0, 1f, 0, out_dtype=\"int8\", contract=\"f32e\")\n");
      set_contract(&module, "tfl2");
      EXPECT_NE(body_of(module).find(std::string("qnn.requantize(%0, 0.25f, 0, 1f, 0") + rule + ");"),
                std::string::npos)
          << body_of(module);
    }
  }
}

const char kTflitesFloats[] =
    "  %0 = qnn.requantize(%x, 0.5f, 0, 1f, 0, multiplier=\"none\");\n"
    "  %1 = qnn.dequantize(%0, 1f, 0);\n"
    "  qnn.quantize(%1, 2f, 0, rule=\"div_away\")\n";

TEST(SetContract, FloatsOfTfliteStayUnderItsContractOnly) {
  ir::Module module = parse_main("%x: Tensor[(2), int8]", kTflitesFloats);
  set_contract(&module, "tfl2");
  EXPECT_NE(body_of(module).find("multiplier=\"none\""), std::string::npos) << body_of(module);
  EXPECT_NE(body_of(module).find("rule=\"div_away\""), std::string::npos) << body_of(module);
  set_contract(&module, "f32e");
  set_contract(&module, "tfl2");
  EXPECT_EQ(body_of(module).find("multiplier"), std::string::npos) << body_of(module);
  EXPECT_EQ(body_of(module).find("rule"), std::string::npos) << body_of(module);
}

// The canonical body does not depend on it, nor does the network under another contract.
TEST(SetContract, FloatsOfTfliteHaveTheBodyOfOtherSources) {
  const auto text = [](const std::string& attrs, const std::string& contract) {
    const std::string model =
        "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 4), int8]) {\n"
        "  %0 = qnn.dequantize(%x, 0.5f, 3);\n  %1 = reshape(%0, newshape=[4]);\n"
        "  qnn.quantize(%1, 1f, 5" +
        attrs + ")\n}\n";
    PackOptions options;
    options.canonical_body = contract.empty();
    options.contract = contract;
    return model_text(std::span(reinterpret_cast<const uint8_t*>(model.data()), model.size()), "model.relay",
                      options, /*canonical=*/true);
  };
  const std::string tflites = ", rule=\"div_away\"", others = ", contract=\"f32e\"";
  EXPECT_EQ(text(tflites, ""), text(others, ""));
  EXPECT_NE(text(tflites, "").find("qnn.requantize("), std::string::npos);
  EXPECT_EQ(text(tflites, "f32e"), text(others, "f32e"));
  EXPECT_NE(text(tflites, "tfl2"), text(others, "tfl2"));
}

TEST(SetContract, RefusesAnUnknownOne) {
  ir::Module module = parse_main("%x: Tensor[(2), int8]", "  clip(%x, a_min=0f, a_max=1f)\n");
  EXPECT_THROW(set_contract(&module, "float"), PackError);
}

TEST(SetIoLayout, AnInputAndAnOutputAreTransposed) {
  ir::Module module = parse_main("%x: Tensor[(1, 2, 3, 4), int8]", "  nn.max_pool2d(%x, pool_size=[1, 1])\n");
  set_io_layout(&module, "nhwc", {});
  EXPECT_EQ(input_type(module), "Tensor[(1, 3, 4, 2), int8]");
  EXPECT_EQ(body_of(module),
            "%0 = transpose(%x, axes=[0, 3, 1, 2]);\n"
            "%1 = nn.max_pool2d(%0, pool_size=[1, 1]);\n"
            "%2 = transpose(%1, axes=[0, 2, 3, 1]);\n%2\n");
  ir::Module same = parse_main("%x: Tensor[(1, 2, 3, 4), int8]", "  nn.max_pool2d(%x, pool_size=[1, 1])\n");
  set_io_layout(&same, "nchw", {});
  EXPECT_EQ(body_of(same), "%0 = nn.max_pool2d(%x, pool_size=[1, 1]);\n%0\n");
}

TEST(SetIoLayout, WhatNothingIsKnownOfStaysAndIsLogged) {
  ir::Module module = parse_main("%x: Tensor[(1, 2, 3, 4), int8]", "  clip(%x, a_min=0f, a_max=1f)\n");
  std::string logged;
  set_io_layout(&module, "nhwc", [&](uint32_t, const std::string& text) { logged += text + "\n"; });
  EXPECT_EQ(input_type(module), "Tensor[(1, 2, 3, 4), int8]");
  EXPECT_NE(logged.find("input 'x'"), std::string::npos) << logged;
}

TEST(SetIoDtype, AQuantisedFloatInputBecomesAnInteger) {
  ir::Module module = parse_main("%x: Tensor[(2), float32]",
                                 "  %0 = qnn.quantize(%x, 0.5f, 3, out_dtype=\"int8\");\n"
                                 "  %1 = clip(%0, a_min=0f, a_max=1f);\n  qnn.dequantize(%1, 0.5f, 3)\n");
  set_io_dtype(&module, "int8", {});
  EXPECT_EQ(input_type(module), "Tensor[(2), int8]");
  EXPECT_EQ(body_of(module), "%0 = clip(%x, a_min=0f, a_max=1f);\n%0\n");
  ASSERT_TRUE(input_quantization(module.main(), 0));
  EXPECT_EQ(input_quantization(module.main(), 0)->zero_point, 3);
  ASSERT_TRUE(output_quantization(module.main(), 0));
  EXPECT_EQ(output_quantization(module.main(), 0)->scale, 0.5f);
}

TEST(SetIoDtype, TheOtherSignednessIsAStepAway) {
  ir::Module module = parse_main("%x: Tensor[(2), float32]",
                                 "  %0 = qnn.quantize(%x, 0.5f, 3, out_dtype=\"int8\");\n"
                                 "  clip(%0, a_min=0f, a_max=1f)\n");
  set_io_dtype(&module, "uint8", {});
  EXPECT_EQ(input_type(module), "Tensor[(2), uint8]");
  EXPECT_EQ(body_of(module),
            "%0 = qnn.requantize(%x, 0.5f, 131, 0.5f, 3);\n"
            "%1 = clip(%0, a_min=0f, a_max=1f);\n"
            "%2 = qnn.requantize(%1, 1f, -128, 1f, 0, out_dtype=\"uint8\");\n%2\n");
}

TEST(SetIoDtype, AnIntegerInputBecomesFloatWhereItsScaleIsKnown) {
  ir::Module module = parse_main("%x: Tensor[(2), int8]", "  clip(%x, a_min=0f, a_max=1f)\n");
  EXPECT_THROW(set_io_dtype(&module, "float", {}), PackError);
  auto main = std::make_unique<ir::Function>(module.main());
  set_input_quantization(*main, 0, {0.5f, 3});
  set_output_quantization(*main, 0, {0.5f, 3});
  module.replace_function(std::move(main));
  set_io_dtype(&module, "float", {});
  EXPECT_EQ(input_type(module), "Tensor[(2), float32]");
  EXPECT_EQ(body_of(module),
            "%0 = qnn.quantize(%x, 0.5f, 3);\n%1 = clip(%0, a_min=0f, a_max=1f);\n%2 = qnn.dequantize(%1, "
            "0.5f, 3);\n%2\n");
  EXPECT_FALSE(input_quantization(module.main(), 0));
}

// The convolution's zero point moves into its bias; the input's is what the source said.
TEST(SetIoDtype, AnInputIsQuantisedAsTheSourceReadsIt) {
  const std::string model =
      "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 2, 2, 1), int8]) {\n"
      "  %0 = qnn.conv2d(%x, const(Tensor[(1, 1, 1, 1), int8], [2]), 28, 0, 0.5f, 0.5f, "
      "data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
      "  qnn.requantize(%0, 0.25f, 0, 1f, 0, contract=\"f32e\")\n}\n";
  PackOptions options;
  options.io = "float";
  const std::string text = model_text(std::span(reinterpret_cast<const uint8_t*>(model.data()), model.size()),
                                      "model.relay", options, /*canonical=*/true);
  EXPECT_NE(text.find("qnn.quantize(%x, 0.5f, 28,"), std::string::npos) << text;
}

TEST(SetIoDtype, AnOutputOfWiderIntegersStaysAndIsLogged) {
  ir::Module module = parse_main("%x: Tensor[(2), int32]", "  qnn.dequantize(%x, 0.5f, 0)\n");
  std::string logged;
  set_io_dtype(&module, "int8", [&](uint32_t, const std::string& text) { logged += text + "\n"; });
  EXPECT_EQ(body_of(module), "%0 = qnn.dequantize(%x, 0.5f, 0);\n%0\n");
  EXPECT_NE(logged.find("its integers are wider than 8 bits"), std::string::npos) << logged;
}

TEST(SetIoDtype, AnInputThatIsComputedWithInFloatStays) {
  const std::string body = "  add(%x, %x)\n";
  ir::Module module = parse_main("%x: Tensor[(2), float32]", body);
  std::string logged;
  set_io_dtype(&module, "int8", [&](uint32_t, const std::string& text) { logged += text + "\n"; });
  EXPECT_EQ(input_type(module), "Tensor[(2), float32]");
  EXPECT_NE(logged.find("input 'x' is not changed"), std::string::npos) << logged;
  EXPECT_NE(logged.find("is not changed: it is computed in float"), std::string::npos) << logged;
}

}  // namespace
}  // namespace qplan::pipeline::interface_test
