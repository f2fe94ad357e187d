// The layers of a cascade, for the questions that init asks (cascade.cc) and for the loop (cascade_run.cc).
#ifndef QPLAN_SRC_RUNTIME_CASCADE_LAYERS_H_
#define QPLAN_SRC_RUNTIME_CASCADE_LAYERS_H_

#include <stddef.h>
#include <stdint.h>

#include "format/plan_view.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/elementwise/add.h"
#include "src/runtime/cascade.h"

namespace qplan {

inline constexpr size_t kTileAlignment = 64;

template <typename Integer>
constexpr Integer round_up_64(Integer bytes) {
  return (bytes + kTileAlignment - 1) / kTileAlignment * kTileAlignment;
}

// The arguments of all layers take kilobytes. Processors of 64 bits keep them on the stack, which saves 1 to
// 2 % of a network's time. Those of 32 bits have them in scratch memory, where the plan says so; elsewhere
// they bind those of a layer again for each block of rows.
inline constexpr bool kIsOnStack = sizeof(void*) > 4;

static_assert(sizeof(Conv2dArgs) <= kLayerArgsBytes && sizeof(AddArgs) <= kLayerArgsBytes,
              "what families of layers take");
static_assert(kIsOnStack || kLayerArgsBytes % kArgsAlignment == 0, "arguments follow one another in scratch");

// What is kept of the layers: in the room that init gives, or on the stack of the function that asks. As for
// QPLAN_LAYER_ROOM.
#define QPLAN_LAYER_STORAGE(args) \
  layer_storage(args, __builtin_alloca_with_align(stack_for_layers(args), 8 * alignof(CascadeLayer)))

template <bool kKept>
struct KeptArgs {
  alignas(kArgsAlignment) uint8_t bytes[kLayerArgsBytes];
  void keep(const void* args) { __builtin_memcpy(bytes, args, sizeof(bytes)); }
  void copy_to(void* args) const { __builtin_memcpy(args, bytes, sizeof(bytes)); }
  void* in_place() { return bytes; }
};
template <>
struct KeptArgs<false> {
  void* in_place() { return nullptr; }
  void keep(const void*) {}
  void copy_to(void*) const {}
};

// What is kept of a layer. It is on the stack, so that its view is made again when it is asked for (64-bit
// processors keep it while a cascade runs: cascade_run.cc), and sizes have the width of addresses: init has
// checked that the tiles fit into memory.
struct CascadeLayer : KeptArgs<kIsOnStack> {
  uint8_t family;      // its position among those of the cascade: a run has this of all layers on its stack
  uint8_t moving;      // input
  size_t output_row;   // bytes
  size_t tile_offset;  // of its output in scratch, or kTileOfNext; the last layer has none
  uint32_t tile_rows;  // that the tile holds; of the last layer, those of a block
  RowWindow window;    // of the moving input, with the rows that it has
};

static_assert(kIsOnStack || sizeof(CascadeLayer) <= kKeptOfLayerBytes, "what init has room for");
static_assert(kIsOnStack || kLayerArgsBytes % alignof(CascadeLayer) == 0, "it follows the arguments");

inline CascadeLayer* layer_storage(const CascadeArgs& args, void* on_stack) {
  if (!args.has_init_room) return static_cast<CascadeLayer*>(on_stack);
  return reinterpret_cast<CascadeLayer*>(static_cast<uint8_t*>(args.step.room) + kLayerArgsBytes);
}
inline size_t stack_for_layers(const CascadeArgs& args) {
  size_t bytes = args.has_init_room ? 0 : args.num_layers * sizeof(CascadeLayer);
  __asm__("" : "+r"(bytes));
  return bytes;
}

constexpr bool is_convolution(uint16_t kernel) {
  return kernel == kKernel_conv2d || kernel == kKernel_depthwise_conv2d;
}

// The next layer computes in place, so that the output is where the next one's is.
inline constexpr size_t kTileOfNext = SIZE_MAX;

struct SharedLayers;  // cascade.cc
inline constexpr uint32_t kNoIsa = UINT32_MAX;

// Where a plan has room for arguments in scratch memory: bytes at its beginning.
inline size_t room_bytes(const CascadeArgs& args) { return round_up_64(args.num_rooms * kKeptLayerBytes); }

// isa: whose tiles these are; kNoIsa: nobody asks for tiles.
struct CascadeLayers {
  const CascadeArgs& cascade;
  const format::CascadeParams* const params;
  uint8_t* const room;        // for the arguments of one layer, or of all
  const size_t room_of_next;  // bytes from a layer's to the next one's; 0: all share it
  CascadeLayer* const layer;  // count() of them
  const uint32_t block_rows;  // of output
  size_t input_row = 0;       // bytes of a row that the first layer reads, where it reads planes of one
  size_t input_image = 0;     // and of an image
  uint64_t tile_bytes = 0;    // of all tiles

  CascadeLayers(const CascadeArgs& args, uint32_t isa, void* layer_room, CascadeLayer* layers,
                size_t next = 0);
  // With arguments that bind has checked, for the others to share.
  CascadeLayers(const CascadeArgs& args, SharedLayers* shared, void* layer_room);

  uint32_t count() const { return cascade.num_layers; }
  const KernelFamily& family(uint32_t i) const { return *cascade.families->families[layer[i].family]; }
  StepView view(uint32_t i) const { return cascade_layer(cascade.step, *params, i); }
  // The layer in whose tile a layer's output is.
  uint32_t tile_of(uint32_t i) const {
    while (layer[i].tile_offset == kTileOfNext) ++i;
    return i;
  }
  // Bytes of a row of the moving input.
  size_t row_read(uint32_t i) const { return i == 0 ? input_row : layer[i - 1].output_row; }

  // Arguments of the layer, which may have been cut.
  void* get_args(uint32_t i) const {
    if (kIsOnStack) {
      layer[i].copy_to(room);
    } else if (room_of_next == 0) {
      bind_args(i);
    }
    return room_of(i);
  }
  void* room_of(uint32_t i) const { return room + i * room_of_next; }

 private:
  CascadeLayers(const CascadeArgs& args, uint32_t isa, SharedLayers* shared, void* layer_room,
                CascadeLayer* layers, size_t next);

  void lay_out_tiles();
  // Cannot fail: the session's init has bound and checked each layer.
  void bind_args(uint32_t i) const;
  // What is kept of a layer whose input has been measured. args: of the layer.
  void keep(uint32_t i, uint32_t input_h, const void* args);
  // Whether layer i computes in the tile of the layer before it.
  bool is_in_place(uint32_t i, const void* args) const;
  // Returns the rows of the moving input.
  uint32_t measure(uint32_t i, bool is_known);
  size_t row_bytes(const StepView& of_layer, uint32_t tensor) const;
  size_t image_bytes(const StepView& of_layer, uint32_t tensor) const;
};

// SIZE_MAX as scratch: as much as it wants.
const KernelVariant* variant_for(const KernelFamily& family, const StepView& view, const void* args,
                                 uint32_t isa, size_t scratch);
// The most scratch that a layer takes at once; SIZE_MAX where one has no variant.
size_t most_layer_scratch(const CascadeLayers& layers, uint32_t isa);

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_CASCADE_LAYERS_H_
