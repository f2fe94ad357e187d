// A command stream: its instructions, its cycles, and its bytes as a driver loads them
// (src/vta/isa/vta_blob.h).
#ifndef QPLAN_SRC_VTA_COMPILER_STREAMS_STREAM_H_
#define QPLAN_SRC_VTA_COMPILER_STREAMS_STREAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/vta/compiler/streams/alu_steps.h"
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

// Instructions for pieces of activations and of accumulators, and the stream of one unit as it is written.

// The caller has proved that every value fits its field.
inline uint16_t u16(int64_t value) { return static_cast<uint16_t>(value); }

// rows x row elements, contiguous on the chip, stride elements apart in DRAM.
Instruction transfer(Opcode opcode, Memory memory, int64_t sram, int64_t dram, int64_t rows, int64_t row,
                     int64_t stride);

// Blocks of channels of a rectangle of positions: on the chip they are contiguous, [rows][cols][blocks].
struct Box {
  int64_t y = 0, x = 0, rows = 0, cols = 0;  // inside the border; may begin in it
  int64_t block = 0, blocks = 0;
};
// Between the chip (from element sram on) and an activation in DRAM: one instruction, or one for each row.
std::vector<Instruction> transfer_box(Opcode opcode, Memory memory, int64_t sram,
                                      const ActivationLayout& layout, const Box& box);

// The ALU's micro-op `uop` over so many consecutive elements of its destination.
Instruction over_elements(int64_t elements, int64_t uop);
// An AluStep over [positions][out_blocks] elements; a constant has out_blocks elements, which serve all
// positions. uop: names the step's destination and source.
Instruction alu_instruction(const AluStep& step, int64_t positions, int64_t out_blocks, int64_t uop);

// Micro-op tables: written once into DRAM, loaded into the chip's memory when an instruction needs them and
// they are not there.
class UopTables {
 public:
  explicit UopTables(const Config& config) : config_(config) {}

  struct Place {
    uint32_t begin = 0;  // on the chip
    bool must_load = false;
    uint32_t dram = 0;  // element of the table in DRAM
  };
  // table: not empty. PackError (QPLAN_MODEL_UNSUPPORTED) where it is larger than the memory.
  Place use(const std::vector<Uop>& table);
  std::vector<uint8_t> bytes() const;

 private:
  struct Table {
    uint32_t dram = 0;
    uint32_t begin = 0, size = 0;
    bool is_resident = false;
  };
  const Config& config_;
  std::vector<uint32_t> words_;
  std::map<std::vector<uint32_t>, Table> tables_;  // by content
  uint32_t next_ = 0;                              // the memory is filled round and round
};

// Writes the stream of a unit, from its first instruction to FINISH.
class StreamWriter {
 public:
  // regions: of the unit. The one at uop_region becomes its micro-ops.
  StreamWriter(const Config& config, std::vector<UnitRegion> regions, uint32_t uop_region);

  size_t size() const { return stream_.instructions.size(); }
  // The last instruction, or one of those before it, whose tokens are still to be set.
  Instruction& back() { return stream_.instructions.back(); }
  Instruction& at(size_t index) { return stream_.instructions[index]; }

  void add(const Instruction& instruction) { stream_.instructions.push_back(instruction); }
  void add(const Instruction& instruction, uint32_t region);
  // Loads or stores a piece of an activation. dram_offset: elements, of its first one in the region.
  void transfer_box(Opcode opcode, Memory memory, int64_t sram, const ActivationLayout& layout,
                    const Box& box, uint32_t region, int64_t dram_offset = 0);
  // The table's place on the chip; loads it where it is not there.
  uint16_t use_uops(const std::vector<Uop>& table);

  // FINISH waits for the token of the last STORE.
  CompiledUnit finish(std::string name);

 private:
  const Config& config_;
  std::vector<UnitRegion> regions_;
  uint32_t uop_region_;
  UopTables uops_;
  Stream stream_;
};

}  // namespace qplan::vta::compiler

#endif  // QPLAN_SRC_VTA_COMPILER_STREAMS_STREAM_H_
