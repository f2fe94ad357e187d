// Scales found in weights of float32: what is found gives every weight to the bit, in the fewest bytes.
#include "src/packer/layer/weight_only.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/random.h"

namespace qplan::testing::weight_only_test {
namespace {

using layer::WeightOnly;

struct Form {
  uint32_t bits;
  int64_t block;
  int32_t least, most;  // integers
  bool has_negative_scales = false;
};

// [num_o, num_k], with a scale for each block of a row.
std::vector<float> random_weights(Random& random, int64_t num_o, int64_t num_k, const Form& form) {
  std::vector<float> weights;
  for (int64_t o = 0; o < num_o; ++o) {
    float scale = 0;
    for (int64_t k = 0; k < num_k; ++k) {
      if (k % form.block == 0) {
        scale = static_cast<float>(std::exp2(random.unit() * 30 - 20));
        if (form.has_negative_scales && random.chance(0.5)) scale = -scale;
      }
      weights.push_back(static_cast<float>(random.integer(form.least, form.most)) * scale);
    }
  }
  return weights;
}

// The weight that the kernel makes of the form (kernels/float/weight_only_dense.h).
float weight_at(const WeightOnly& form, int64_t num_k, int64_t o, int64_t k) {
  const int64_t steps = form.bits == 4 ? (num_k + 1) / 2 : num_k, num_scales = (num_k - 1) / form.block + 1;
  const int64_t step = form.bits == 4 ? k / 2 : k;
  const uint8_t byte = form.weights[static_cast<size_t>((o / 16 * steps + step) * 16 + o % 16)];
  const int32_t q = form.bits == 8 ? byte : byte >> (k % 2 * 4) & 15;
  const auto of = static_cast<size_t>((o / 16 * num_scales + k / form.block) * 16 + o % 16);
  return static_cast<float>(q - form.zeros[of]) * form.scales[of];
}

void expect_form(const std::vector<float>& weights, int64_t num_o, uint32_t bits, int64_t block,
                 const std::string& what) {
  const int64_t num_k = std::ssize(weights) / num_o;
  const auto form = layer::as_weight_only(weights, static_cast<size_t>(num_o));
  ASSERT_TRUE(form.has_value()) << what;
  EXPECT_EQ(form->bits, bits) << what;
  EXPECT_EQ(form->block, block) << what;
  for (int64_t o = 0; o < num_o; ++o) {
    for (int64_t k = 0; k < num_k; ++k)
      ASSERT_EQ(weight_at(*form, num_k, o, k), weights[static_cast<size_t>(o * num_k + k)])
          << what << " " << o << " " << k;
  }
}

TEST(WeightOnly, ScalesOfRowsAndOfBlocksAreFound) {
  const Form forms[] = {{4, 1 << 20, -8, 7}, {4, 32, -8, 7, true},    {4, 128, -3, 12},
                        {4, 16, 0, 15},      {8, 1 << 20, -127, 127}, {8, 64, -128, 127, true},
                        {8, 32, -30, 225},   {8, 256, 0, 255}};
  for (uint64_t seed = 1; seed <= 20 && !HasFatalFailure(); ++seed) {
    Random random(seed);
    for (const Form& form : forms) {
      const int64_t num_k = 512 + random.integer(0, 3), num_o = random.integer(17, 20);
      const auto weights = random_weights(random, num_o, num_k, form);
      const int64_t block = form.block > num_k ? num_k + num_k % 2 : form.block;
      expect_form(weights, num_o, form.bits, block,
                  std::to_string(seed) + ": block of " + std::to_string(form.block));
    }
  }
}

TEST(WeightOnly, RowsOfZerosHaveAnyScale) {
  expect_form(std::vector<float>(3 * 40), 3, 4, 40, "zeros");
  std::vector<float> one(3 * 40);
  one[50] = 0.37f;
  expect_form(one, 3, 4, 40, "one weight");
}

TEST(WeightOnly, FormsThatSaveLittleAreLeft) {
  Random random(1);
  const Form form = {8, 1 << 20, -127, 127};
  EXPECT_FALSE(layer::as_weight_only(random_weights(random, 4096, 1, form), 4096).has_value());
  EXPECT_TRUE(layer::as_weight_only(random_weights(random, 512, 8, form), 512).has_value());
}

TEST(WeightOnly, WeightsThatAreNoSuchIntegersAreLeft) {
  Random random(1);
  std::vector<float> reals(64 * 16);
  for (float& weight : reals) weight = static_cast<float>(random.unit() - 0.5);
  EXPECT_FALSE(layer::as_weight_only(reals, 16).has_value());
  const Form form = {8, 1 << 20, -127, 127};
  std::vector<float> weights = random_weights(random, 16, 64, form);
  weights[777] = std::nextafter(weights[777], 1e30f);  // one bit off
  const auto found = layer::as_weight_only(weights, 16);
  EXPECT_FALSE(found.has_value() && found->block > 64);
  if (found) expect_form(weights, 16, found->bits, found->block, "one bit off");
  weights[777] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(layer::as_weight_only(weights, 16).has_value());
  weights[777] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(layer::as_weight_only(weights, 16).has_value());
  EXPECT_FALSE(
      layer::as_weight_only(std::vector<float>(64, 1e-40f), 1).has_value());  // its scale would be subnormal
}

}  // namespace
}  // namespace qplan::testing::weight_only_test
