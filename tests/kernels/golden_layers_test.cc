// Layers of two real networks in isolation: each kernel gets the tensor that TFLite's reference kernels gave
// it and must give theirs, byte for byte. Scales are the models' own; the packer's formulas (docs/numerics/)
// make the parameters.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "kernels/numeric/requantize.h"
#include "src/runtime/bind/family.h"
#include "tests/support/step_runner.h"

namespace qplan::golden_layers_test {
namespace {

using testing::TestStep;

std::filesystem::path tensors_of(const std::string& model) {
  const char* shared = std::getenv("QPLAN_SHARED");
  return std::filesystem::path(shared != nullptr ? shared : "../shared") / "golden" / model / "cat" / "all";
}

template <typename T>
std::vector<T> read_tensor(const std::string& model, int tensor) {
  std::string name = std::to_string(tensor);
  name = "tensor" + std::string(4 - name.size(), '0') + name + ".bin";
  std::ifstream file(tensors_of(model) / name, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return std::vector<T>(bytes.begin(), bytes.end());
}

#define QPLAN_SKIP_WITHOUT_TENSORS(model)                                                                \
  if (!std::filesystem::is_directory(tensors_of(model))) {                                               \
    GTEST_SKIP() << "no tensors in " << tensors_of(model) << "; set QPLAN_SHARED to the data directory"; \
  }                                                                                                      \
  static_assert(true, "the macro wants a semicolon")

const std::string kMobilenet = "mobilenet_v1_0.25_128_quant";
const std::string kResnet = "pretrainedResnet_quant";

// Runs every variant of the family that this machine has.
template <typename T>
void expect_output(TestStep& step, const KernelFamily& family, const std::vector<T>& expected) {
  ASSERT_FALSE(expected.empty());
  for (const KernelVariant* variant : testing::variants_of(family)) {
    if (!testing::can_run(*variant) || !testing::run_step(step, family, *variant, 1)) continue;
    EXPECT_EQ(testing::output_values<T>(step), expected) << variant->name;
  }
}

template <typename T>
void expect_average_pool(const std::string& model, int from, int to, uint32_t extent, int64_t channels) {
  TestStep step(kKernel_avg_pool2d);
  step.input<T>({1, extent, extent, channels}, read_tensor<T>(model, from));
  step.output<T>({1, 1, 1, channels});
  step.finish(
      format::KernelParams_Pool2dParams,
      format::CreatePool2dParams(step.builder(), format::Contract_TFL2, extent, extent, extent, extent, 0, 0,
                                 std::numeric_limits<T>::min(), std::numeric_limits<T>::max())
          .Union());
  expect_output(step, kAvgPool2dFamily, read_tensor<T>(model, to));
}

template <typename T>
void expect_softmax(const std::string& model, int from, int to, int64_t depth, float scale) {
  TestStep step(kKernel_softmax);
  step.input<T>({1, depth}, read_tensor<T>(model, from));
  step.output<T>({1, depth});
  const QuantizedMultiplier q =
      quantize_multiplier(std::min(static_cast<double>(scale) * (1 << 26), 2147483647.0));
  step.finish(format::KernelParams_SoftmaxParams,
              format::CreateSoftmaxParams(step.builder(), format::Contract_TFL2, q.multiplier, q.shift,
                                          -static_cast<int32_t>((int64_t{31} << 26) >> q.shift))
                  .Union());
  expect_output(step, kSoftmaxFamily, read_tensor<T>(model, to));
}

struct Operand {
  int tensor;
  float scale;
  int32_t zero_point;
};

// With a fused relu whose zero is the output's zero point, -128.
void expect_add(std::vector<int64_t> shape, const Operand& a, const Operand& b, const Operand& output) {
  TestStep step(kKernel_add);
  step.input<int8_t>(shape, read_tensor<int8_t>(kResnet, a.tensor));
  step.input<int8_t>(shape, read_tensor<int8_t>(kResnet, b.tensor));
  step.output<int8_t>(shape);
  const double twice_max = 2.0 * std::max(a.scale, b.scale);
  const QuantizedMultiplier qa = quantize_multiplier(a.scale / twice_max);
  const QuantizedMultiplier qb = quantize_multiplier(b.scale / twice_max);
  const QuantizedMultiplier q =
      quantize_multiplier(twice_max / ((1 << 20) * static_cast<double>(output.scale)));
  step.finish(format::KernelParams_AddParams,
              format::CreateAddParams(step.builder(), format::Contract_TFL2, 20, a.zero_point, qa.multiplier,
                                      qa.shift, b.zero_point, qb.multiplier, qb.shift, output.zero_point,
                                      q.multiplier, q.shift, -128, 127)
                  .Union());
  expect_output(step, kAddFamily, read_tensor<int8_t>(kResnet, output.tensor));
}

TEST(GoldenLayers, AveragePoolOfBothDtypes) {
  QPLAN_SKIP_WITHOUT_TENSORS(kMobilenet);
  expect_average_pool<uint8_t>(kMobilenet, 83, 84, 4, 256);
  expect_average_pool<int8_t>(kResnet, 33, 34, 8, 64);
}

TEST(GoldenLayers, SoftmaxOfBothDtypes) {
  QPLAN_SKIP_WITHOUT_TENSORS(kMobilenet);
  expect_softmax<uint8_t>(kMobilenet, 87, 88, 1001, 0.13083283603191376f);
  expect_softmax<int8_t>(kResnet, 36, 37, 10, 0.17185351252555847f);
}

TEST(GoldenLayers, AddOfDifferentScales) {
  QPLAN_SKIP_WITHOUT_TENSORS(kResnet);
  expect_add({1, 32, 32, 16}, {22, 0.039393551647663116f, -128}, {24, 0.10419496148824692f, 4},
             {25, 0.050945673137903214f, -128});
  expect_add({1, 16, 16, 32}, {28, 0.044761426746845245f, -17}, {27, 0.11311884224414825f, 4},
             {29, 0.0532362163066864f, -128});
  expect_add({1, 8, 8, 64}, {32, 0.08385830372571945f, 38}, {31, 0.21724364161491394f, -2},
             {33, 0.1270691454410553f, -128});
}

}  // namespace
}  // namespace qplan::golden_layers_test
