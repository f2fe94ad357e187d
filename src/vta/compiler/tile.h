// How a layer of GEMM is cut so that each piece fits the memories on the chip.
#ifndef QPLAN_SRC_VTA_COMPILER_TILE_H_
#define QPLAN_SRC_VTA_COMPILER_TILE_H_

#include <cstdint>
#include <string>

#include "src/vta/compiler/config.h"
#include "src/vta/compiler/layout.h"
#include "src/vta/compiler/requantize.h"

namespace qplan::target::vta {

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

// The cheapest by the costs of src/vta/isa/vta_cost.h. PackError (QPLAN_MODEL_UNSUPPORTED) with the numbers
// where no tile fits; name: the layer's, for that text.
Tiling choose_tiling(const Config& config, const TileProblem& problem, const std::string& name);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_TILE_H_
