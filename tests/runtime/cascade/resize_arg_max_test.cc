// Kernels that compute a cascade of resize_bilinear and arg_max at once, against the two layers' references.
#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "tests/runtime/cascade/random_cascade.h"
#include "tests/support/variants.h"

namespace qplan::resize_arg_max_test {
namespace {

using testing::CascadeBuilder;

std::vector<const KernelVariant*> variants() {
  std::vector<const KernelVariant*> variants = testing::variants_of(kCascadeFamily);
  std::erase_if(variants, [](const KernelVariant* variant) {
    return std::string_view(variant->name).substr(0, 15) != "resize_arg_max_";
  });
  return variants;
}

struct Labels {
  int64_t batch, height, width, channels;
  uint32_t rows, columns;
  bool align_corners, half_pixel_centers;
  uint8_t index_bits;
};

class LabelCascade : public CascadeBuilder {
 public:
  LabelCascade(uint64_t seed, const Labels& labels)
      : CascadeBuilder(seed, {labels.batch, labels.height, labels.width, labels.channels}) {
    add_resize(labels.rows, labels.columns, labels.align_corners, labels.half_pixel_centers);
    add_arg_max(labels.index_bits);
  }

  // Bytes with few values, so that several channels are the largest.
  void use_few_values() {
    const StepView step = cascade(0);
    testing::Buffer<uint8_t>& bytes = input(step, 0);
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes.data()[i] = random_.pick<uint8_t>({0, 1, 0x7f, 0x80, 0x81, 0xff});
    }
  }
};

class ResizeArgMax : public ::testing::TestWithParam<const KernelVariant*> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ResizeArgMax);
INSTANTIATE_TEST_SUITE_P(Variants, ResizeArgMax, ::testing::ValuesIn(variants()), testing::variant_test_name);

Refusal refusal_of(const KernelVariant& variant, CascadeBuilder* cascade) {
  const StepView step = cascade->cascade(0);
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  Error error;
  EXPECT_EQ(kCascadeFamily.bind(step, true, args, &error), QPLAN_OK) << error.text();
  return variant.refusal(args);
}

// Whole and in pieces.
void expect_same(const KernelVariant& variant, LabelCascade* cascade, uint64_t seed) {
  const std::vector<uint8_t> expected = cascade->expected();
  const StepView step = cascade->cascade(0);
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  Error error;
  ASSERT_EQ(kCascadeFamily.bind(step, true, args, &error), QPLAN_OK) << error.text();
  ASSERT_TRUE(variant.accepts(args));
  cascade->forget_output();
  testing::run_variant(variant, args);
  ASSERT_EQ(cascade->output(), expected);
  cascade->forget_output();
  testing::run_variant_in_pieces(variant, args, seed);
  ASSERT_EQ(cascade->output(), expected) << "in pieces";
}

TEST_P(ResizeArgMax, GivesWhatTheTwoGiveOneAfterTheOther) {
  const KernelVariant& variant = *GetParam();
  QPLAN_SKIP_UNLESS_RUNNABLE(variant);
  // Output 0 at input 0, both ends at both ends, or half an output before (even scales alone).
  enum class Positions { kBegin, kCorners, kCentres };
  uint64_t seed = 0, num_centres = 0;
  for (const int64_t channels : {1, 2, 7, 21, 32, 33, 70, 256}) {
    for (const uint32_t times : {8, 16}) {
      for (const uint32_t times_high : {1, 2, 4, 8, 16}) {
        for (const Positions positions : {Positions::kBegin, Positions::kCorners, Positions::kCentres}) {
          const bool corners = positions == Positions::kCorners, centres = positions == Positions::kCentres;
          if (centres && (times == 16 || times_high == 16)) continue;
          for (const int64_t batch : {1, 2}) {
            ++seed;
            num_centres += centres ? 1 : 0;
            const int64_t height = 1 + static_cast<int64_t>(seed % 3),
                          width = 2 + static_cast<int64_t>(seed % 4);
            const auto to = [&](int64_t from, uint32_t by) {
              return static_cast<uint32_t>(corners ? (from - 1) * by + 1 : from * by);
            };
            const auto index_bits = static_cast<uint8_t>(seed % 5 < 2 ? 32 : 64);
            const Labels labels = {
                batch,   height,  width,     channels, to(height, times_high), to(width, times),
                corners, centres, index_bits};
            SCOPED_TRACE(seed);
            for (const bool few : {false, true}) {
              LabelCascade cascade(seed, labels);
              if (few) cascade.use_few_values();
              expect_same(variant, &cascade, seed);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(num_centres, 0u);
}

// By the integer rule the scale is rounded, and the last element may be that of more outputs than the others.
TEST_P(ResizeArgMax, GivesTheLastElementToAllOutputsAfterIt) {
  const KernelVariant& variant = *GetParam();
  QPLAN_SKIP_UNLESS_RUNNABLE(variant);
  uint32_t num_taken = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    LabelCascade cascade(seed, {1, 10, 10, 21, 161, 161, false, false, 64});
    if (refusal_of(variant, &cascade) == Refusal::kScale) continue;  // uint8, by the rule in float32
    ++num_taken;
    expect_same(variant, &cascade, seed);
  }
  EXPECT_GT(num_taken, 0u);
}

TEST_P(ResizeArgMax, RefusesOtherScalesAndCascades) {
  const KernelVariant& variant = *GetParam();
  const auto labels = [](uint32_t columns, int64_t channels) {
    return LabelCascade(1, {1, 3, 3, channels, 33, columns, true, false, 64});
  };
  LabelCascade sixteen = labels(33, 21), four = labels(9, 21), three = labels(7, 21), many = labels(33, 257);
  EXPECT_EQ(refusal_of(variant, &sixteen), Refusal::kNone);
  EXPECT_EQ(refusal_of(variant, &four), Refusal::kTooSmall);
  EXPECT_EQ(refusal_of(variant, &three), Refusal::kScale);
  EXPECT_EQ(refusal_of(variant, &many), Refusal::kTooLarge);
  CascadeBuilder longer(1, {1, 3, 3, 21});
  longer.add_resize(33, 33, true, false);
  longer.add_table();
  longer.add_arg_max(64);
  EXPECT_EQ(refusal_of(variant, &longer), Refusal::kLayers);
  CascadeBuilder of_table(1, {1, 3, 3, 21});
  of_table.add_table();
  of_table.add_arg_max(64);
  EXPECT_EQ(refusal_of(variant, &of_table), Refusal::kLayers);
}

}  // namespace
}  // namespace qplan::resize_arg_max_test
