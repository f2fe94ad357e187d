// Tensors as they lie in the device's memory, and command streams that work on them: instructions, cycles,
// the blob as a driver loads it (src/vta/isa/vta_blob.h), how the stream of a unit is written, and streams of
// the ALU alone.
#ifndef QPLAN_SRC_VTA_COMPILER_STREAMS_STREAM_H_
#define QPLAN_SRC_VTA_COMPILER_STREAMS_STREAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/packer/layer/quantized_layer.h"
#include "src/vta/compiler/streams/alu_steps.h"
#include "src/vta/isa/vta.h"
#include "src/vta/isa/vta_blob.h"

namespace qplan::vta::compiler {

// ---- how tensors lie in the device's memory, the host's packing into it, and the device's limits in the
// units of the compiler. Elements are of INP and OUT: one position, 16 channels, 16 bytes of int8.

using layer::Geometry;

inline constexpr int64_t kBlock = kLanes;                                  // channels of an element
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }  // a >= 0, b > 0
inline int64_t blocks(int64_t channels) { return (channels + kBlock - 1) / kBlock; }
// Bytes of one element.
inline constexpr int64_t kWgtBytes = vta::kWgtBytes;
inline constexpr int64_t kInpBytes = vta::kInpBytes;
inline constexpr int64_t kAccBytes = vta::kAccBytes;

// Factors of GEMM and ALU instructions are as wide as the indices of ACC, strides of LOAD and STORE 16 bits.
inline int64_t max_factor(const Config& config) { return (int64_t{1} << config.acc_index_bits) - 1; }
inline constexpr int64_t kMaxDmaStride = 65535;
// What one allocation of the public driver interface gives.
inline constexpr int64_t kMaxBufferBytes = int64_t{32} << 20;
// Up to this magnitude the ALU's sequence for TFL2 is exact, the left shift included.
inline constexpr int64_t kTfl2Bound = int64_t{1} << 29;

// Room around a tensor in its buffer, for readers that pad.
struct Border {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
};

// [top + h + bottom][left + w + right][channels / 16][16]. The border holds whatever its reader pads with.
struct ActivationLayout {
  int64_t h = 1, w = 1, channels = 1;
  int64_t top = 0, left = 0, bottom = 0, right = 0;

  int64_t channel_blocks() const { return blocks(channels); }
  int64_t row_elements() const { return (left + w + right) * channel_blocks(); }
  int64_t elements() const { return (top + h + bottom) * row_elements(); }
  int64_t bytes() const { return elements() * kInpBytes; }
  // The element of position (y, x) inside the padding, first block.
  int64_t element(int64_t y, int64_t x) const {
    return (top + y) * row_elements() + (left + x) * channel_blocks();
  }
};

inline ActivationLayout with_border(int64_t h, int64_t w, int64_t channels, const Border& border) {
  return {h, w, channels, border.top, border.left, border.bottom, border.right};
}

// dense: [h][w][channels]. flip is 0 for int8 and 0x80 for uint8, whose values enter the device less 128.
// border: the byte around the tensor and in the channels beyond the last (after the flip).
std::vector<uint8_t> pack_activations(const ActivationLayout& layout, std::span<const uint8_t> dense,
                                      uint8_t flip, int8_t border);
std::vector<uint8_t> unpack_activations(const ActivationLayout& layout, std::span<const uint8_t> packed,
                                        uint8_t flip);

// What one weight can be: the sum of up to two int8 weights, each with a micro-op of its own on the same
// input and accumulator. The second one is needed only in layers in which some weight is beyond int8.
inline constexpr int64_t kMinWeight = -256, kMaxWeight = 254;

// Weights for GEMM: [O / 16][KH][KW][I / 16][planes][16 o][16 i], zeros beyond the last channel. A weight is
// the sum of its planes: the first is the weight clamped to int8, the second the rest.
// weights: [O][KH][KW][I], less their zero point, within kMinWeight and kMaxWeight.
std::vector<uint8_t> pack_gemm_weights(const Geometry& geometry, std::span<const int16_t> weights,
                                       int64_t planes);
// The weights of a depthwise layer, whose blocks of channels do not mix: [C / 16][KH][KW][planes][16][16],
// all but the diagonal 0. weights: [C][KH][KW].
std::vector<uint8_t> pack_diagonal_weights(const Geometry& geometry, std::span<const int16_t> weights,
                                           int64_t planes);

