// Relay text as untrusted input: what the parser takes and the rest of the packer relies on is checked on
// import.
#include <gtest/gtest.h>

#include "src/packer/error.h"
#include "src/packer/import/import.h"

namespace qplan::relay_import_test {
namespace {

ir::Module import_text(const std::string& text, const LogFunction& log = {}) {
  return import_relay({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, "net.relay", log);
}

std::string refusal(const std::string& text) {
  try {
    import_text(text);
  } catch (const PackError& error) {
    return std::to_string(error.status()) + ": " + error.what();
  }
  return "imported";
}

std::string pool(const std::string& attributes, const std::string& dtype = "int8") {
  return "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 4, 4, 4), " + dtype + "], " + attributes +
         ") {\nnn.max_pool2d(%x, pool_size=[1, 1])\n}\n";
}

TEST(RelayImport, QuantisationOfInputsAndOutputsIsKept) {
  const ir::Module module =
      import_text(pool("input_scale_0=0.5f, input_zero_point_0=-128, output_scale_0=2"));
  ASSERT_TRUE(input_quantization(module.main(), 0));
  EXPECT_EQ(input_quantization(module.main(), 0)->scale, 0.5f);
  EXPECT_EQ(input_quantization(module.main(), 0)->zero_point, -128);
  ASSERT_TRUE(output_quantization(module.main(), 0));
  EXPECT_EQ(output_quantization(module.main(), 0)->scale, 2.0f);
}

TEST(RelayImport, ImpossibleQuantisationOfInputsAndOutputsIsRefused) {
  const std::string place = "-48: net.relay: function '@main': attribute '";
  const std::string no_scale = "' is not a scale, expected a positive finite number of float32";
  for (const char* scale : {"inff", "nanf", "-inff", "0f", "-0.5f", "0", "1e300f64", "1e-60f64", "\"x\"",
                            "True", "[1]", "[[1]]"}) {
    EXPECT_EQ(refusal(pool(std::string("output_scale_0=") + scale)), place + "output_scale_0" + no_scale);
  }
  const std::string no_integer = "' is not a zero point, expected an integer";
  for (const char* zero_point : {"\"x\"", "0.5f", "True", "[1]"}) {
    EXPECT_EQ(refusal(pool(std::string("input_scale_0=0.5f, input_zero_point_0=") + zero_point)),
              place + "input_zero_point_0" + no_integer);
  }
  EXPECT_EQ(refusal(pool("input_scale_0=0.5f, input_zero_point_0=1128")),
            place + "input_zero_point_0' is 1128, outside of int8: expected -128 to 127");
  EXPECT_EQ(refusal(pool("output_zero_point_0=-1", "uint8")),
            place + "output_zero_point_0' is -1, outside of uint8: expected 0 to 255");
  EXPECT_EQ(
      refusal(pool("input_zero_point_0=4294967296", "float32")),
      place + "input_zero_point_0' is 4294967296, outside of int32: expected -2147483648 to 2147483647");
}

// A requantisation along the rows, of which there are more than channels: the log compares no scales.
TEST(RelayImport, ScalesAlongAnotherAxisThanTheChannelsAreNotCompared) {
  const std::string text =
      "def @main(%x: Tensor[(1, 8, 4, 1), int8]) {\n"
      "  %0 = qnn.conv2d(%x, const(Tensor[(2, 1, 1, 1), int8], [1, 2]), 0, 0, 0.5f, "
      "const(Tensor[(2), float32], [0.5, 0.25]), channels=2, kernel_size=[1, 1], data_layout=\"NHWC\", "
      "kernel_layout=\"OHWI\");\n"
      "  qnn.requantize(%0, const(Tensor[(8), float32], [1, 2, 3, 4, 5, 6, 7, 8]), 0, 1f, 0, axis=1)\n"
      "}\n";
  std::string logged;
  import_text(text, [&](uint32_t, const std::string& line) { logged += line; });
  EXPECT_EQ(logged, "");
}

}  // namespace
}  // namespace qplan::relay_import_test
