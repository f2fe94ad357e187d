// Damaged copies of a file. Each is made from a seed alone, so that a seed names a case on every machine.
#ifndef QPLAN_TESTS_FUZZ_MUTATE_H_
#define QPLAN_TESTS_FUZZ_MUTATE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/support/random.h"

namespace qplan::testing {

using Bytes = std::vector<uint8_t>;

enum class Damage {
  kBits,   // 1 to 16 bits are flipped
  kWords,  // 1 to 4 aligned 32-bit words become numbers on which size arithmetic breaks
};

inline const char* damage_name(Damage damage) { return damage == Damage::kBits ? "bits" : "words"; }

// Half of the seeds damage only the first `focus` bytes (0: all damage the whole file). Never returns the
// original.
inline Bytes damaged(const Bytes& original, Damage damage, uint64_t seed, size_t focus = 0) {
  constexpr uint32_t kWords[] = {0,          1,          2,          7,          0xff,
                                 0x7fff,     0x10000,    0x01000001, 0x3fffffff, 0x40000000,
                                 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff};
  constexpr int64_t kNumWords = sizeof(kWords) / sizeof(kWords[0]);
  Random random(seed);
  const size_t size = focus > 0 && focus < original.size() && random.chance(0.5) ? focus : original.size();
  Bytes bytes = original;
  while (bytes == original) {
    // Often a single wound: with many, the first check that notices one hides the others.
    const int64_t most = damage == Damage::kBits ? 16 : 4;
    for (int64_t count = random.chance(0.4) ? 1 : random.integer(1, most); count > 0; --count) {
      if (damage == Damage::kBits) {
        const int64_t bit = random.integer(0, static_cast<int64_t>(size) * 8 - 1);
        bytes[static_cast<size_t>(bit / 8)] ^= static_cast<uint8_t>(1u << (bit % 8));
      } else {
        const size_t at = static_cast<size_t>(random.integer(0, static_cast<int64_t>(size / 4) - 1)) * 4;
        uint32_t word = 0;
        std::memcpy(&word, bytes.data() + at, sizeof(word));
        // A special number, or a neighbour of the old one.
        word = random.chance(0.6) ? kWords[random.integer(0, kNumWords - 1)]
                                  : word + static_cast<uint32_t>(random.integer(-3, 3));
        std::memcpy(bytes.data() + at, &word, sizeof(word));
      }
    }
  }
  return bytes;
}

inline Bytes truncated(const Bytes& original, size_t size) {
  return Bytes(original.begin(), original.begin() + static_cast<Bytes::difference_type>(size));
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_MUTATE_H_
