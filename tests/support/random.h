// Reproducible test data. Distributions are our own, since those of the standard library differ between
// libraries.
#ifndef QPLAN_TESTS_SUPPORT_RANDOM_H_
#define QPLAN_TESTS_SUPPORT_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace qplan::testing {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  // Uniform in [lo, hi].
  int64_t integer(int64_t lo, int64_t hi) {
    const uint64_t count = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo) + 1;
    return static_cast<int64_t>(static_cast<uint64_t>(lo) + (count == 0 ? engine_() : engine_() % count));
  }
  bool chance(double probability) { return unit() < probability; }
  // In [0, 1).
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(integer(0, static_cast<int64_t>(from.size()) - 1))];
  }

  // count values in [lo, hi].
  template <typename T>
  std::vector<T> integers(size_t count, int64_t lo, int64_t hi) {
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>(integer(lo, hi));
    return values;
  }
  // count values of T's whole range, a quarter of them at its two ends.
  template <typename T>
  std::vector<T> full_range(size_t count) {
    constexpr int64_t lo = std::numeric_limits<T>::min(), hi = std::numeric_limits<T>::max();
    std::vector<T> values(count);
    for (T& value : values) {
      const int64_t kind = integer(0, 7);
      value = static_cast<T>(kind == 0 ? lo : kind == 1 ? hi : integer(lo, hi));
    }
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_RANDOM_H_
