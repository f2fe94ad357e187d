// Executes a cascade (kernel "chain" of a plan): several layers one after another, a few rows at a time.
//
//   out = layer[last](... layer[1](layer[0](inputs)))
//
// Each layer is a step of another family that makes rows of [n,h,w,c] from rows of one of its inputs
// (RowCut, src/runtime/bind/family.h): conv2d, depthwise_conv2d, add, sub, lut8, avg_pool2d, max_pool2d; the
// first one also quantize and transpose, from an image of channels in planes, and resize_bilinear, which
// reads any row of its input; the last one also arg_max along the channels, which makes rows of [n,h,w] or
// [n,h,w,1]. What lies between two layers is never whole: a tile in scratch memory holds the rows of it that
// the next rows of output are made of. Rows that two blocks of output share stay in the tile, so that nothing
// is computed twice but where another task begins. Layers that compute element by element do so in the tile
// of the layer before them. The bytes of the output are those that the layers would give one after another.
#ifndef QPLAN_SRC_RUNTIME_CASCADE_H_
#define QPLAN_SRC_RUNTIME_CASCADE_H_

#include <stddef.h>
#include <stdint.h>

#include "src/runtime/bind/family.h"

namespace qplan {

// As many as a plan may have.
inline constexpr uint32_t kMaxCascadeLayers = 4;

// Rows of output that are made at a time.
enum CascadeKnob : uint32_t { kCascadeBlockRows };
inline constexpr Knob kCascadeKnobs[] = {{"block_rows", KnobKind::kTile, 8, {1, 2, 4, 8, 16, 32, 3, 6}}};

// Where the schedule does not say: the fewest times 4 rows that make this many pixels of output, as vectors
// of the depthwise kernels take up to four rows, or as many fewer as divide the output evenly among as many
// blocks, and so among threads; but one row for the reference, which gains nothing from more and runs where
// memory is short.
inline constexpr uint32_t kCascadeBlockPixels = 224;

// Families of layers.
struct LayerFamilies {
  const KernelFamily* const* families;
  uint32_t num_families;
  bool gives_indices = false;  // arg_max is one of them

  // num_families for others.
  uint32_t position_of(uint16_t kernel) const;
  // Null for others.
  const KernelFamily* find(uint16_t kernel) const;
};

// All that may be layers, with all variants.
extern const LayerFamilies kCascadeLayerFamilies;

// Room for the arguments of a layer, whichever family it has; where pointers have 32 bits, as many bytes as
// such a processor keeps of each at the beginning of the scratch.
inline constexpr size_t kKeptLayerBytes = 248;
inline constexpr size_t kLayerArgsBytes = sizeof(void*) == 4 ? kKeptLayerBytes : kMaxArgsBytes;
// The arguments of a layer: in the room that the step's view has, or on the stack of the function that asks,
// which must be no loop's. How many bytes of stack is hidden from the compiler, which would make them a part
// of the frame whether there is room or not.
inline void* layer_room(const StepView& step, void* on_stack) {
  return step.room != nullptr ? step.room : on_stack;
}
inline size_t stack_for_layer(const StepView& step) {
  size_t bytes = step.room != nullptr ? 0 : kLayerArgsBytes;
  __asm__("" : "+r"(bytes));
  return bytes;
}
// What init's questions have in the step's room: the arguments of a layer, and then what is kept of each. As
// many bytes as processors of 32 bits need, which alone give a step room.
inline constexpr size_t kKeptOfLayerBytes = 32;
inline constexpr size_t kInitRoomBytes = kLayerArgsBytes + kMaxCascadeLayers * kKeptOfLayerBytes;
#define QPLAN_LAYER_ROOM(step) \
  layer_room(step, __builtin_alloca_with_align(stack_for_layer(step), 8 * kArgsAlignment))

// The arguments of a step that has been checked. Those of its layers are bound again where a run begins, as
// they are larger than what an executor keeps of a step.
struct CascadeArgs {
  StepView step;
  const LayerFamilies* families = nullptr;
  uint32_t num_layers = 0;  // [2, kMaxCascadeLayers]
  uint32_t batch = 0;
  uint32_t output_h = 0;
  uint32_t output_w = 0;
  uint32_t wanted_rows = 0;  // of a block, by the schedule; 0: as is best
  // The output takes the place of an input, or of its beginning: blocks run one after another, as one work
  // item.
  bool is_in_place = false;
  // Before the tiles the scratch has room for the arguments of so many layers: of all, which keep them there,
  // of one, or of none.
  uint8_t num_rooms = 0;
  // The step's view has room for what init's questions share, and it is filled.
  bool shares_layers = false;
  // Init asks, and the step's view has room of kInitRoomBytes.
  bool has_init_room = false;
};

// Where the step's view has room for what init shares (StepView::tensors_before_room): begins with the tiles.
void cascade_begin_sharing(const StepView& cascade);
// The arguments of a layer, which bind fills when it has checked them.
void* cascade_shared_args(const StepView& cascade, uint32_t index);
// What has been found out of it. family: its position.
void cascade_share_layer(const StepView& cascade, uint32_t index, uint32_t family, uint32_t moving);
// All layers are bound: the questions about args find what they need.
void cascade_share_layers(CascadeArgs* args);

// Rows of output of a block, [1, output_h], of layers up to `isa`.
uint32_t cascade_block_rows(uint32_t output_h, uint32_t output_w, uint32_t wanted_rows, uint32_t isa);
// Rows of that input of a layer that so many rows of its output take at most. args: of the family.
uint32_t cascade_input_rows(const StepTensor& input, const KernelFamily& family, const void* args,
                            uint32_t rows);

// The step that layer `index` is.
StepView cascade_layer(const StepView& cascade, uint32_t index);
// The same with the cascade's parameters at hand.
StepView cascade_layer(const StepView& cascade, const format::CascadeParams& params, uint32_t index);
// The input of a layer whose rows come and go: the tile before it; of the first layer an activation.
// num_inputs of the layer if no input of it moves.
uint32_t cascade_moving_input(const StepView& layer, const KernelFamily& family);

// Whether a layer, neither the first nor the last, computes in the place of the tile before it, which then
// needs no memory. args: of the family.
bool cascade_layer_is_in_place(const StepView& layer, const KernelFamily& family, const void* args);

// Where the output ends that begins at the same byte as an input: where that does, or before.
enum class Extent : uint8_t { kSame, kSmaller };

// Whether the output may take the place of that input of a step: of the first layer's, whose rows are all
// read before the rows of the output that overwrite them, or of the residual of the last layer, which is read
// with them. An output that is smaller may be over the beginning of the first layer's input alone.
bool cascade_may_be_in_place(const CascadeArgs& args, uint32_t input, Extent extent);
// Whether the families have a variant for each layer; those with references always do.
bool cascade_has_variants(const CascadeArgs& args, uint32_t isa);
// Bytes of all tiles.
uint64_t cascade_tile_bytes(const CascadeArgs& args, uint32_t isa);
// Scratch of a worker whose layers use variants up to `isa`: the tiles, and the most that a layer takes.
size_t cascade_scratch_bytes(const CascadeArgs& args, uint32_t isa);
// KernelFamily::work: that of the layers, and the bytes of tiles that move for each row of output. Each task
// computes again what the one before it left in its tiles.
uint64_t cascade_work(const CascadeArgs& args);
// Work items: blocks of rows, image by image.
uint32_t cascade_work_items(const CascadeArgs& args, uint32_t isa);
void cascade_run(const CascadeArgs& args, uint32_t isa, uint32_t begin, uint32_t end, void* scratch);

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_CASCADE_H_