// ---- a command stream

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

// ---- instructions for pieces of activations and of accumulators, and the stream of one unit as it is
// written

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

// ---- streams of the ALU alone: tiles that the compute module loads into ACC (widened from 8 bits), works on
// and hands to the store module. While a tile is stored, the next one is computed in another slot.

// Elements of ACC: (y, x, block) is at base + y * row + x * position + block.
struct Plane {
  int64_t base = 0, row = 0, position = 0;

  Plane at(int64_t y, int64_t x) const { return {base + y * row + x * position, row, position}; }
};
struct Extent {
  int64_t rows = 1, cols = 1, blocks = 1;
  int64_t elements() const { return rows * cols * blocks; }
};
// Without gaps.
inline Plane dense_plane(int64_t base, const Extent& extent) {
  return {base, extent.cols * extent.blocks, extent.blocks};
}

class AluStream {
 public:
  // constants: one element of ACC each, from element 0 on, all lanes the same. slots: tiles between whose
  // stores computation goes on.
  AluStream(const Config& config, const std::vector<int32_t>& constants, size_t num_inputs, int64_t slots);

  void load(size_t input, const ActivationLayout& layout, const Box& box, int64_t acc);
  void reset(const Extent& extent, const Plane& dst);
  void alu(AluOp op, const Extent& extent, const Plane& dst, const Plane& src);
  void alu(AluOp op, const Extent& extent, const Plane& dst, int16_t immediate);
  void alu_constant(AluOp op, const Extent& extent, const Plane& dst, int64_t constant);
  // Ends the tile.
  void store(const ActivationLayout& layout, const Box& box, int64_t acc);

  // After the last tile.
  CompiledUnit finish(std::string name);

 private:
  struct Operation {
    Instruction instruction;
    std::vector<Uop> uops;
  };
  void add_operation(Instruction instruction, const Extent& extent, const Plane& dst, const Plane* src);
  void emit_operations();

  const Config& config_;
  const uint32_t output_;  // its region
  const int64_t slots_;
  StreamWriter stream_;
  std::vector<Operation> operations_;   // of the tile
  size_t tile_begin_ = 0;               // its first instruction
  std::vector<size_t> last_of_stores_;  // by tile
  int64_t num_operations_ = 0;          // without resets
};

// The steps of a tile's sequence in the region `part` of it. planes: by AccBlock.
void add_steps(const std::vector<AluStep>& steps, const Extent& part, const std::vector<Plane>& planes,
               AluStream* stream);
// Blocks beside the accumulators that the steps use.
int64_t num_temporaries(const std::vector<AluStep>& steps);
int64_t alu_cycles(const std::vector<AluStep>& steps);  // per element

// Stores `value` into all bytes of the layout's border, which is not empty. Regions: micro-ops, the output.
CompiledUnit compile_border(const Config& config, const ActivationLayout& layout, int8_t value,
                            const std::string& name);

// ---- a layer of weights on the GEMM core (gemm_tiles.cc, unit_streams.cc): how it is cut so that each piece
// fits the memories on the chip, the order of the pieces, and the instructions.

// The rules of src/vta/isa/vta.h charge for what an instruction works on, not for the instruction. Tiles
// are chosen as if each took this much more: its fetch (16 bytes) and the latency of the arithmetic that a
// new one starts with. Without it the smallest tiles would always look best, and streams would be as long as
// the data.
inline constexpr int64_t kInstructionCycles = 16;

// A layer as far as its tiles depend on it.
struct TileProblem {
  Geometry geometry;
  int64_t weight_planes = 1;
  int64_t num_constants = 0;  // per channel, in ACC
  int64_t alu_cycles = 0;     // per element of ACC
  ActivationLayout input;     // its borders are at least the window's padding
  ActivationLayout output;

  // Blocks of input channels that a block of output channels is a sum over: all, and its own one of a
  // depthwise layer, whose weights are diagonal.
  int64_t in_blocks() const { return geometry.is_depthwise() ? 1 : blocks(geometry.in_c); }
  int64_t out_blocks() const { return blocks(geometry.out_c); }
};

