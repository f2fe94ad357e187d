// The order of a tiled layer's work: which piece of input and weights each GEMM needs, where on the chip it
// lies, when it is loaded, and which tokens keep a load from overwriting what is still in use.
#ifndef QPLAN_SRC_VTA_COMPILER_STEPS_H_
#define QPLAN_SRC_VTA_COMPILER_STEPS_H_

#include <cstdint>
#include <vector>

#include "src/vta/compiler/tile.h"

namespace qplan::target::vta {

// A piece of the output: positions [y, y + rows) x [x, x + cols), blocks of channels [out_block, +
// out_blocks).
struct Tile {
  int64_t y = 0, x = 0, rows = 0, cols = 0;
  int64_t out_block = 0, out_blocks = 0;

  int64_t positions() const { return rows * cols; }
};

// A GEMM over in_blocks of the blocks of input channels that its outputs are sums over, from in_block on.
struct Step {
  size_t tile = 0;
  int64_t in_block = 0, in_blocks = 0;
  // The blocks of the input that it loads or finds loaded: the same ones, and a depthwise layer's those of
  // its tile.
  int64_t inp_block = 0, inp_blocks = 0;
  bool is_first = false, is_last = false;  // of its tile
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
};

Work plan_work(const TileProblem& problem, const Tiling& tiling);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_STEPS_H_
