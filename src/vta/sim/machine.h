// The simulated machine: device memory, the programs that are loaded into it, the memories on the chip and
// what instructions do to them, streams in an order that tokens allow, and traces.
#ifndef QPLAN_SRC_VTA_SIM_MACHINE_H_
#define QPLAN_SRC_VTA_SIM_MACHINE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "qplan/npu_driver.h"
#include "src/host/trace_events.h"
#include "src/vta/isa/vta.h"
#include "src/vta/isa/vta_blob.h"
#include "src/vta/sim/options.h"

namespace qplan::sim {

// ---- device memory: address ranges handed out page by page, and buffers in them

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kArenaBase = 0x1000;  // of every record as well
constexpr uint64_t kCacheLineBytes = 64;

// Free and used ranges of [kArenaBase, kArenaBase + bytes), the lowest fit first: addresses stay small.
class AddressSpace {
 public:
  explicit AddressSpace(uint64_t bytes) : end_(kArenaBase + bytes) {}
  // 0 when there is no room. bytes > 0.
  uint64_t take(uint64_t bytes);
  void give_back(uint64_t address) { used_.erase(address); }
  uint64_t end() const { return end_; }

 private:
  uint64_t end_;
  std::map<uint64_t, uint64_t> used_;  // address -> bytes, whole pages
};

// Memory from the platform's hooks, or from the heap where it has none.
class Block {
 public:
  Block() = default;
  Block(const qplan_device_hooks& hooks, uint64_t bytes, uint8_t fill,
        uint32_t memory_class = QPLAN_NPU_MEMORY_CLASS_ANY);
  Block(Block&& other) noexcept { *this = static_cast<Block&&>(other); }
  Block& operator=(Block&& other) noexcept;
  ~Block();
  uint8_t* data() const { return data_; }  // null: no memory

 private:
  const qplan_device_hooks* hooks_ = nullptr;
  uint8_t* data_ = nullptr;
};

// What the CPU sees and what the device sees. Coherent: the same memory. Otherwise the CPU's copy is what a
// cache would hold, and bytes go from one to the other only when somebody says so.
struct Buffer {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint8_t* host = nullptr;
  uint8_t* device = nullptr;
  Block owned_host;
  Block owned_device;
  uint32_t usage = 0;
  uint32_t users = 0;  // jobs
  qplan_npu_layout layout = {};

  // Whole cache lines around [offset, offset + count); within the buffer.
  void flush(uint64_t offset, uint64_t count);
  void invalidate(uint64_t offset, uint64_t count);
};

// ---- the device's address space as one job sees it: the regions that were bound, and nothing else.
// Remembers, for regions that the job may write, who touched which four bytes last: that is how unordered
// accesses are found.
constexpr uint32_t kGranule = 4;  // the smallest element

// The last accesses to a granule, as numbers of instructions within their module; 0: none in this job.
struct Touches {
  uint32_t stored = 0;          // by STORE
  uint32_t loaded : 31;         // by the load module
  uint32_t was_read_first : 1;  // read while nothing had been stored
  uint32_t compute_read : 31;   // by LOADs of the compute module
  uint32_t is_known : 1;        // had bytes before the job
};

struct Segment {
  uint64_t address = 0;  // a multiple of kGranule
  uint64_t bytes = 0;
  uint8_t* memory = nullptr;  // what the device sees
  bool is_writable = false;
  bool is_initialised = true;    // false: reading what this job has not stored is a fault
  bool is_output = false;        // what the job is run for
  std::string name;              // for texts: "output 'conv2d_3' (region 2)"
  std::vector<Touches> touches;  // of a writable one
};

class Dram {
 public:
  // Segments do not overlap, unless both are only read.
  void add(Segment segment);
  // The segment that holds all of [address, address + bytes), or null.
  Segment* find(uint64_t address, uint64_t bytes);
  std::vector<Segment>& segments() { return segments_; }
  const std::vector<Segment>& segments() const { return segments_; }
  void forget_touches();

 private:
  std::vector<Segment> segments_;
  size_t last_ = 0;  // that was found
};

// ---- a loaded blob: validated, decoded, with the regions it carries in device memory

// What follows from a stream alone, whatever its data: which instructions are ordered, and when each would
// run.
//
// A module takes its instructions in order, and the n-th pop of a queue takes what its n-th push gave. So
// "happens before" does not depend on who is faster; it is a vector clock for each instruction. Cycles: an
// instruction begins when its module is free and its tokens are there, takes what vta.h says, and then
// gives its tokens. Modules do not share a bus.

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

struct ProgramRegion {
  vta::RegionKind kind = vta::RegionKind::kInput;
  uint64_t bytes = 0;
  uint32_t alignment = 0;
  bool is_carried = false;      // the blob has its bytes
  bool is_initialised = false;  // its bytes are there before the job
  uint32_t memory_class = QPLAN_NPU_MEMORY_CLASS_DRAM;
  uint64_t offset = 0;  // is_carried: into the program's memory
  std::string name;     // "weights 'conv_3' (region 2)"
};

struct Relocation {
  uint32_t instruction = 0;
  uint32_t region = 0;
};

struct Program {
  virtual ~Program() = default;          // other devices keep more
  std::vector<vta::Instruction> stream;  // dram_base counts from the region's start
  std::vector<Relocation> relocations;
  std::vector<ProgramRegion> regions;
  std::vector<std::string> nodes;  // of each instruction, "" when unknown; empty: the blob has no names
  Schedule schedule;
  uint64_t num_instructions = 0;
  uint64_t estimated_cycles = 0;
  uint64_t memory_bytes = 0;  // instructions, then carried regions
  uint32_t memory_class = QPLAN_NPU_MEMORY_CLASS_DRAM;
  uint64_t address = 0;
  Block memory;
  uint32_t users = 0;  // jobs
};

bool is_writable(vta::RegionKind kind);

// Validates and decodes. The caller gives memory of memory_bytes and then calls place_program.
[[nodiscard]] qplan_npu_status load_program(const vta::Config& config, const void* blob, uint64_t bytes,
                                            Program* program, qplan_npu_reason* why);
// Copies instructions and carried regions into program->memory. blob as for load_program.
void place_program(const vta::Config& config, const void* blob, Program* program);

// The listing of a blob, line by line.
[[nodiscard]] qplan_npu_status list_blob(const Options& options, const void* blob, uint64_t bytes,
                                         const std::function<void(const std::string&)>& line,
                                         qplan_npu_reason* why);

// The stream with the regions' addresses (one for each region, multiples of its alignment) added.
std::vector<vta::Instruction> relocate(const Program& program, const std::vector<uint64_t>& addresses);

// ---- the memories on the chip and what each instruction does to them, bit for bit. One instruction at a
// time and as a whole; the order between modules is the executor's.

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

// ---- running a stream: three modules, four token queues, one instruction at a time in an order that a seed
// chooses among all that the tokens allow. Several orders can be tried; all must leave the same bytes.

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

// ---- jobs as events of the Trace Event Format (Perfetto, chrome://tracing): a row for each module, on the
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
