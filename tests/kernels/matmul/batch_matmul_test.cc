// batch_matmul: every variant has the bytes of the sums written out here in 64 bits; under F32E with a scale
// that is a power of two, whose rounding needs no other arithmetic, and under TFL2 those of the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/matmul/matmul.h"
#include "src/runtime/bind/family.h"
#include "tests/support/nd.h"
#include "tests/support/step_runner.h"

namespace qplan::batch_matmul_test {
namespace {

using testing::ArgsStorage;
using testing::Extents;
using testing::Random;
using testing::TestStep;

struct Matmul {
  Extents a, b, output;
  bool transpose_b = false, is_signed = true;
  int32_t a_zero = 0, b_zero = 0, out_zero = 0, least = 0, most = 0;
  std::vector<int32_t> x, y;  // numbers of the dtype

  static Matmul random(uint64_t seed) {
    Random random(seed);
    Matmul matmul;
    const Extents batches = testing::random_shape(random, static_cast<size_t>(random.integer(0, 3)), 3);
    matmul.transpose_b = random.chance(0.5);
    matmul.is_signed = random.chance(0.5);
    matmul.a = testing::random_broadcast_source(random, batches);
    matmul.b = testing::random_broadcast_source(random, batches);
    matmul.output = testing::broadcast_shape(matmul.a, matmul.b);
    const int64_t m = random.integer(1, seed % 5 == 0 ? 150 : 9);
    const int64_t k = random.chance(0.1) ? 1 : random.integer(1, 70);
    const int64_t n = random.chance(0.1) ? 1 : random.integer(1, 40);
    matmul.a.insert(matmul.a.end(), {m, k});
    matmul.b.insert(matmul.b.end(), {matmul.transpose_b ? n : k, matmul.transpose_b ? k : n});
    matmul.output.insert(matmul.output.end(), {m, n});
    const int32_t low = matmul.is_signed ? -128 : 0;
    const auto number = [&] { return static_cast<int32_t>(random.integer(low, low + 255)); };
    matmul.a_zero = seed % 3 == 0 ? low : number();
    matmul.b_zero = seed % 4 == 0 ? low + 128 : number();
    matmul.out_zero = number();
    matmul.least = random.chance(0.3) ? std::min(matmul.out_zero, number()) : low;
    matmul.most = random.chance(0.3) ? std::max(matmul.out_zero, number()) : low + 255;
    for (int64_t i = 0; i < testing::num_elements(matmul.a); ++i) matmul.x.push_back(number());
    for (int64_t i = 0; i < testing::num_elements(matmul.b); ++i) matmul.y.push_back(number());
    return matmul;
  }

  // Batches broadcast, the two last axes do not.
  std::vector<int64_t> sums() const {
    const auto batch_axes = [](const Extents& extents) {
      return Extents(extents.begin(), extents.end() - 2);
    };
    const Extents batches_a = batch_axes(a), batches_b = batch_axes(b);
    const int64_t num_k = a.back(), num_n = output.back(), num_m = output[output.size() - 2];
    std::vector<int64_t> all;
    testing::for_each_position(output, [&](const Extents& at) {
      const int64_t row = at[at.size() - 2], column = at.back();
      const int64_t first_a = testing::broadcast_index(batches_a, batch_axes(at)) * num_m * num_k;
      const int64_t first_b = testing::broadcast_index(batches_b, batch_axes(at)) * num_k * num_n;
      int64_t sum = 0;
      for (int64_t i = 0; i < num_k; ++i) {
        const int64_t at_a = first_a + row * num_k + i;
        const int64_t at_b = first_b + (transpose_b ? column * num_k + i : i * num_n + column);
        sum += int64_t{x[static_cast<size_t>(at_a)] - a_zero} * (y[static_cast<size_t>(at_b)] - b_zero);
      }
      all.push_back(sum);
    });
    return all;
  }

  template <typename T>
  void add_tensors(TestStep& step) const {
    step.input<T>(a, std::vector<T>(x.begin(), x.end()));
    step.input<T>(b, std::vector<T>(y.begin(), y.end()));
    step.output<T>(output);
  }
  void make(TestStep& step, format::Contract contract, int32_t shift, float scale) const {
    if (is_signed) {
      add_tensors<int8_t>(step);
    } else {
      add_tensors<uint8_t>(step);
    }
    step.finish(format::KernelParams_BatchMatmulParams,
                format::CreateBatchMatmulParams(step.builder(), a_zero, b_zero, out_zero, 1518500250, shift,
                                                least, most, transpose_b, contract, scale)
                    .Union());
  }
};

class BatchMatmulVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(All, BatchMatmulVariant,
                         ::testing::ValuesIn(testing::variants_of(kBatchMatmulFamily)),
                         testing::variant_test_name);

TEST_P(BatchMatmulVariant, UnderF32eRoundsTheExactSum) {
  size_t num_run = 0;
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    const Matmul matmul = Matmul::random(seed);
    TestStep step(kKernel_batch_matmul);
    matmul.make(step, format::Contract_F32E, 0, 0x1p-9f);
    ArgsStorage args;
    Error error;
    ASSERT_EQ(step.bind(kBatchMatmulFamily, &args, &error), QPLAN_OK) << error.text();
    if (!GetParam()->accepts(args.bytes)) continue;  // few rows
    ASSERT_TRUE(testing::run_step(step, kBatchMatmulFamily, *GetParam(), seed));
    ++num_run;
    const std::vector<int64_t> sums = matmul.sums();
    const std::vector<uint8_t> found = testing::output_values<uint8_t>(step);
    ASSERT_EQ(found.size(), sums.size());
    for (size_t i = 0; i < sums.size(); ++i) {
      const double rounded = std::nearbyint(static_cast<double>(sums[i]) * 0x1p-9) + matmul.out_zero;
      const auto expected = static_cast<int32_t>(
          std::clamp(rounded, static_cast<double>(matmul.least), static_cast<double>(matmul.most)));
      ASSERT_EQ(found[i], static_cast<uint8_t>(expected)) << "element " << i << ", seed " << seed;
    }
  }
  EXPECT_GE(num_run, 100u);
}

TEST_P(BatchMatmulVariant, UnderTfl2EqualsTheReference) {
  const KernelVariant& reference = kBatchMatmulFamily.variants[kBatchMatmulFamily.num_variants - 1];
  size_t num_run = 0;
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    const Matmul matmul = Matmul::random(seed);
    std::vector<std::vector<uint8_t>> outputs;
    for (const KernelVariant* variant : {&reference, GetParam()}) {
      TestStep step(kKernel_batch_matmul);
      matmul.make(step, format::Contract_TFL2, -static_cast<int32_t>(seed % 11), 0.0f);
      if (testing::run_step(step, kBatchMatmulFamily, *variant, seed))
        outputs.push_back(testing::output_values<uint8_t>(step));
    }
    ASSERT_FALSE(outputs.empty()) << "the reference takes everything";
    if (outputs.size() < 2) continue;  // few rows
    ++num_run;
    ASSERT_EQ(outputs[1], outputs[0]) << "seed " << seed;
  }
  EXPECT_GE(num_run, 100u);
}

