// softmax16 against softmax in double; networks' exact bytes are in tests/models/.
#include "kernels/softmax/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/random.h"

namespace qplan::softmax16_test {
namespace {

template <typename T>
std::vector<double> textbook(const std::vector<T>& x, double scale) {
  const double most = *std::ranges::max_element(x) * scale;
  std::vector<double> result;
  double sum = 0;
  for (const T value : x) {
    result.push_back(std::exp(value * scale - most));
    sum += result.back();
  }
  for (double& value : result) value /= sum;
  return result;
}

TEST(Softmax16, OfInt8IsNearTheTextbook) {
  testing::Random random(3);
  for (const uint32_t depth : {1u, 2u, 10u, 300u}) {
    std::vector<int8_t> x(depth);
    for (int8_t& value : x) value = static_cast<int8_t>(random.unit() * 256 - 128);
    std::vector<int16_t> out(depth);
    // A scale of 1/16: in units of 2^-26 that is 2^22 = 2^-1 * 2^23.
    Softmax16Args args;
    args.dtype = Dtype::kS8, args.input = x.data(), args.output = out.data(), args.depth = depth;
    args.input_multiplier = 1 << 30, args.input_shift = 23, args.diff_min = -248;
    softmax16_ref::run(args, 0, 1, nullptr);
    const std::vector<double> expected = textbook(x, 1 / 16.0);
    for (uint32_t i = 0; i < depth; ++i) {
      ASSERT_NEAR((out[i] + 32768) / 65536.0, expected[i], 2 / 65536.0)
          << "depth " << depth << ", element " << i;
    }
  }
}

// The tables' functions at their places, without the correction of the packer's.
std::vector<int16_t> table(double (*function)(double), double least, double most) {
  std::vector<int16_t> entries;
  for (int i = 0; i <= 512; ++i)
    entries.push_back(
        static_cast<int16_t>(std::min(function(least + (most - least) * i / 512) * 32768, 32767.0)));
  return entries;
}

TEST(Softmax16, OfInt16IsNearTheTextbook) {
  const std::vector<int16_t> exponentials = table(std::exp, -10, 0);
  const std::vector<int16_t> reciprocals = table([](double x) { return 1 / (1 + x); }, 0, 1);
  testing::Random random(4);
  for (const uint32_t depth : {1u, 2u, 10u, 300u}) {
    std::vector<int16_t> x(depth), out(depth);
    for (int16_t& value : x) value = static_cast<int16_t>(random.unit() * 65536 - 32768);
    Softmax16Args args;
    args.dtype = Dtype::kS16, args.input = x.data(), args.output = out.data(), args.depth = depth;
    // A multiplier of 1: a difference of 65535 is 10.
    args.input_multiplier = 1 << 30, args.input_shift = 1;
    args.exp_table = exponentials.data(), args.reciprocal_table = reciprocals.data();
    softmax16_ref::run(args, 0, 1, nullptr);
    const std::vector<double> expected = textbook(x, 10 / 65535.0);
    for (uint32_t i = 0; i < depth; ++i)
      ASSERT_NEAR(out[i] / 32768.0, expected[i], 1.5e-4 + expected[i] * 2e-3)
          << "depth " << depth << ", element " << i;
  }
}

}  // namespace
}  // namespace qplan::softmax16_test
