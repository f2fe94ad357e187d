// The memories on the chip and what each instruction does to them, bit for bit. One instruction at a time and
// as a whole; the order between modules is the executor's.
#ifndef QPLAN_SRC_VTA_SIM_MACHINE_H_
#define QPLAN_SRC_VTA_SIM_MACHINE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "qplan/npu_driver.h"
#include "src/host/trace_events.h"
#include "src/vta/isa/vta.h"
#include "src/vta/sim/memory.h"
#include "src/vta/sim/program.h"

namespace qplan::sim {

// What stopped a job, or what a job did that a correct one does not.
struct Fault {
  qplan_npu_status status = QPLAN_NPU_OK;
  uint64_t instruction = QPLAN_NPU_NO_INSTRUCTION;
  uint64_t address = 0;  // in the device's address space
  std::string text;      // one line

  bool is_set() const { return status != QPLAN_NPU_OK; }
};

// int8, held in 16 bits: processors multiply and add those.
using Lanes8 = std::array<int16_t, vta::kLanes>;
using Lanes32 = std::array<int32_t, vta::kLanes>;
using Weights = std::array<int16_t, vta::kWgtBytes>;

// A memory, with who touched each element last: numbers of instructions within their module, 0 for never.
template <typename T>
struct OnChip {
  std::vector<T> elements;
  std::vector<uint32_t> written;  // by the one module that writes it
  std::vector<uint32_t> read;     // by the other module that reads it: compute for INP and WGT, store for ACC

  void reset(uint32_t count, const T& poison) {
    elements.assign(count, poison);
    written.assign(count, 0);
    read.assign(count, 0);
  }
};

class Machine {
 public:
  // stop (may be null, else outlives this): once it is true the instruction that executes ends soon, with
  // QPLAN_NPU_E_CANCELLED. One instruction can take minutes.
  explicit Machine(const vta::Config& config, const std::atomic<bool>* stop = nullptr);

  // Poisons all memories: nothing survives from one job to the next.
  void reset();
  // False with *fault set when the instruction cannot be executed. Accesses that no token orders are counted,
  // and the first one is kept, whether or not they do harm in this interleaving.
  [[nodiscard]] bool execute(const vta::Instruction& instruction, uint32_t index, const Clock& clock,
                             uint32_t number, Dram* dram, Fault* fault);
  uint64_t hazards() const { return hazards_; }
  const Fault& first_hazard() const { return first_hazard_; }

  const std::vector<Lanes32>& acc() const { return acc_.elements; }
  const std::vector<Lanes8>& inp() const { return inp_.elements; }
  const std::vector<Weights>& wgt() const { return wgt_.elements; }
  const std::vector<uint32_t>& uop() const { return uop_.elements; }

 private:
  bool load();
  bool store();
  bool gemm();
  bool alu();
  bool alu_lanes(Lanes32& dst, const Lanes32& src);
  // False with the fault set once somebody wants the job to stop.
  bool goes_on();
  bool fails(qplan_npu_status status, const std::string& what, uint64_t address = 0);
  void hazard(const std::string& what, uint64_t address = 0);
  bool range_fits(vta::Memory memory, uint64_t end);
  // The DRAM bytes of one row, for reading or writing; null and a fault when they are not there.
  uint8_t* dram_row(uint64_t element, uint64_t elements, bool is_write);
  bool note_dram(Segment* segment, uint64_t address, uint64_t bytes, bool is_write);
  template <typename T>
  bool read_element(OnChip<T>& memory, vta::Memory id, uint64_t index);
  template <typename T>
  bool write_element(OnChip<T>& memory, vta::Memory id, uint64_t index);

  const vta::Config& config_;
  const std::atomic<bool>* stop_;
  OnChip<uint32_t> uop_;
  OnChip<Weights> wgt_;
  OnChip<Lanes8> inp_;
  OnChip<Lanes32> acc_;
  uint64_t hazards_ = 0;
  Fault first_hazard_;

  // The instruction that is being executed.
  const vta::Instruction* now_ = nullptr;
  uint32_t index_ = 0;
  uint32_t number_ = 0;
  Clock clock_{};
  Dram* dram_ = nullptr;
  Fault* fault_ = nullptr;
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

// Jobs as events of the Trace Event Format (Perfetto, chrome://tracing): a row for each module, on the
// simulated clock; jobs follow each other without gaps.

class Trace {
 public:
  Trace();
  void add(const vta::Config& config, uint64_t job, const Program& program);
  // False with *error set when the file cannot be written.
  bool write(const std::string& path, std::string* error) const;
  std::string to_json() const;

 private:
  host::TraceEvents events_{2, "vta-sim"};
  uint64_t origin_ns_ = 0;  // of the next job
};

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_MACHINE_H_
