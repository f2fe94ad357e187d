// Calls that mean in Relay something else than the IR's operator of that name, and how the printed text says
// what the IR means. Expected values: TVM's definitions by hand.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/packer/target/lower_helpers.h"

namespace qplan::text::relay_meaning_test {
namespace {

using Reals = std::vector<float>;
using qplan::testing::main_text;
using qplan::testing::run_text;

constexpr char kData[] = "%x: Tensor[(2, 3), float32]";
constexpr char kIndices[] = "%x: Tensor[(2, 3), float32], %i: Tensor[(2), int32]";
const Reals kSix = {1, 2, 3, 4, 5, 6};

Reals run(const std::string& body, const Reals& data = kSix) {
  return run_text<float>(main_text(kData, body), data);
}
Reals run_computed(const std::string& body, const std::vector<int32_t>& indices) {
  return run_text<float>(main_text(kIndices, body), kSix, indices);
}

// The statements that are printed of it, which must read back as they are.
std::string printed(const std::string& params, const std::string& body) {
  const std::string text = print(parse(main_text(params, body), "t"));
  EXPECT_EQ(print(parse(text, "t")), text);
  std::string statements;
  for (size_t at = text.find("{\n") + 2; text[at] != '}'; at = text.find('\n', at) + 1) {
    const std::string line = text.substr(at + 2, text.find('\n', at) - at - 2);
    statements += line.substr(0, line.find(" /* ty=")) + "\n";
  }
  return statements;
}

std::string refused(const std::string& params, const std::string& body) {
  try {
    parse(main_text(params, body), "t");
  } catch (const PackError& error) {
    const std::string text = error.what();
    return std::to_string(error.status()) + text.substr(text.find(": "), text.rfind(": `") - text.find(": "));
  }
  return "read";
}

const std::string kUnsupported = std::to_string(QPLAN_MODEL_UNSUPPORTED) + ": ";

TEST(RelayDefaults, LeakyReluHasAQuarter) {
  EXPECT_EQ(run("  nn.leaky_relu(%x)", {-4, 4, -8, 8, 0, 1}), (Reals{-1, 4, -2, 8, 0, 1}));
  EXPECT_EQ(printed(kData, "  nn.leaky_relu(%x, alpha=0.01f)"), "%0 = nn.leaky_relu(%x, alpha=0.01f)\n%0\n");
}

TEST(RelayDefaults, TakeAndCumsumGoAlongAllTheData) {
  EXPECT_EQ(run_computed("  take(%x, %i)", {1, 0}), (Reals{2, 1}));
  EXPECT_EQ(run("  take(%x, const(Tensor[(2), int64], [5, 0]))"), (Reals{6, 1}));
  EXPECT_EQ(run("  cumsum(%x)"), (Reals{1, 3, 6, 10, 15, 21}));
  EXPECT_EQ(printed(kData, "  cumsum(%x)"), "%0 = reshape(%x, newshape=[-1])\n%1 = cumsum(%0, axis=0)\n%1\n");
  EXPECT_EQ(printed("%x: Tensor[(4), float32]", "  cumsum(%x)"), "%0 = cumsum(%x, axis=0)\n%0\n");
  EXPECT_EQ(printed(kData, "  cumsum(%x, axis=0)"), "%0 = cumsum(%x, axis=0)\n%0\n");
  EXPECT_EQ(printed(kData, "  take(%x, 1, axis=0)"), "%0 = take(%x, 1, axis=0)\n%0\n");
  // Types are deduced from the same calls.
  EXPECT_EQ(
      printed(kData, "  %0 = cumsum(%x);\n  nn.bias_add(%0, %0, axis=0)"),
      "%0 = reshape(%x, newshape=[-1])\n%1 = cumsum(%0, axis=0)\n%2 = nn.bias_add(%1, %1, axis=0)\n%2\n");
}

TEST(RelayDefaults, AdaptivePoolsMustSayTheirSize) {
  const std::string image = "%x: Tensor[(1, 2, 2, 2), float32]";
  for (const char* attrs : {"", ", output_size=None", ", layout=\"NCHW\""}) {
    EXPECT_EQ(refused(image, "  nn.adaptive_avg_pool2d(%x" + std::string(attrs) + ")"),
              kUnsupported +
                  "attribute 'output_size' is missing, which is not supported, expected 1 or [1] or [1, 1]");
  }
  EXPECT_EQ(printed(image, "  nn.adaptive_avg_pool2d(%x, output_size=[1])"),
            "%0 = nn.global_avg_pool2d(%x)\n%0\n");
  EXPECT_EQ(printed(image, "  nn.global_avg_pool2d(%x)"), "%0 = nn.global_avg_pool2d(%x)\n%0\n");
}

TEST(RelayOutLayout, AnotherThanTheOperatorsIsRefused) {
  const std::string image = "%x: Tensor[(1, 2, 2, 2), float32]";
  const std::string weight = "const(Tensor[(2, 1, 1, 2), float32], [1, 0, 0, 1])";
  const std::vector<std::string> heads = {
      "nn.max_pool2d(%x, pool_size=[1, 1], out_layout=OUT, layout=\"NHWC\")",
      "nn.avg_pool2d(%x, pool_size=[1, 1], layout=\"NHWC\", out_layout=OUT)",
      "nn.adaptive_avg_pool2d(%x, output_size=1, layout=\"NHWC\", out_layout=OUT)",
      "nn.conv2d(%x, " + weight + ", data_layout=\"NHWC\", kernel_layout=\"OHWI\", out_layout=OUT)"};
  for (const std::string& head : heads) {
    const auto with = [&](const std::string& out) {
      std::string call = head;
      return "  " + call.replace(call.find("OUT"), 3, out);
    };
    EXPECT_EQ(refused(image, with("\"NHWC\"")), "read");
    EXPECT_EQ(refused(image, with("\"\"")), "read");
    EXPECT_EQ(printed(image, with("\"NHWC\"")).find("out_layout"), std::string::npos);
    const std::string layout = head.starts_with("nn.conv2d") ? "data_layout" : "layout";
    for (const char* out : {"\"NCHW\"", "1", "\"NCHW4c\""}) {
      EXPECT_EQ(refused(image, with(out)),
                kUnsupported + "attribute 'out_layout' differs from '" + layout +
                    "', which is not supported: write a transpose after the operator");
    }
  }
  // The layout of the operator that Relay does not print is NCHW.
  EXPECT_EQ(refused(image, "  nn.max_pool2d(%x, pool_size=[1, 1], out_layout=\"NCHW\")"), "read");
  EXPECT_NE(refused(image, "  nn.max_pool2d(%x, pool_size=[1, 1], out_layout=\"NHWC\")"), "read");
}

}  // namespace
}  // namespace qplan::text::relay_meaning_test
