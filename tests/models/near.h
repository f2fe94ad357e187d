// How near outputs of float32 must be to those of another implementation.
#ifndef QPLAN_TESTS_MODELS_NEAR_H_
#define QPLAN_TESTS_MODELS_NEAR_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace qplan::testing {

inline std::vector<float> floats_of(const std::vector<uint8_t>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// The first element that is not within 1e-5 of the expected one, relative to it, or to this share of the
// largest where elements nearly cancel; "" where there is none. Infinities and NaN must be where they are
// expected.
inline std::string far_element(const std::vector<uint8_t>& found_bytes,
                               const std::vector<uint8_t>& expected_bytes, float share = 1e-3f) {
  if (found_bytes.size() != expected_bytes.size()) {
    return std::to_string(found_bytes.size()) + " bytes, expected " + std::to_string(expected_bytes.size());
  }
  const std::vector<float> found = floats_of(found_bytes), expected = floats_of(expected_bytes);
  float largest = 0;
  for (const float value : expected) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i]))) continue;
    const float most = 1e-5f * std::max(std::fabs(expected[i]), share * largest);
    if (std::isfinite(expected[i]) && std::fabs(found[i] - expected[i]) <= most) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(found[i]) + ", expected " +
           std::to_string(expected[i]);
  }
  return "";
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_MODELS_NEAR_H_
