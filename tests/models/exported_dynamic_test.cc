// Programs of torch.export that quantise while they run: scales and integers of PyTorch to the bit, a network
// that PT2E quantised dynamically (tests/data/exported/networks.py), and convolutions against integers
// computed by their definition (docs/numerics.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/models/model_session.h"
#include "tests/models/near.h"
#include "tests/packer/import/exported_builder.h"
#include "tests/support/random.h"

namespace qplan::testing::exported_dynamic_test {
namespace {

using namespace pytorch_test;  // the builder
using Bytes = std::vector<uint8_t>;

Bytes read_file(const std::string& name) {
  std::ifstream file("tests/data/exported/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The output of <name>.pt2 for the input at the beginning of <name>.bin, and what PyTorch computes of it.
struct Case {
  Bytes found, expected;
  Case(const std::string& name, size_t inputs, uint32_t isa) {
    const Bytes bytes = read_file(name + ".bin");
    const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(inputs * sizeof(float));
    expected.assign(end, bytes.end());
    ModelSession session(pack_bytes(read_file(name + ".pt2"), "net.pt2"), isa, 1);
    found = session.run({{bytes.begin(), end}}).at(0);
  }
};

constexpr uint32_t kIsas[] = {QPLAN_ISA_AUTO, QPLAN_ISA_REFERENCE};

// Rows of one sign, of both, of zeros, of little numbers: scale and zero point of each for int8 and uint8, of
// whole ranges and less, and what its integers stand for.
TEST(ExportedDynamic, ScalesAndIntegersAreThoseOfPytorch) {
  for (const uint32_t isa : kIsas) {
    const Case c("choices_float", 8 * 24, isa);
    ASSERT_EQ(c.expected.size(), size_t{4} * 8 * 24 * sizeof(float));
    EXPECT_EQ(floats_of(c.found), floats_of(c.expected));
  }
}

TEST(ExportedDynamic, LinearLayersOfPytorch) {
  for (const uint32_t isa : kIsas) {
    const Case c("dense_dynamic", 3 * 24, isa);
    // Some sums nearly cancel, which PyTorch adds in another order.
    EXPECT_EQ(far_element(c.found, c.expected, 0.1f), "");
  }
}

// -- a convolution by its definition, in doubles that are rounded to float32 where an operation is one

float f(double value) { return static_cast<float>(value); }
double wide(double value) { return double{f(value)}; }

struct Convolution {
  int64_t groups = 1;
  bool is_sequence = false;
  static constexpr int64_t kIn = 4, kOut = 4;
  int64_t height() const { return is_sequence ? 1 : 5; }
  int64_t kernel_h() const { return is_sequence ? 1 : 3; }
  int64_t pad_h() const { return is_sequence ? 0 : 1; }
  static constexpr int64_t kWidth = 6, kKernelW = 2, kPadW = 1, kStrideW = 2;
  int64_t out_h() const { return height() + 2 * pad_h() - kernel_h() + 1; }
  static constexpr int64_t kOutW = (kWidth + 2 * kPadW - kKernelW) / kStrideW + 1;
  std::vector<int8_t> weights = {};
  std::vector<float> scales = {0.01f, 0.002f, 0.03f, 0.0075f}, bias = {0.5f, -0.25f, 0.0f, 3.0f};

  Bytes archive(Random& random) {
    const int64_t per_output = kIn / groups * kernel_h() * kKernelW;
    weights = random.full_range<int8_t>(static_cast<size_t>(kOut * per_output));
    std::vector<int64_t> data = {1, kIn, height(), kWidth};
    std::vector<int64_t> kernel = {kOut, kIn / groups, kernel_h(), kKernelW};
    std::vector<int64_t> stride = {1, kStrideW}, padding = {pad_h(), kPadW};
    if (is_sequence) {
      data.erase(data.begin() + 2);
      kernel.erase(kernel.begin() + 2);
      stride = {kStrideW};
      padding = {kPadW};
    }
    ExportedBuilder b;
    b.input("x", data).weight("q", kernel, kChar, bytes_of(weights));
    b.weight("b", {kOut}, kFloat, bytes_of(bias));
    b.constant("ws", {kOut}, kFloat, bytes_of(scales));
    b.constant("wz", {kOut}, kLong, bytes_of<int64_t>({0, 0, 0, 0}));
    const std::string ns = "quantized_decomposed.";
    const auto with_range = [](ExportedBuilder::Arguments arguments) {
      arguments.insert(arguments.end(), {{"quant_min", integer(-128)}, {"quant_max", integer(127)}});
      return arguments;
    };
    ExportedBuilder::Arguments choose = with_range({{"input", tensor("x")}});
    choose.insert(choose.end(), {{"eps", number(0.000244140625)}, {"dtype", dtype(kChar)}});
    b.raw_node("torch.ops." + ns + "choose_qparams.tensor", Json::array({tensor("s"), tensor("z")}), choose);
    const auto quantise = [&](const std::string& from) {
      ExportedBuilder::Arguments arguments =
          with_range({{"input", tensor(from)}, {"scale", tensor("s")}, {"zero_point", tensor("z")}});
      arguments.emplace_back("dtype", dtype(kChar));
      return arguments;
    };
    b.node(ns + "quantize_per_tensor.tensor", "xq", quantise("x"));
    b.node(ns + "dequantize_per_tensor.tensor", "xd", quantise("xq"));
    ExportedBuilder::Arguments of_channels = with_range({{"input", tensor("p_q")},
                                                         {"scales", tensor("c_ws")},
                                                         {"zero_points", tensor("c_wz")},
                                                         {"axis", integer(0)}});
    of_channels.emplace_back("dtype", dtype(kChar));
    b.node(ns + "dequantize_per_channel.default", "wd", of_channels);
    b.node(is_sequence ? "aten.conv1d.default" : "aten.conv2d.default", "y",
           {{"input", tensor("xd")},
            {"weight", tensor("wd")},
            {"bias", tensor("p_b")},
            {"stride", integers(stride)},
            {"padding", integers(padding)},
            {"dilation", integers(is_sequence ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 1})},
            {"groups", integer(groups)}});
    return b.output("y").build();
  }

  std::vector<float> run(const std::vector<float>& x) const {
    const float high = std::max(0.0f, *std::ranges::max_element(x));
    const float low = std::min(0.0f, *std::ranges::min_element(x));
    const float scale = std::max(f(f(double{high} - low) / 255.0), 0.000244140625f);
    const auto point = static_cast<int64_t>(
        std::clamp(-128 - std::nearbyint(wide(double{low} / double{scale})), -128.0, 127.0));
    std::vector<int64_t> q;
    for (const float value : x) {
      const double steps = std::nearbyint(wide(double{value} * double{f(1 / double{scale})}));
      q.push_back(static_cast<int64_t>(std::clamp(steps + static_cast<double>(point), -128.0, 127.0)));
    }
    const int64_t in_group = kIn / groups, out_group = kOut / groups;
    std::vector<float> y;
    for (int64_t o = 0; o < kOut; ++o) {
      for (int64_t row = 0; row < out_h(); ++row) {
        for (int64_t column = 0; column < kOutW; ++column) {
          int64_t sum = 0;
          for (int64_t i = 0; i < in_group; ++i) {
            for (int64_t ky = 0; ky < kernel_h(); ++ky) {
              for (int64_t kx = 0; kx < kKernelW; ++kx) {
                const int64_t at_y = row + ky - pad_h(), at_x = column * kStrideW + kx - kPadW;
                if (at_y < 0 || at_y >= height() || at_x < 0 || at_x >= kWidth) continue;
                const int64_t channel = o / out_group * in_group + i;
                sum += (q[static_cast<size_t>((channel * height() + at_y) * kWidth + at_x)] - point) *
                       weights[static_cast<size_t>(((o * in_group + i) * kernel_h() + ky) * kKernelW + kx)];
              }
            }
          }
          const auto channel = static_cast<size_t>(o);
          const float both = f(double{scales[channel]} * double{scale});
          y.push_back(
              f(double{f(double{f(static_cast<double>(sum))} * double{both})} + double{bias[channel]}));
        }
      }
    }
    return y;
  }
};

void expect_definition(Convolution convolution) {
  Random random(5);
  const Bytes plan = pack_bytes(convolution.archive(random), "net.pt2");
  for (const uint32_t isa : kIsas) {
    ModelSession session(plan, isa, 1);
    for (int run = 0; run < 10; ++run) {
      std::vector<float> x;
      const double middle = 4 * random.unit() - 2, width = 3 * random.unit();
      for (int64_t i = 0; i < Convolution::kIn * convolution.height() * Convolution::kWidth; ++i)
        x.push_back(f(middle + width * (random.unit() - 0.5)));
      Bytes input(x.size() * sizeof(float));
      std::memcpy(input.data(), x.data(), input.size());
      EXPECT_EQ(floats_of(session.run({input}).at(0)), convolution.run(x));
    }
  }
}

TEST(ExportedDynamic, ConvolutionsAreSumsOfIntegers) {
  expect_definition({});
  expect_definition({.groups = 2});
  expect_definition({.groups = 4});
  expect_definition({.is_sequence = true});
}

}  // namespace
}  // namespace qplan::testing::exported_dynamic_test
