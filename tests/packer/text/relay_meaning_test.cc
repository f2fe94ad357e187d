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

TEST(RelayTake, IndicesAreHeldWithinTheAxis) {
  for (const char* mode : {"", ", mode=\"clip\"", ", mode=None"}) {
    const std::string attrs = ", axis=1" + std::string(mode) + ")";
    EXPECT_EQ(run_computed("  take(%x, %i" + attrs, {-1, 7}), (Reals{1, 3, 4, 6}));
    EXPECT_EQ(run("  take(%x, const(Tensor[(2), int64], [-1, 1])" + attrs), (Reals{1, 2, 4, 5}));
    EXPECT_EQ(run("  take(%x, const(Tensor[(2), int32], [7, -2147483648])" + attrs), (Reals{3, 1, 6, 4}));
  }
  EXPECT_EQ(printed(kData, "  take(%x, const(Tensor[(3), int32], [-1, 2, 7]), axis=-1)"),
            "%0 = take(%x, const(Tensor[(3), int32], [0, 2, 2]), axis=-1)\n%0\n");
  EXPECT_EQ(printed(kIndices, "  take(%x, %i, axis=1)"),
            "%0 = maximum(%i, 0)\n%1 = take(%x, %0, axis=1, mode=\"fast\")\n%1\n");
}

// As the IR has it, and ONNX: from the axis' end.
TEST(RelayTake, NegativeIndicesAreFast) {
  EXPECT_EQ(run_computed("  take(%x, %i, axis=1, mode=\"fast\")", {-1, 7}), (Reals{3, 3, 6, 6}));
  EXPECT_EQ(run("  take(%x, const(Tensor[(2), int64], [-1, 1]), axis=1, mode=\"fast\")"),
            (Reals{3, 2, 6, 5}));
  const std::string negative =
      "%0 = take(%x, const(Tensor[(2), int64], [-1, 1]), axis=1, mode=\"fast\", name=\"n\")";
  EXPECT_EQ(printed(kData, "  " + negative + ";\n  %0"), negative + "\n%0\n");
  EXPECT_EQ(printed(kData, "  take(%x, const(Tensor[(2), int64], [2, 0]), axis=1, mode=\"fast\")"),
            "%0 = take(%x, const(Tensor[(2), int64], [2, 0]), axis=1)\n%0\n");
  EXPECT_EQ(refused(kIndices, "  take(%x, %i, axis=1, mode=\"wrap\")"),
            kUnsupported + "attribute 'mode' is wrap, which is not supported, expected clip or fast");
}

TEST(RelayTake, AnAxisThatIsNotThereIsRefused) {
  const std::string invalid = std::to_string(QPLAN_MODEL_INVALID) + ": take (node 0): ";
  EXPECT_EQ(refused(kIndices, "  take(%x, %i, axis=2)").substr(0, invalid.size()), invalid);
  EXPECT_EQ(refused(kIndices, "  take(%x, %i, axis=\"x\")"), invalid + "attribute 'axis' must be an integer");
  EXPECT_EQ(refused(kData, "  take(%x, mode=\"fast\")").substr(0, invalid.size()), invalid);
}

TEST(RelayGatherNd, TheFirstAxisOfTheIndicesCountsTheDatas) {
  const auto gathered = [](const std::string& shape, const std::vector<int32_t>& indices,
                           const std::string& attrs) {
    return run_text<float>(main_text("%x: Tensor[(2, 2), float32], %i: Tensor[" + shape + ", int32]",
                                     "  gather_nd(%x, %i" + attrs + ")"),
                           Reals{0, 1, 2, 3}, indices);
  };
  EXPECT_EQ(gathered("(2, 2)", {1, 1, 0, 1}, ""), (Reals{2, 3}));
  EXPECT_EQ(gathered("(2, 2)", {1, 1, 0, 1}, ", index_axis=0, batch_dims=0, index_rank=2"), (Reals{2, 3}));
  EXPECT_EQ(gathered("(2, 3)", {1, 1, 0, 0, 1, 0}, ""), (Reals{2, 3, 0}));
  EXPECT_EQ(gathered("(2)", {1, 0}, ""), (Reals{2}));
  EXPECT_EQ(gathered("(2, 2)", {1, 1, 0, 1}, ", index_axis=-1"), (Reals{3, 1}));
}

TEST(RelayGatherNd, TheTextSaysWhichAxisIsMeant) {
  const auto params = [](const std::string& shape) {
    return "%x: Tensor[(2, 2), float32], %i: Tensor[" + shape + ", int32]";
  };
  EXPECT_EQ(printed(params("(2, 3, 4)"), "  gather_nd(%x, %i)"),
            "%0 = transpose(%i, axes=[1, 2, 0])\n%1 = gather_nd(%x, %0, index_axis=-1)\n%1\n");
  EXPECT_EQ(printed(params("(3, 2)"), "  gather_nd(%x, %i, index_axis=-1)"),
            "%0 = gather_nd(%x, %i, index_axis=-1)\n%0\n");
  EXPECT_EQ(refused(params("(3, 2)"), "  gather_nd(%x, %i)"),
            std::to_string(QPLAN_MODEL_INVALID) +
                ": gather_nd: 'indices' is Tensor[(3, 2), int32], expected as its first extent at most 2");
  EXPECT_EQ(refused(params("(2, 2)"), "  gather_nd(%x, %i, index_axis=1)"),
            kUnsupported + "attribute 'index_axis' is 1, which is not supported, expected 0 or -1");
  EXPECT_EQ(refused(params("(2, 2)"), "  gather_nd(%x, %i, batch_dims=1)"),
            kUnsupported + "attribute 'batch_dims' is 1, which is not supported, expected 0");
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
