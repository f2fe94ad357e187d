// Code that all mutators share: numbers on which arithmetic breaks, and changes to plain bytes.
#ifndef QPLAN_TESTS_FUZZ_MUTATORS_NUMBERS_H_
#define QPLAN_TESTS_FUZZ_MUTATORS_NUMBERS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tests/support/random.h"

namespace qplan::fuzz {

using testing::Random;

// An index into something of that size, which is not empty.
inline size_t index_below(Random& random, size_t size) {
  return static_cast<size_t>(random.integer(0, static_cast<int64_t>(size) - 1));
}
template <typename T>
const T& pick(Random& random, const std::vector<T>& from) {
  return from[index_below(random, from.size())];
}

// Small numbers are the valid ones: most draws take them, so that what follows is reached.
inline int64_t special_integer(Random& random) {
  static const std::vector<int64_t> kSpecial = {
      -1,        -2,        -3,        -128,       127,       128,     255,           256,
      257,       -129,      32767,     32768,      65535,     65536,   1 << 20,       1 << 24,
      INT32_MAX, INT32_MIN, 1LL << 31, UINT32_MAX, 1LL << 32, 1 << 30, 1 << 29,       1LL << 40,
      1LL << 48, 1LL << 62, INT64_MAX, INT64_MIN,  1000,      4096,    INT64_MAX / 2, 1000003};
  return random.chance(0.6) ? random.integer(0, 17) : random.pick(kSpecial);
}
inline int64_t changed_integer(Random& random, int64_t value) {
  if (random.chance(0.4)) {
    return static_cast<int64_t>(static_cast<uint64_t>(value) + static_cast<uint64_t>(random.integer(-3, 3)));
  }
  return special_integer(random);
}
inline double special_real(Random& random) {
  static const std::vector<double> kSpecial = {0.0,
                                               -0.0,
                                               1.0,
                                               0.5,
                                               0.25,
                                               0.00390625,
                                               0.0078125,
                                               -1.0,
                                               1e-3,
                                               3.0,
                                               6.0,
                                               127.0,
                                               128.0,
                                               255.,
                                               256.0,
                                               1e-10,
                                               1e-38,
                                               1e-45,
                                               1e10,
                                               1e30,
                                               3e38,
                                               -3e38,
                                               1e39,
                                               1e300,
                                               1e-300,
                                               65504.0,
                                               2147483647.,
                                               2147483648.,
                                               -2147483649.,
                                               9.3e18,
                                               std::numeric_limits<double>::infinity(),
                                               -std::numeric_limits<double>::infinity(),
                                               std::numeric_limits<double>::quiet_NaN()};
  return random.chance(0.3) ? random.unit() : random.pick(kSpecial);
}
inline double changed_real(Random& random, double value) {
  if (random.chance(0.3)) return value * (random.chance(0.5) ? 2.0 : 0.5);
  if (random.chance(0.2)) return -value;
  return special_real(random);
}

// A few bytes changed, put in, taken out or repeated.
inline void mutate_bytes(Random& random, std::string* bytes, size_t max_size) {
  if (random.chance(0.5)) {  // libFuzzer's, which knows what the code compared the input with
    std::vector<uint8_t> buffer(std::max<size_t>(std::min(bytes->size() * 2 + 16, max_size), bytes->size()));
    std::copy(bytes->begin(), bytes->end(), buffer.begin());
    const size_t size = LLVMFuzzerMutate(buffer.data(), bytes->size(), buffer.size());
    bytes->assign(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(size));
    return;
  }
  const auto any_byte = [&] { return static_cast<char>(random.integer(0, 255)); };
  for (int64_t count = random.integer(1, 3); count > 0; --count) {
    if (bytes->empty()) {
      *bytes += any_byte();
      continue;
    }
    const size_t at = index_below(random, bytes->size());
    switch (random.integer(0, 4)) {
      case 0:
        (*bytes)[at] = any_byte();
        break;
      case 1:
        (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << random.integer(0, 7)));
        break;
      case 2:
        bytes->erase(at, static_cast<size_t>(random.integer(1, 8)));
        break;
      case 3:
        if (bytes->size() < max_size) bytes->insert(at, 1, any_byte());
        break;
      default: {
        const std::string piece = bytes->substr(at, static_cast<size_t>(random.integer(1, 16)));
        if (bytes->size() + piece.size() <= max_size)
          bytes->insert(index_below(random, bytes->size()), piece);
      }
    }
  }
}

}  // namespace qplan::fuzz

#endif  // QPLAN_TESTS_FUZZ_MUTATORS_NUMBERS_H_
