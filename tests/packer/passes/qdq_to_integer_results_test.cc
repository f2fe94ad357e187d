// Lowered functions against the float functions that they replace, computed here in double: within one step
// of the output, and nearly always the same.
#include <cmath>
#include <functional>

#include "tests/packer/passes/rewrite_test_support.h"

namespace qplan::passes_test::qdq_to_integer_results_test {
namespace {

constexpr uint32_t kSeed = 6;

// The function's results for the inputs after the pass, which must leave no float operator.
std::vector<int8_t> lowered_results(const std::string& params, const std::string& body,
                                    const std::vector<ir::ConstantRef>& inputs) {
  const ir::Module module = parse_main(params, body);
  passes::PassContext context;
  const auto result = passes::find_pass("qdq_to_integer")->run(module, module.main(), context);
  if (result == nullptr) return {};
  for (const ir::Node& node : result->nodes()) {
    EXPECT_FALSE(result->type(node.results[0]).dtype.is_float()) << node.op->name;
  }
  const ir::ConstantRef output = evaluate::run_function(*result, inputs).at(0);
  const auto values = output->as<int8_t>();
  return {values.begin(), values.end()};
}

int8_t quantize(double real, double scale, int zero_point) {
  return static_cast<int8_t>(std::clamp(std::nearbyint(real / scale) + zero_point, -128.0, 127.0));
}

void expect_near(const std::vector<int8_t>& found, const std::vector<int8_t>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  size_t different = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_LE(std::abs(found[i] - expected[i]), 1) << "element " << i << ", seed " << kSeed;
    different += found[i] != expected[i] ? 1 : 0;
  }
  EXPECT_LE(different, found.size() / 50 + 1) << "seed " << kSeed;
}

std::string list(const std::vector<float>& values) {
  std::string text;
  for (const float value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "[" + text + "]";
}

TEST(QdqResults, ConvolutionWithPaddingBiasAndActivation) {
  constexpr int kSize = 9, kChannels = 3, kOutputs = 2;
  const ir::TensorType type{ir::kInt8, {1, kSize, kSize, kChannels}};
  const ir::ConstantRef x = random_bytes(type, kSeed);
  const ir::ConstantRef w = random_bytes({ir::kInt8, {kOutputs, 3, 3, kChannels}}, kSeed + 1);
  const std::vector<float> weight_scale = {0.011f, 0.023f}, bias = {1.37f, -3.21f};
  std::string weights;
  for (const int8_t value : w->as<int8_t>()) weights += (weights.empty() ? "" : ", ") + std::to_string(value);

  std::vector<int8_t> expected;
  for (int oy = 0; oy < kSize; ++oy) {
    for (int ox = 0; ox < kSize; ++ox) {
      for (int o = 0; o < kOutputs; ++o) {
        double sum = static_cast<double>(bias[static_cast<size_t>(o)]);
        for (int k = 0; k < 9 * kChannels; ++k) {
          const int iy = oy + k / (3 * kChannels) - 1, ix = ox + k / kChannels % 3 - 1, c = k % kChannels;
          if (iy < 0 || iy >= kSize || ix < 0 || ix >= kSize) continue;
          const int q = x->as<int8_t>()[static_cast<size_t>((iy * kSize + ix) * kChannels + c)];
          sum += (q + 5) * static_cast<double>(0.037f) *
                 w->as<int8_t>()[static_cast<size_t>(o * 9 * kChannels + k)] *
                 static_cast<double>(weight_scale[static_cast<size_t>(o)]);
        }
        expected.push_back(quantize(std::clamp(sum, 0.0, 20.0), static_cast<double>(0.11f), -100));
      }
    }
  }
  expect_near(lowered_results(
                  "%x: Tensor[(1, 9, 9, 3), int8]",
                  "  %0 = qnn.dequantize(%x, 0.037f, -5);\n  %1 = qnn.dequantize(const(Tensor[(2, 3, 3, 3), "
                  "int8], [" +
                      weights + "]), const(Tensor[(2), float32], " + list(weight_scale) +
                      "), 0, axis=0);\n  %2 = nn.conv2d(%0, %1, padding=[1, 1], data_layout=\"NHWC\", "
                      "kernel_layout=\"OHWI\");\n  %3 = nn.bias_add(%2, const(Tensor[(2), float32], " +
                      list(bias) +
                      "), axis=3);\n  %4 = clip(%3, a_min=0f, a_max=20f);\n  qnn.quantize(%4, 0.11f, -100, "
                      "contract=\"f32e\")\n",
                  {x}),
              expected);
}

TEST(QdqResults, FullyConnectedLayer) {
  const ir::ConstantRef x = random_bytes({ir::kInt8, {1, 5}}, kSeed);
  const std::vector<int> w = {12, -100, 55, 127, -3, 90, 2, -77, 31, 8};
  const std::vector<double> b = {0.5, -1.25};
  std::vector<int8_t> expected;
  for (size_t o = 0; o < 2; ++o) {
    double sum = b[o];
    for (size_t k = 0; k < 5; ++k) {
      sum +=
          (x->as<int8_t>()[k] - 9) * static_cast<double>(0.05f) * w[o * 5 + k] * static_cast<double>(0.02f);
    }
    expected.push_back(quantize(sum, static_cast<double>(0.4f), 3));
  }
  expect_near(lowered_results(
                  "%x: Tensor[(1, 5), int8]",
                  "  %0 = qnn.dequantize(%x, 0.05f, 9);\n  %1 = qnn.dequantize(const(Tensor[(2, 5), int8], "
                  "[12, -100, 55, 127, -3, 90, 2, -77, 31, 8]), 0.02f, 0);\n  %2 = nn.dense(%0, %1);\n"
                  "  %3 = nn.bias_add(%2, const(Tensor[(2), float32], [0.5, -1.25]));\n"
                  "  qnn.quantize(%3, 0.4f, 3, contract=\"f32e\")\n",
                  {x}),
              expected);
}

// Factors, one of them negative, and addends after a convolution.
TEST(QdqResults, FoldedBatchNormalisation) {
  const std::string params = "%x: Tensor[(1, 8, 8, 2), int8]";
  const ir::ConstantRef x = random_bytes({ir::kInt8, {1, 8, 8, 2}}, kSeed);
  const double weights[2][2] = {{50, -70}, {127, 33}}, divisor[] = {0.4, 1.6};
  const double gamma[] = {0.9, -1.3}, beta[] = {0.2, -0.7}, mean[] = {0.1, 0.3}, variance[] = {0.25, 4};
  std::vector<int8_t> expected;
  for (size_t i = 0; i < 64; ++i) {
    for (size_t o = 0; o < 2; ++o) {
      double sum = 0;
      for (size_t c = 0; c < 2; ++c) sum += (x->as<int8_t>()[i * 2 + c] - 4) * 0.04 * weights[o][c] * 0.015;
      const double normal = (sum / divisor[o] - mean[o]) / std::sqrt(variance[o] + 0.001);
      expected.push_back(quantize(normal * gamma[o] + beta[o], 0.07, 11));
    }
  }
  const std::string lowered =
      run_passes({"fold_batch_norm", "qdq_to_integer", "dead_code"}, params,
                 "  %0 = qnn.dequantize(%x, 0.04f, 4);\n"
                 "  %1 = qnn.dequantize(const(Tensor[(2, 1, 1, 2), int8], [50, -70, 127, 33]), 0.015f, 0);\n"
                 "  %2 = nn.conv2d(%0, %1, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
                 "  %3 = divide(%2, const(Tensor[(2), float32], [0.4, 1.6]));\n"
                 "  %4 = nn.batch_norm(%3, const(Tensor[(2), float32], [0.9, -1.3]), const(Tensor[(2), "
                 "float32], [0.2, -0.7]), "
                 "const(Tensor[(2), float32], [0.1, 0.3]), const(Tensor[(2), float32], [0.25, 4]), axis=3, "
                 "epsilon=0.001f);\n"
                 "  qnn.quantize(%4, 0.07f, 11, contract=\"f32e\")\n");
  const ir::ConstantRef output =
      evaluate::run_function(parse_main(params, "  " + lowered).main(), {{x}}).at(0);
  expect_near({output->as<int8_t>().begin(), output->as<int8_t>().end()}, expected);
}

TEST(QdqResults, ElementwiseOperators) {
  const ir::TensorType type{ir::kInt8, {1, 64}};
  const ir::ConstantRef x = random_bytes(type, kSeed), y = random_bytes(type, kSeed + 1);
  const std::pair<const char*, std::function<double(double, double)>> operators[] = {
      {"add", std::plus<>()}, {"subtract", std::minus<>()}, {"multiply", std::multiplies<>()}};
  for (const auto& [name, compute] : operators) {
    std::vector<int8_t> expected;
    for (size_t i = 0; i < 64; ++i) {
      expected.push_back(quantize(compute((x->as<int8_t>()[i] - 7) * static_cast<double>(0.03f),
                                          (y->as<int8_t>()[i] + 20) * static_cast<double>(0.05f)),
                                  static_cast<double>(0.09f), -4));
    }
    SCOPED_TRACE(name);
    expect_near(
        lowered_results("%x: Tensor[(1, 64), int8], %y: Tensor[(1, 64), int8]",
                        std::string("  %0 = qnn.dequantize(%x, 0.03f, 7);\n  %1 = qnn.dequantize(%y, 0.05f, "
                                    "-20);\n  %2 = ") +
                            name + "(%0, %1);\n  qnn.quantize(%2, 0.09f, -4, contract=\"f32e\")\n",
                        {x, y}),
        expected);
  }
}

TEST(QdqResults, AveragesOverWindowsAndAxes) {
  const ir::ConstantRef x = random_bytes({ir::kInt8, {1, 4, 4, 2}}, kSeed);
  std::vector<int8_t> expected;
  for (size_t c = 0; c < 2; ++c) {
    double sum = 0;
    for (size_t i = 0; i < 16; ++i) sum += (x->as<int8_t>()[i * 2 + c] - 7) * static_cast<double>(0.03f);
    expected.push_back(quantize(sum / 16, static_cast<double>(0.013f), -4));
  }
  const std::string head = "  %0 = qnn.dequantize(%x, 0.03f, 7);\n  %1 = ";
  const std::string tail = ";\n  qnn.quantize(%1, 0.013f, -4, contract=\"f32e\")\n";
  const std::string params = "%x: Tensor[(1, 4, 4, 2), int8]";
  expect_near(
      lowered_results(params, head + "nn.avg_pool2d(%0, pool_size=[4, 4], layout=\"NHWC\")" + tail, {x}),
      expected);
  expect_near(lowered_results(params, head + "mean(%0, axis=[1, 2])" + tail, {x}), expected);
}

}  // namespace
}  // namespace qplan::passes_test::qdq_to_integer_results_test
