// Streams of the ALU alone: tiles that the compute module loads into ACC (widened from 8 bits), works on and
// hands to the store module. While a tile is stored, the next one is computed in another slot.
#ifndef QPLAN_SRC_VTA_COMPILER_STREAMS_ALU_STREAM_H_
#define QPLAN_SRC_VTA_COMPILER_STREAMS_ALU_STREAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/vta/compiler/streams/alu_steps.h"
#include "src/vta/compiler/streams/stream.h"

namespace qplan::vta::compiler {

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

}  // namespace qplan::vta::compiler

#endif  // QPLAN_SRC_VTA_COMPILER_STREAMS_ALU_STREAM_H_
