// Numbers from a seed, the same on every machine (SplitMix64).
#ifndef QPLAN_SRC_VTA_SIM_RANDOM_H_
#define QPLAN_SRC_VTA_SIM_RANDOM_H_

#include <cstdint>

namespace qplan::sim {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t bound) { return next() % bound; }  // bound > 0

 private:
  uint64_t state_;
};

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_RANDOM_H_