// Three products of 2^30 are more than 32 bits hold. The multiplier is rounded to 16 bits, and so is the
// result once, ties upwards.
TEST(BatchMatmulOfInt16, SumsHave64Bits) {
  constexpr int32_t kMultiplier = 1518500250, kReduced = 23170, kShift = -17;
  TestStep step(kKernel_batch_matmul);
  step.input<int16_t>({1, 4}, {-32768, -32768, -32768, 5});
  step.input<int16_t>({4, 2}, {-32768, 100, -32768, 200, -32768, 300, 7, -4});
  step.output<int16_t>({1, 2});
  step.finish(format::KernelParams_BatchMatmulParams,
              format::CreateBatchMatmulParams(step.builder(), 0, 0, 0, kMultiplier, kShift, INT16_MIN,
                                              INT16_MAX, false, format::Contract_TFL2, 0.0f)
                  .Union());
  const KernelVariant& reference = kBatchMatmulFamily.variants[kBatchMatmulFamily.num_variants - 1];
  ASSERT_TRUE(testing::run_step(step, kBatchMatmulFamily, reference, 1));
  std::vector<int16_t> expected;
  for (const int64_t sum : {3 * (int64_t{1} << 30) + 35, int64_t{-32768 * 600 - 20}}) {
    const double real = static_cast<double>(sum * kReduced) / 0x1p32;
    expected.push_back(static_cast<int16_t>(std::floor(real + 0.5)));
  }
  EXPECT_EQ(testing::output_values<int16_t>(step), expected);
}

// ---- Which products the vector variants leave to the reference because of their scratch memory. ----

constexpr size_t kMostScratch = size_t{4} << 20;

BatchMatmulArgs product(uint32_t m, uint32_t k, uint32_t n) {
  BatchMatmulArgs args;
  args.dtype = Dtype::kS8;
  args.m = m;
  args.k = k;
  args.n = n;
  args.a_zero_point = args.b_zero_point = INT8_MIN;
  return args;
}

void expect_refusal(const BatchMatmulArgs& args, Refusal expected) {
  for (uint32_t i = 0; i < kBatchMatmulFamily.num_variants; ++i) {
    const KernelVariant& variant = kBatchMatmulFamily.variants[i];
    if (variant.isa == QPLAN_ISA_REFERENCE) continue;
    EXPECT_EQ(variant.refusal(&args), expected) << variant.name;
    if (expected == Refusal::kNone) {
      EXPECT_LE(variant.scratch_bytes(&args), kMostScratch) << variant.name;
    }
  }
}

TEST(BatchMatmulScratch, LimitsThePackedMatrix) {
  expect_refusal(product(8, 1024, 2048), Refusal::kNone);  // 2 MiB
  expect_refusal(product(8, 1024, 4096), Refusal::kTooLarge);
}

// 16 bytes of constants a column, more than the four that are packed.
TEST(BatchMatmulScratch, LimitsTheConstantsOfColumns) {
  expect_refusal(product(8, 4, 200'000), Refusal::kNone);
  expect_refusal(product(8, 4, 300'000), Refusal::kTooLarge);
}

// 64 rows of k bytes, as many as four times the packed matrix.
TEST(BatchMatmulScratch, LimitsTheCopiesOfRows) {
  expect_refusal(product(64, 50'001, 16), Refusal::kNone);
  expect_refusal(product(64, 60'001, 16), Refusal::kTooLarge);
  expect_refusal(product(64, 60'000, 16), Refusal::kNone);  // read as they are
  expect_refusal(product(4, 60'001, 16), Refusal::kNone);
}

TEST(BatchMatmulScratch, DoesNotWrapForTheLargestExtents) {
  expect_refusal(product(INT32_MAX, (1u << 30) - 1, INT32_MAX), Refusal::kTooLarge);
}

}  // namespace
}  // namespace qplan::batch_matmul_test
