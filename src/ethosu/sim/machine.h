// The simulated machine: its memory, how a kernel is executed, and how a command stream is, in the order of
// its words. It finds what real hardware would get wrong without a word: accesses without order, bytes that
// nobody wrote, blocks that do not fit.
#ifndef QPLAN_SRC_ETHOSU_SIM_MACHINE_H_
#define QPLAN_SRC_ETHOSU_SIM_MACHINE_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "qplan/npu_driver.h"
#include "src/ethosu/isa/architecture.h"
#include "src/ethosu/isa/stream.h"

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

// ---- one kernel on a memory

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
