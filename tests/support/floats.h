// Random float32 and how tests compare them.
#ifndef QPLAN_TESTS_SUPPORT_FLOATS_H_
#define QPLAN_TESTS_SUPPORT_FLOATS_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace qplan::testing {

// kPlain: within +-4; kWide: over all exponents, subnormal numbers and both zeros; kSpecial: kPlain with
// infinities and NaN among them.
enum class Floats { kPlain, kWide, kSpecial };

inline float random_float(Random& random, Floats kind) {
  const auto plain = static_cast<float>(random.unit() * 8 - 4);
  if (kind == Floats::kPlain) return plain;
  if (kind == Floats::kSpecial) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const int64_t which = random.integer(0, 19);
    return which == 0   ? kInfinity
           : which == 1 ? -kInfinity
           : which == 2 ? std::numeric_limits<float>::quiet_NaN()
                        : plain;
  }
  const auto bits = static_cast<uint32_t>(random.integer(0, UINT32_MAX));
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  const int64_t which = random.integer(0, 9);
  if (which == 0 || !std::isfinite(value)) return which % 2 == 0 ? 0.0f : -0.0f;
  if (which == 1) return value * 1e-38f * 1e-5f;
  return value;
}

inline std::vector<float> random_floats(Random& random, size_t count, Floats kind = Floats::kPlain) {
  std::vector<float> values(count);
  for (float& value : values) value = random_float(random, kind);
  return values;
}

// The same bits, or both NaN.
inline bool same_float(float a, float b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0 || (std::isnan(a) && std::isnan(b));
}

inline void expect_same_floats(const std::vector<float>& found, const std::vector<float>& expected,
                               const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE(same_float(found[i], expected[i]))
        << what << ": element " << i << " is " << found[i] << ", expected " << expected[i];
  }
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_FLOATS_H_
