// A loaded blob: validated, decoded, with the regions it carries in device memory.
#ifndef QPLAN_SRC_VTA_SIM_PROGRAM_H_
#define QPLAN_SRC_VTA_SIM_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/vta/isa/vta_blob.h"
#include "src/vta/sim/memory.h"
#include "src/vta/sim/schedule.h"

namespace qplan::sim {

struct ProgramRegion {
  vta::RegionKind kind = vta::RegionKind::kInput;
  uint64_t bytes = 0;
  uint32_t alignment = 0;
  bool is_carried = false;      // the blob has its bytes
  bool is_initialised = false;  // its bytes are there before the job
  uint64_t offset = 0;          // is_carried: into the program's memory
  std::string name;             // "weights 'conv_3' (region 2)"
};

struct Relocation {
  uint32_t instruction = 0;
  uint32_t region = 0;
};

struct Program {
  std::vector<vta::Instruction> stream;  // dram_base counts from the region's start
  std::vector<Relocation> relocations;
  std::vector<ProgramRegion> regions;
  std::vector<std::string> nodes;  // of each instruction, "" when unknown; empty: the blob has no names
  Schedule schedule;
  uint64_t estimated_cycles = 0;
  uint64_t memory_bytes = 0;  // instructions, then carried regions
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

// The stream with the regions' addresses (one for each region, multiples of its alignment) added.
std::vector<vta::Instruction> relocate(const Program& program, const std::vector<uint64_t>& addresses);

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_PROGRAM_H_
