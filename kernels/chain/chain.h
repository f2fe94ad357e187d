// chain: several layers one after another, a few rows at a time.
//
//   out = stage[last](... stage[1](stage[0](inputs)))
//
// Each stage is a step of another family that makes rows of [n,h,w,c] from rows of one of its inputs
// (RowCut, kernels/kernel.h): conv2d, depthwise_conv2d, add, sub. What lies between two stages is never
// whole: a tile in scratch memory holds the rows of it that the next rows of output are made of. Rows that
// two blocks of output share stay in the tile, so that nothing is computed twice but where another task
// begins. The bytes of the output are those that the stages would give one after another.
#ifndef QPLAN_KERNELS_CHAIN_CHAIN_H_
#define QPLAN_KERNELS_CHAIN_CHAIN_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"
#include "kernels/variant.h"

namespace qplan {

// As many as a plan may have.
inline constexpr uint32_t kMaxChainStages = 4;

// Rows of output that are made at a time.
enum ChainKnob : uint32_t { kChainBlockRows };
inline constexpr Knob kChainKnobs[] = {{"block_rows", KnobKind::kTile, 6, {1, 2, 4, 8, 16, 32}}};

// Where the schedule does not say: the fewest times 4 rows that make this many pixels of output, as vectors
// of the depthwise kernels take up to four rows; but one row for the reference, which gains nothing from more
// and runs where memory is short.
inline constexpr uint32_t kChainBlockPixels = 224;

// Families of stages.
struct StageFamilies {
  const KernelFamily* const* families;
  uint32_t num_families;

  // Null for others.
  const KernelFamily* find(uint16_t kernel) const;
};

// All that may be stages, with all variants.
extern const StageFamilies kChainStages;

// Of a step that has been checked, with the stages' own args: they are bound again where a run begins, as
// they are larger than what an executor keeps of a step.
struct ChainArgs {
  StepView step;
  const StageFamilies* families = nullptr;
  uint32_t num_stages = 0;  // [2, kMaxChainStages]
  uint32_t batch = 0;
  uint32_t output_h = 0;
  uint32_t output_w = 0;
  uint32_t wanted_rows = 0;  // of a block, by the schedule; 0: as is best
};

// Rows of output of a block, [1, output_h], of stages up to `isa`.
uint32_t chain_block_rows(uint32_t output_h, uint32_t output_w, uint32_t wanted_rows, uint32_t isa);
// Rows of that input of a stage that so many rows of its output take at most. args: of the family.
uint32_t chain_input_rows(const StepTensor& input, const KernelFamily& family, const void* args,
                          uint32_t rows);

// The step that stage `index` is.
StepView chain_stage(const StepView& chain, uint32_t index);
// The input of a stage whose rows come and go: the tile before it; of the first stage an activation.
// num_inputs of the stage where there is none.
uint32_t chain_moving_input(const StepView& stage, const KernelFamily& family);

// Bytes of all tiles.
uint64_t chain_tile_bytes(const ChainArgs& args, uint32_t isa);
// Scratch of a worker whose stages use variants up to `isa`: the tiles, and the most that a stage takes.
size_t chain_scratch_bytes(const ChainArgs& args, uint32_t isa);
// KernelFamily::work: that of the stages, and the bytes of tiles that move for each row of output. Each task
// computes again what the one before it left in its tiles.
uint64_t chain_work(const ChainArgs& args);
// Units: blocks of rows, image by image.
uint32_t chain_units(const ChainArgs& args, uint32_t isa);
void chain_run(const ChainArgs& args, uint32_t isa, uint32_t begin, uint32_t end, void* scratch);

}  // namespace qplan

#endif  // QPLAN_KERNELS_CHAIN_CHAIN_H_
