#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/packer/target/cpu/prove.h"

namespace qplan::target::cpu {
namespace {

constexpr size_t kGroupBytes = 64;  // of 16 outputs

// Whether sums of `count` groups of each tap fit, at every place. The bytes that make a sum largest make no
// number of it negative, so that the sum of the first ones is not larger; nor smaller where they make it
// smallest.
bool fits(std::span<const uint8_t> weights, size_t tap_bytes, size_t count) {
  for (size_t tap = 0; tap < weights.size(); tap += tap_bytes) {
    for (size_t first = tap; first < tap + tap_bytes; first += count * kGroupBytes) {
      const size_t end = std::min(first + count * kGroupBytes, tap + tap_bytes);  // within the weights
      for (size_t place = 0; place < kGroupBytes; ++place) {
        int32_t largest = 0, smallest = 0;
        for (size_t at = first + place; at < end; at += kGroupBytes) {
          const int32_t weight = static_cast<int8_t>(weights[at]);
          largest += std::max(weight * INT8_MIN, weight * INT8_MAX);
          smallest += std::min(weight * INT8_MIN, weight * INT8_MAX);
        }
        if (largest > INT16_MAX || smallest < INT16_MIN) return false;
      }
    }
  }
  return true;
}

}  // namespace

uint8_t prove_int16_groups(std::span<const uint8_t> weights, uint64_t tap_groups) {
  const auto tap_bytes = static_cast<size_t>(tap_groups * kGroupBytes);
  return fits(weights, tap_bytes, 4) ? 4 : fits(weights, tap_bytes, 2) ? 2 : 0;
}

}  // namespace qplan::target::cpu
