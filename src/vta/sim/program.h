// A loaded blob: validated, decoded, with the regions it carries in device memory.
#ifndef QPLAN_SRC_VTA_SIM_PROGRAM_H_
#define QPLAN_SRC_VTA_SIM_PROGRAM_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/vta/isa/vta.h"
#include "src/vta/isa/vta_blob.h"
#include "src/vta/sim/memory.h"
#include "src/vta/sim/options.h"

namespace qplan::sim {

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

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_PROGRAM_H_
