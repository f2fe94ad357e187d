// What follows from a stream alone, whatever its data: which instructions are ordered, and when each would
// run.
//
// A module takes its instructions in order, and the n-th pop of a queue takes what its n-th push gave. So
// "happens before" does not depend on who is faster; it is a vector clock for each instruction. Cycles: an
// instruction begins when its module is free and its tokens are there, takes what vta_cost.h says, and then
// gives its tokens. Modules do not share a bus.
#ifndef QPLAN_SRC_VTA_SIM_SCHEDULE_H_
#define QPLAN_SRC_VTA_SIM_SCHEDULE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "src/vta/isa/vta.h"
#include "src/vta/isa/vta_tokens.h"

namespace qplan::sim {

// clock[m]: how many instructions of module m are complete before this one begins, its own module's included.
using Clock = std::array<uint32_t, vta::kNumModules>;

struct Schedule {
  vta::TokenResult tokens;  // a fault: what follows covers only what could run
  std::array<std::vector<uint32_t>, vta::kNumModules> modules;  // indices of each module's instructions
  std::vector<uint32_t> number;                                 // of an instruction within its module, from 1
  std::vector<Clock> clocks;
  std::vector<uint64_t> begin;  // cycles
  std::vector<uint64_t> end;

  uint64_t total_cycles = 0;
  std::array<uint64_t, vta::kNumModules> busy_cycles{};
  std::array<uint64_t, vta::kNumQueues> stall_cycles{};  // of whoever takes from the queue
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t macs = 0;
  uint64_t alu_operations = 0;  // micro-ops executed by ALU instructions
};

Schedule make_schedule(const vta::Config& config, const std::vector<vta::Instruction>& stream);
// The busiest module's.
uint64_t most_busy_cycles(const Schedule& schedule);

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_SCHEDULE_H_
