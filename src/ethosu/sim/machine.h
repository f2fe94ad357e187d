// Executes a command stream on a memory, in the order of its words, and finds what real hardware would get
// wrong without a word: accesses without order, bytes that nobody wrote, blocks that do not fit.
#ifndef QPLAN_SRC_ETHOSU_SIM_MACHINE_H_
#define QPLAN_SRC_ETHOSU_SIM_MACHINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "src/ethosu/isa/cost.h"
#include "src/ethosu/isa/kernel.h"
#include "src/ethosu/sim/memory.h"

namespace qplan::ethosu::sim {

struct Outcome {
  Fault fault;
  uint64_t cycles = 0, busy_cycles = 0;
  uint64_t macs = 0;
  uint64_t bytes_read = 0, bytes_written = 0;
  uint64_t kernels = 0, transfers = 0;
};

class Machine {
 public:
  Machine(const Config& config, Memory* memory)
      : config_(config), memory_(*memory), memories_(default_memories(config)), time_(config) {}

  // Called after each kernel and transfer: for traces. May be empty.
  std::function<void(uint32_t word, const Command& operation, uint64_t cycles)> on_operation;
  // Called before each command; a fault that it sets ends the run. May be empty.
  std::function<void(uint32_t word, Fault* fault)> before;
  // Ends the run with QPLAN_NPU_E_CANCELLED when set. May be null.
  const std::atomic<bool>* stop = nullptr;

  Outcome run(const std::vector<uint32_t>& stream);

 private:
  bool step(const Command& command, uint32_t word);
  bool start_kernel(const Command& command, uint32_t word);
  bool start_transfer(uint32_t word, const Command& command);
  bool check_blockdep(const Kernel& kernel);
  bool fail(const Problem& problem);

  const Config& config_;
  Memory& memory_;
  Registers registers_;
  Progress progress_;
  Outcome outcome_;
  const Memories memories_;
  TimeLine time_;
  bool is_stopped_ = false;
};

// Calls visit(region, address, bytes) for what job `job` of a kernel reads of its feature maps; false from it
// ends the visit. A job is a block of the output, 8 x 8 cells of the window and, for
// sums over depth, one step of the input's depth. Returns whether all were visited.
bool visit_job_reads(const Kernel& kernel, uint32_t job,
                     const std::function<bool(uint32_t region, uint64_t address, uint32_t bytes)>& visit);
uint32_t num_jobs(const Kernel& kernel);

}  // namespace qplan::ethosu::sim

#endif  // QPLAN_SRC_ETHOSU_SIM_MACHINE_H_
