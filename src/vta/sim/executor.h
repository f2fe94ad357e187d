// Numbers from a seed, the same on every machine (SplitMix64).
#ifndef QPLAN_SRC_VTA_SIM_EXECUTOR_H_
#define QPLAN_SRC_VTA_SIM_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "src/vta/sim/machine.h"

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

// Runs a stream: three modules, four token queues, one instruction at a time in an order that a seed chooses
// among all that the tokens allow. Several orders can be tried; all must leave the same bytes.

struct ExecuteOptions {
  uint64_t seed = 1;
  uint32_t explore = 1;                     // interleavings to run
  bool hazards_fail = true;                 // false: they are counted only
  const std::atomic<bool>* stop = nullptr;  // looked at before and within instructions: QPLAN_NPU_E_CANCELLED
  // Called before each instruction of the first interleaving; what it sets ends the job. May be empty.
  std::function<void(uint32_t index, Fault* fault)> before;
};

struct Outcome {
  Fault fault;  // the job's end; none: it ran through
  uint64_t hazards = 0;
  Fault first_hazard;
  uint32_t interleavings = 0;  // that ran through
};

// stream: dram_base absolute. Memory in dram holds the result of the first interleaving afterwards.
Outcome execute(const vta::Config& config, const std::vector<vta::Instruction>& stream,
                const Schedule& schedule, const ExecuteOptions& options, Dram* dram);

// The text of a stream that cannot end, as a fault.
Fault token_fault(const vta::TokenResult& tokens);

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_EXECUTOR_H_
