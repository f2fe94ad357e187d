// Which products the vector variants of batch_matmul leave to the reference because of their scratch memory.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "kernels/batch_matmul/batch_matmul.h"
#include "src/runtime/bind/family.h"

namespace qplan::batch_matmul_scratch_test {
namespace {

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
}  // namespace qplan::batch_matmul_scratch_test
