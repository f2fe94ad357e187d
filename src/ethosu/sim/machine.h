// A memory, and what executes a command stream on it, in the order of its words, and finds what real hardware
// would get wrong without a word: accesses without order, bytes that nobody wrote, blocks that do not fit.
#ifndef QPLAN_SRC_ETHOSU_SIM_MACHINE_H_
#define QPLAN_SRC_ETHOSU_SIM_MACHINE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "qplan/npu_driver.h"
#include "src/ethosu/isa/config.h"
#include "src/ethosu/isa/cost.h"
#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu::sim {

// ---- the memory that a command stream works on: regions with a record of who touched each byte, so that
// reads of bytes that nobody wrote, accesses beyond a region's end, and accesses without order are found

constexpr uint8_t kStale = 0xa5;  // what memory holds that nobody wrote

// What ends a run: the status of the job, and one line.
struct Fault {
  qplan_npu_status status = QPLAN_NPU_OK;
  std::string text;
  uint64_t word = QPLAN_NPU_NO_INSTRUCTION;  // of the stream
  bool is_set() const { return status != QPLAN_NPU_OK; }
};

// The last operations that touched a byte; kernels and transfers count from 1.
struct Touch {
  uint32_t kernel_write = 0, kernel_read = 0, dma_write = 0, dma_read = 0;
  uint8_t from_end = 0;  // blocks that kernel_write wrote after this byte's, at most 255
  bool is_defined = false;
};

struct RegionMemory {
  uint8_t* data = nullptr;
  uint64_t bytes = 0;
  bool is_writable = false;
  std::vector<Touch> touches;  // of writable regions
};

// The two units that work at a time, and what of their work may be unfinished.
struct Progress {
  uint32_t kernels = 0, transfers = 0;  // started
  uint32_t finished_kernels = 0, finished_transfers = 0;
};

class Memory {
 public:
  explicit Memory(const Config& config);

  // is_defined: its bytes mean something before the run.
  void set_region(uint32_t index, uint8_t* data, uint64_t bytes, bool is_writable, bool is_defined);
  // Bytes that the caller puts there before the run.
  void define(uint32_t index, uint64_t offset, const uint8_t* bytes, uint64_t size);
  void mark_defined(uint32_t index, uint64_t offset, uint64_t size);  // those that are there already
  const RegionMemory& region(uint32_t index) const { return regions_.at(index); }

  // Each false with *fault set. address: an offset into the region. Bytes of one element are in order.
  bool read(const Progress& progress, uint32_t region, uint64_t address, uint32_t bytes, uint8_t* to,
            Fault* fault);
  bool write(const Progress& progress, uint32_t region, uint64_t address, uint32_t bytes, const uint8_t* from,
             uint8_t from_end, Fault* fault);
  // A transfer as a whole. to_shram: `to` is an address of SHRAM.
  bool transfer(const Progress& progress, uint32_t from_region, uint64_t from, bool to_shram,
                uint32_t to_region, uint64_t to, uint64_t bytes, Fault* fault);
  // Null where it is not in a writable region.
  const Touch* touch(uint32_t region, uint64_t address) const;

  // The tables of SHRAM: a kernel reads some bytes of them, or writes accumulators over all.
  bool read_table(const Progress& progress, uint64_t offset, uint32_t bytes, uint8_t* to, Fault* fault);
  void overwrite_tables(const Progress& progress);

  uint64_t bytes_read = 0, bytes_written = 0;

 private:
  static constexpr uint32_t kTables = kMaxRegions;  // index of the region that SHRAM's tables are
  bool check_range(const char* what, uint32_t region, uint64_t address, uint64_t bytes, Fault* fault) const;

  const Config& config_;
  std::array<RegionMemory, kMaxRegions + 1> regions_;
  std::vector<uint8_t> tables_;
};

// ---- the machine

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
