// Numbers for models whose results are computed in double beside them.
#ifndef QPLAN_TESTS_MODELS_ONNX_NUMBERS_H_
#define QPLAN_TESTS_MODELS_ONNX_NUMBERS_H_

#include <cstdint>
#include <vector>

namespace qplan::testing::onnx_numbers {

using Floats = std::vector<float>;
using Reals = std::vector<double>;

// Numbers between -1 and 1 without a pattern.
inline Floats numbers(size_t count, uint32_t seed) {
  Floats values;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(static_cast<int32_t>(seed >> 16) - 32768) / 32768.0f);
  }
  return values;
}

inline Reals reals(const Floats& values) { return {values.begin(), values.end()}; }

}  // namespace qplan::testing::onnx_numbers

#endif  // QPLAN_TESTS_MODELS_ONNX_NUMBERS_H_
