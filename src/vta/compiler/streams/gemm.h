// A layer of weights on the GEMM core: how it is cut so that each piece fits the memories on the chip, the
// order of the pieces, and the instructions.
#ifndef QPLAN_SRC_VTA_COMPILER_STREAMS_GEMM_H_
#define QPLAN_SRC_VTA_COMPILER_STREAMS_GEMM_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/vta/compiler/streams/alu_steps.h"
#include "src/vta/compiler/streams/stream.h"

namespace qplan::vta::compiler {

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

#endif  // QPLAN_SRC_VTA_COMPILER_STREAMS_GEMM_H_
