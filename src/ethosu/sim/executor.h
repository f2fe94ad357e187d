// Executes one kernel on a memory: its arithmetic, and its elements.
#ifndef QPLAN_SRC_ETHOSU_SIM_EXECUTOR_H_
#define QPLAN_SRC_ETHOSU_SIM_EXECUTOR_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "src/ethosu/isa/kernel.h"
#include "src/ethosu/sim/machine.h"

namespace qplan::ethosu::sim {

// ---- the device's scaling of sums to results

// floor((acc * multiplier + 2^(shift - 1)) / 2^shift), without the addend where shift is 0. The product has
// 96 bits, in two words: 32-bit machines have no wider type. |acc| < 2^62, shift < 96.
inline int64_t scaled_half_up(int64_t acc, uint32_t multiplier, uint32_t shift) {
  const uint64_t low_product = (static_cast<uint64_t>(acc) & UINT32_MAX) * multiplier;
  int64_t high = (acc >> 32) * int64_t{multiplier} + static_cast<int64_t>(low_product >> 32);
  uint64_t low = low_product & UINT32_MAX;
  if (shift > 32) {
    high += int64_t{1} << (shift - 33);
  } else if (shift > 0) {
    low += uint64_t{1} << (shift - 1);
    high += static_cast<int64_t>(low >> 32);
    low &= UINT32_MAX;
  }
  if (shift >= 32) return high >> (shift - 32);
  return static_cast<int64_t>(static_cast<uint64_t>(high) << (32 - shift) | low >> shift);
}

// acc * multiplier / 2^shift. kDouble: to 2^31 half up, then half away from zero. kNatural: half up, once.
inline int64_t scale(int64_t acc, const Scale& by, Rounding rounding) {
  if (rounding == Rounding::kNatural) return scaled_half_up(acc, by.multiplier, by.shift);
  const uint32_t first = std::min<uint32_t>(by.shift, 31), rest = by.shift - first;
  const int64_t q = scaled_half_up(acc, by.multiplier, first);
  const int64_t mask = (int64_t{1} << rest) - 1;
  return (q >> rest) + ((q & mask) > ((mask >> 1) + (q < 0 ? 1 : 0)) ? 1 : 0);
}

// A sum divided by a count, half away from zero.
inline int64_t rounded_quotient(int64_t sum, int64_t count) {
  return sum >= 0 ? (sum + count / 2) / count : -((-sum + count / 2) / count);
}

// ---- kernels

// A feature map's elements less its zero point, dense.
struct Elements {
  uint32_t h = 0, w = 0, d = 0;
  std::vector<int32_t> values;
  const int32_t* at(uint32_t y, uint32_t x) const { return values.data() + (uint64_t{y} * w + x) * d; }
};

class Executor {
 public:
  // stop: ends the kernel with QPLAN_NPU_E_CANCELLED when set; may be null.
  Executor(const Config& config, const Kernel& kernel, Memory* memory, const Progress& progress,
           const std::atomic<bool>* stop)
      : config_(config), k_(kernel), memory_(*memory), progress_(progress), stop_(stop) {}

  // False with the fault set.
  bool run();
  const Fault& fault() const { return fault_; }
  uint64_t macs() const { return macs_; }

 private:
  bool fail(qplan_npu_status status, const char* text, int64_t found = 0, int64_t limit = 0);
  // False, with the fault set, once the job was stopped.
  bool goes_on();
  bool fetch(const FeatureMap& map, Elements* elements);
  bool fetch_bytes(const ByteRange& range, std::vector<uint8_t>* bytes);
  bool check_overlap();

  // ---- weights: [tap][input][output]
  bool load_weights();
  bool load_core(uint32_t core);
  bool convolve();
  template <typename Acc>
  bool convolve_in(bool checks);
  bool pool();
  bool elementwise();
  bool combine(int64_t a, int64_t b, int64_t* result);

  // The tap of the window at (y, x) of the padded, upscaled input; null where there is nothing to add.
  const int32_t* tap(int64_t y, int64_t x) const;
  // The result before its zero point: clamps, looks it up, writes it.
  bool put(uint32_t y, uint32_t x, uint32_t c, int64_t value, bool has_zero_point = true);

  const Config& config_;
  const Kernel& k_;
  Memory& memory_;
  const Progress& progress_;
  const std::atomic<bool>* stop_;
  Fault fault_;
  Elements ifm_, ifm2_;
  std::vector<int16_t> weights_;
  std::vector<int64_t> bias_;
  std::vector<Scale> scales_;
  std::vector<uint64_t> weight_sums_;  // of magnitudes, per output
  int64_t rows_ = 0, columns_ = 0;     // of the upscaled input
  uint64_t macs_ = 0;
};

}  // namespace qplan::ethosu::sim

#endif  // QPLAN_SRC_ETHOSU_SIM_EXECUTOR_H_
