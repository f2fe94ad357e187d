#include "kernels/numeric/wide.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/support/random.h"

namespace qplan::testing::wide_test {
namespace {

// Numbers of every number of bits, and those around powers of two.
std::vector<uint64_t> numbers() {
  Random random(15);
  std::vector<uint64_t> result = {0, UINT64_MAX};
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    for (const uint64_t near : {power - 1, power, power + 1, power + power / 2}) result.push_back(near);
    for (int i = 0; i < 20; ++i) {
      const auto any = static_cast<uint64_t>(random.integer(0, INT64_MAX));
      result.push_back(power | (any & (power - 1)));
    }
  }
  return result;
}

TEST(Wide, QuotientsAreThoseOfTheCompiler) {
  for (const uint64_t n : numbers()) {
    for (const uint64_t d : numbers()) {
      if (d == 0 || d >> 63 != 0) continue;
      ASSERT_EQ(wide_quotient_by_bits(n, d), n / d) << n << " / " << d;
      ASSERT_EQ(wide_quotient(n, d), n / d) << n << " / " << d;
    }
  }
}

TEST(Wide, FloatsAreThoseOfTheCompiler) {
  for (const uint64_t n : numbers()) {
    ASSERT_EQ(wide_float_by_words(n), static_cast<float>(n)) << n;
    ASSERT_EQ(wide_float(n), static_cast<float>(n)) << n;
    ASSERT_EQ(wide_float(static_cast<int64_t>(n)), static_cast<float>(static_cast<int64_t>(n))) << n;
  }
}

}  // namespace
}  // namespace qplan::testing::wide_test
