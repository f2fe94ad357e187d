// A command stream: its instructions, its cycles, and its bytes as a driver loads them
// (src/vta/isa/vta_blob.h).
#ifndef QPLAN_SRC_VTA_COMPILER_STREAMS_STREAM_H_
#define QPLAN_SRC_VTA_COMPILER_STREAMS_STREAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/vta/compiler/streams/layout.h"
#include "src/vta/isa/vta_blob.h"

namespace qplan::vta::compiler {

struct Label {
  uint32_t instruction = 0;
  std::string name;
};

struct Stream {
  std::vector<Instruction> instructions;
  std::vector<BlobRelocation> relocations;
  std::vector<Label> labels;
};

// ---- cycles: each module takes its instructions in order, one begins when its tokens are there

struct Estimate {
  uint64_t total_cycles = 0;
  std::array<uint64_t, kNumModules> busy_cycles{};  // by Module
};

// A stream whose tokens are balanced. Costs are those of src/vta/isa/vta.h.
Estimate estimate_cycles(const Config& config, std::span<const Instruction> stream);

// The cycle at which the first ends[k] instructions are all done, ascending as `ends` are; the last one is
// the total when it counts all instructions.
std::vector<uint64_t> cycles_at(const Config& config, std::span<const Instruction> stream,
                                std::span<const size_t> ends);

// ---- the stream of one unit

// What the relocations of a unit's stream index.
struct UnitRegion {
  enum class Kind : uint8_t { kCarried, kInput, kOutput };
  Kind kind = Kind::kCarried;
  RegionKind blob_kind = RegionKind::kConstants;  // kCarried: or kWeights
  // Carried regions of one kind and name are joined over all units: "weights", "constants" (of ACC),
  // "micro-ops".
  std::string name;
  uint32_t operand = 0;       // kInput: of the unit's activation operands; kOutput: 0
  std::vector<uint8_t> data;  // kCarried
};
UnitRegion carried_region(std::string name, std::vector<uint8_t> data = {},
                          RegionKind kind = RegionKind::kConstants);
UnitRegion input_region(uint32_t operand = 0);
UnitRegion output_region();

struct CompiledUnit {
  std::string name;
  // Complete for itself: tokens are balanced, the last instruction is FINISH, which pops the token of the
  // last STORE and no other; dram_base counts elements from the start of the unit's regions. Its first
  // instructions may assume idle modules and nothing about the contents of the memories on the chip.
  Stream stream;
  std::vector<UnitRegion> regions;
  Estimate estimate;  // by itself
  int64_t alu_instructions_per_tile = 0;
};

// ---- blobs

struct Region {
  RegionKind kind = RegionKind::kInput;
  std::string name;
  uint64_t bytes = 0;
  uint32_t alignment = 64;
  uint32_t flags = 0;
  std::vector<uint8_t> data;  // not empty: the blob carries it, and bytes is its size
};

std::vector<uint8_t> write_blob(const Config& config, const Stream& stream,
                                const std::vector<Region>& regions, uint64_t estimated_cycles);

}  // namespace qplan::vta::compiler

#endif  // QPLAN_SRC_VTA_COMPILER_STREAMS_STREAM_H_
