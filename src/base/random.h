// Pseudo-random numbers that are the same on every machine: SplitMix64, whose states each give one well-mixed
// number.
#ifndef QPLAN_SRC_BASE_RANDOM_H_
#define QPLAN_SRC_BASE_RANDOM_H_

#include <stdint.h>

namespace qplan {

class SplitMix64 {
 public:
  explicit constexpr SplitMix64(uint64_t seed) : state_(seed) {}
  constexpr uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  // Less than the bound, which is not 0.
  constexpr uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t state_;
};

}  // namespace qplan

#endif  // QPLAN_SRC_BASE_RANDOM_H_