// A tile is rows x cols positions of the output for out_blocks blocks of channels; its accumulators are
// formed from in_blocks blocks of the input at a time. The last ones along each axis are smaller.
struct Tiling {
  int64_t rows = 1, cols = 1, out_blocks = 1, in_blocks = 1;
  // Order of tiles: all blocks of output channels of one place, then the next place; or the other way round.
  bool place_by_place = false;
  // Pieces that are on the chip at a time: with two, one is loaded or stored while the other is in use.
  int64_t inp_slots = 1, wgt_slots = 1, acc_slots = 1;
  // Whether the constants of all channels lie in ACC, or only those of one tile.
  bool keeps_constants = true;
  int64_t cycles = 0;  // what the choice took it to cost

  int64_t positions() const { return rows * cols; }
  int64_t acc_slot_elements() const { return positions() * out_blocks; }
  int64_t constant_blocks(const TileProblem& problem) const {
    return keeps_constants ? problem.out_blocks() : out_blocks;
  }
};

// Blocks of input channels on the chip for a tile of so many blocks of output channels.
inline int64_t inp_slot_blocks(const TileProblem& problem, int64_t out_blocks, int64_t in_blocks) {
  return problem.geometry.is_depthwise() ? out_blocks : in_blocks;
}
// Positions of the input that `count` positions of the output look at.
inline int64_t window_extent(int64_t count, int64_t stride, int64_t window) {
  return (count - 1) * stride + window;
}
int64_t inp_slot_elements(const TileProblem& problem, const Tiling& tiling);
int64_t wgt_slot_elements(const TileProblem& problem, const Tiling& tiling);

// The cheapest by the costs of src/vta/isa/vta.h. PackError (QPLAN_MODEL_UNSUPPORTED) with the numbers
// where no tile fits; name: the layer's, for that text.
Tiling choose_tiling(const Config& config, const TileProblem& problem, const std::string& name);

// Extents that cut an axis into equal parts but for the last: extent, extent / 2, extent / 3, ... rounded up,
// each once. There are at most 2 sqrt(extent).
inline std::vector<int64_t> even_cuts(int64_t extent) {
  std::vector<int64_t> cuts;
  for (int64_t parts = 1; parts <= extent;) {
    const int64_t cut = (extent + parts - 1) / parts;
    cuts.push_back(cut);
    if (cut == 1) break;
    parts = (extent + cut - 2) / (cut - 1);  // the least number of parts that makes them smaller
  }
  return cuts;
}

// ---- order of work: which piece of input and weights each GEMM needs, which slot of the chip holds it, when
// it is loaded, and which tokens keep a load from overwriting what is still in use

// A piece of the output: positions [y, y + rows) x [x, x + cols), blocks of channels [out_block, +
// out_blocks).
struct Tile {
  int64_t y = 0, x = 0, rows = 0, cols = 0;
  int64_t out_block = 0, out_blocks = 0;
  size_t first_step = 0, num_steps = 0;  // of Work::steps

  int64_t positions() const { return rows * cols; }
};

// A GEMM over in_blocks of the blocks of input channels that its outputs are sums over, from in_block on.
struct Step {
  int64_t in_block = 0, in_blocks = 0;
  // The blocks of the input that it loads or finds loaded: the same ones, and a depthwise layer's those of
  // its tile.
  int64_t inp_block = 0, inp_blocks = 0;
  int64_t inp_slot = 0, wgt_slot = 0;
  bool loads_inp = false, loads_wgt = false;
  // The first load waits for a token of an earlier GEMM, which had its slot in use.
  bool load_waits = false;
  // A later load waits for this GEMM.
  bool frees = false;

  bool loads() const { return loads_inp || loads_wgt; }
};

struct Work {
  std::vector<Tile> tiles;
  std::vector<Step> steps;

  std::span<const Step> steps_of(const Tile& tile) const {
    return std::span(steps).subspan(tile.first_step, tile.num_steps);
  }
};

Work plan_work(const TileProblem& problem, const Tiling& tiling);

// ---- instructions

// Regions of a layer's unit, in this order.
enum LayerRegion : uint32_t { kWeightRegion, kConstantRegion, kUopRegion, kInputRegion, kOutputRegion };
inline constexpr uint32_t kNumLayerRegions = 5;

// The constants and micro-ops of the unit are this function's; weights: in the device's layout.
CompiledUnit emit_gemm_layer(const Config& config, const std::string& name, const TileProblem& problem,
                             const Tiling& tiling, const Requantization& requantization,
                             std::vector<uint8_t> weights);

}  // namespace qplan::vta::compiler

#endif  // QPLAN_SRC_VTA_COMPILER_STREAMS_STREAM_H_
