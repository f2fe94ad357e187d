// The loop over blocks of rows: from the output back, which rows each layer has to make; then forth, layer by
// layer, each by the variant that its own family chooses.
#include "src/runtime/cascade.h"

#include "format/plan_view.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/cpu.h"
#include "kernels/elementwise/add.h"
#include "kernels/numeric/wide.h"
#include "src/base/checked.h"

namespace qplan {
namespace {

constexpr size_t kAlignment = 64;

template <typename Integer>
Integer round_up_64(Integer bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The arguments of all layers take kilobytes. Processors of 64 bits keep them on the stack, which saves 1 to
// 2 % of a network's time. Those of 32 bits have them in scratch memory, where the plan says so; elsewhere
// they bind those of a layer again for each block of rows.
constexpr bool kIsOnStack = sizeof(void*) > 4;

static_assert(sizeof(Conv2dArgs) <= kLayerArgsBytes && sizeof(AddArgs) <= kLayerArgsBytes,
              "what families of layers take");
static_assert(kIsOnStack || kLayerArgsBytes % kArgsAlignment == 0, "arguments follow one another in scratch");

// What is kept of the layers, on the stack of the function that asks.
#define QPLAN_LAYER_STORAGE(args) \
  static_cast<Layer*>(__builtin_alloca_with_align((args).num_layers * sizeof(Layer), 8 * alignof(Layer)))

template <bool kKept>
struct KeptArgs {
  alignas(kArgsAlignment) uint8_t bytes[kLayerArgsBytes];
  void keep(const void* args) { __builtin_memcpy(bytes, args, sizeof(bytes)); }
  void copy_to(void* args) const { __builtin_memcpy(args, bytes, sizeof(bytes)); }
};
template <>
struct KeptArgs<false> {
  void keep(const void*) {}
  void copy_to(void*) const {}
};

// What is kept of a layer while a cascade runs. It is on the stack, so that its view is made again when it is
// asked for, and sizes have the width of addresses: init has checked that the tiles fit into memory.
struct Layer : KeptArgs<kIsOnStack> {
  const KernelFamily* family;
  uint32_t moving;     // input
  size_t output_row;   // bytes
  size_t tile_offset;  // of its output in scratch, or kTileOfNext; the last layer has none
  uint32_t tile_rows;  // that the tile holds; of the last layer, those of a block
  RowWindow window;    // of the moving input, with the rows that it has
};

constexpr bool is_convolution(uint16_t kernel) {
  return kernel == kKernel_conv2d || kernel == kKernel_depthwise_conv2d;
}

// The next layer computes in place, so that the output is where the next one's is.
constexpr size_t kTileOfNext = SIZE_MAX;

// What the questions that init asks about a cascade share, in the room that the step's view has: each would
// bind all layers again, thousands of instructions.
struct SharedLayers {
  // Those that bind has checked; where they are not kept in `layer`, layer_scratch cuts them.
  alignas(kArgsAlignment) uint8_t args[kMaxCascadeLayers][kLayerArgsBytes];
  Layer layer[kMaxCascadeLayers];
  size_t input_row, input_image;  // as Layers has them
  uint64_t work;
  uint32_t isa;  // whose scratch this is; kNoIsa: of none yet
  size_t scratch;
};
constexpr uint32_t kNoIsa = UINT32_MAX;
constexpr size_t kTileEntryBytes = (kMaxCascadeLayers - 1) * sizeof(StepTensor);
static_assert(kTileEntryBytes + alignof(SharedLayers) + sizeof(SharedLayers) <= kCascadeRoomBytes,
              "what the view has room for");

StepTensor* shared_tiles(const StepView& cascade) {
  // NOLINTNEXTLINE: what follows the table is the cascade's.
  return const_cast<StepTensor*>(cascade.tensors) + cascade.tensors_before_room;
}
SharedLayers* shared_layers(const StepView& cascade) {
  constexpr uintptr_t kMask = alignof(SharedLayers) - 1;
  const auto end = reinterpret_cast<uintptr_t>(shared_tiles(cascade) + kMaxCascadeLayers - 1);
  return reinterpret_cast<SharedLayers*>((end + kMask) & ~kMask);
}

// Where a plan has room for arguments in scratch memory: bytes at its beginning.
size_t room_bytes(const CascadeArgs& args) { return round_up_64(args.num_rooms * kKeptLayerBytes); }

// isa: whose tiles these are; kNoIsa: nobody asks for tiles.
struct Layers {
  const CascadeArgs& cascade;
  const format::CascadeParams* const params;
  uint8_t* const room;        // for the arguments of one layer, or of all
  const size_t room_of_next;  // bytes from a layer's to the next one's; 0: all share it
  Layer* const layer;         // count() of them
  const uint32_t block_rows;  // of output
  size_t input_row = 0;       // bytes of a row that the first layer reads, where it reads planes of one
  size_t input_image = 0;     // and of an image
  uint64_t tile_bytes = 0;    // of all tiles

  Layers(const CascadeArgs& args, uint32_t isa, void* layer_room, Layer* layers, size_t next = 0)
      : Layers(args, isa, args.shares_layers ? shared_layers(args.step) : nullptr, layer_room, layers, next) {
    if (args.shares_layers) {
      input_row = shared_layers(args.step)->input_row;
      input_image = shared_layers(args.step)->input_image;
    } else {
      for (uint32_t i = 0; i < count(); ++i) bind(i, false);
    }
    if (isa != kNoIsa) lay_out_tiles();
  }
  // With arguments that bind has checked, for the others to share.
  Layers(const CascadeArgs& args, SharedLayers* shared, void* layer_room)
      : Layers(args, QPLAN_ISA_REFERENCE, shared, layer_room, nullptr, 0) {
    for (uint32_t i = 0; i < count(); ++i) bind(i, true);
    lay_out_tiles();
    shared->input_row = input_row;
    shared->input_image = input_image;
  }

  void lay_out_tiles() {
    uint32_t rows = block_rows;
    for (uint32_t i = count(); i-- > 0;) {
      Layer& at = layer[i];
      at.tile_rows = rows;
      rows = at.window.span(rows);
    }
    for (uint32_t i = 0; i + 1 < count(); ++i) {
      if (layer[i].tile_offset == kTileOfNext) continue;
      layer[i].tile_offset = static_cast<size_t>(tile_bytes);
      tile_bytes += round_up_64(uint64_t{layer[i].tile_rows} * layer[i].output_row);
    }
  }

  uint32_t count() const { return cascade.num_layers; }
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
  Layers(const CascadeArgs& args, uint32_t isa, SharedLayers* shared, void* layer_room, Layer* layers,
         size_t next)
      : cascade(args),
        params(args.step.step->params_as_CascadeParams()),
        room(!kIsOnStack && shared != nullptr ? shared->args[0] : static_cast<uint8_t*>(layer_room)),
        room_of_next(!kIsOnStack && shared != nullptr ? kLayerArgsBytes : next),
        layer(shared != nullptr ? shared->layer : layers),
        block_rows(cascade_block_rows(args.output_h, args.output_w, args.wanted_rows, isa)) {}

  // Cannot fail: the session's init has bound and checked each layer.
  __attribute__((noinline)) void bind_args(uint32_t i) const {
    (void)layer[i].family->bind(view(i), false, room_of(i), nullptr);
  }

  void bind(uint32_t i, bool is_bound) {
    Layer& at = layer[i];
    const uint32_t input_h = measure(i, is_bound);
    if (!is_bound) bind_args(i);
    const void* const args = is_bound ? cascade_shared_args(cascade.step, i) : room_of(i);
    at.window = at.family->row_cut->window(args);
    if (at.window.input_h > input_h) at.window.input_h = input_h;
    at.tile_offset = 0;
    const bool may_be = i > 0 && i + 1 < count() && !is_convolution(at.family->id);
    if (may_be && is_in_place(i, args)) layer[i - 1].tile_offset = kTileOfNext;
    at.keep(args);
  }

  // Whether layer i computes in the tile of the layer before it. This is a function of its own to keep the
  // stack short, and not called for convolutions, whose binding takes most of the stack.
  __attribute__((noinline)) bool is_in_place(uint32_t i, const void* args) const {
    return cascade_layer_is_in_place(view(i), *layer[i].family, args);
  }

  // Returns the rows of the moving input.
  __attribute__((noinline)) uint32_t measure(uint32_t i, bool is_known) {
    Layer& at = layer[i];
    const StepView of_layer = view(i);
    if (!is_known) {
      at.family = cascade.families->find(of_layer.step->kernel());
      at.moving = cascade_moving_input(of_layer, *at.family);
    }
    at.output_row = row_bytes(of_layer, of_layer.outputs()->Get(0));
    const uint32_t input = of_layer.inputs()->Get(at.moving);
    const RowCut& row_cut = *at.family->row_cut;
    const bool of_planes = row_cut.reads_planes != nullptr && row_cut.reads_planes(of_layer);
    const auto rows = static_cast<uint32_t>(of_layer.extents(input)[of_planes ? 2 : 1]);
    if (i == 0) {
      input_image = image_bytes(of_layer, input);
      input_row = input_image / rows;
      if (of_planes) input_row /= static_cast<uint32_t>(of_layer.extents(input)[1]);
    }
    return rows;
  }
  size_t row_bytes(const StepView& of_layer, uint32_t tensor) const {
    const auto rows = static_cast<uint32_t>(of_layer.extents(tensor)[1]);
    return image_bytes(of_layer, tensor) / rows;
  }
  size_t image_bytes(const StepView& of_layer, uint32_t tensor) const {
    return static_cast<size_t>(wide_quotient(of_layer.size_bytes(tensor), cascade.batch));
  }
};

const KernelVariant* variant_for(const Layer& layer, const StepView& view, const void* args, uint32_t isa,
                                 size_t scratch) {
  const auto schedule = format::TableFields(view.step).scalar<uint64_t>(format::KernelStep::VT_SCHEDULE);
  return choose_variant(*layer.family, args, isa, scratch, schedule);
}

// What a layer takes for the most rows that it makes at once: no family takes more for fewer. SIZE_MAX where
// no variant makes these.
size_t layer_scratch(const Layers& layers, uint32_t i, uint32_t isa) {
  void* const args = layers.get_args(i);
  const Layer& layer = layers.layer[i];
  const CutRows rows = {layer.moving, layer.window, 0, {0, layer.tile_rows}, nullptr, nullptr};
  const StepView view = layers.view(i);
  layer.family->row_cut->cut(view, rows, args);
  const KernelVariant* const variant = variant_for(layer, view, args, isa, SIZE_MAX);
  return variant == nullptr ? SIZE_MAX : round_up_64(variant->scratch_bytes(args));
}

size_t most_layer_scratch(const Layers& layers, uint32_t isa) {
  size_t most = 0;
  for (uint32_t i = 0; i < layers.count(); ++i) {
    const size_t bytes = layer_scratch(layers, i, isa);
    if (bytes > most) most = bytes;
  }
  return most;
}

// Whether the first layer, while rows of output from y on are made, reads nothing before the bytes of row y.
// More rows at a time read further ahead.
__attribute__((noinline)) bool reads_ahead(const Layers& layers) {
  const auto output_h = static_cast<uint32_t>(layers.cascade.step.output(0).extents[1]);
  uint32_t held[kMaxCascadeLayers] = {};  // ends of the rows that tiles have had
  for (uint32_t y = 0; y < output_h; ++y) {
    Rows make = {y, y + 1};
    uint32_t i = layers.count() - 1;
    for (; i > 0; --i) {
      const Rows need = layers.layer[i].window.reads(make);
      make = {need.begin < held[i - 1] ? held[i - 1] : need.begin, need.end};
      held[i - 1] = need.end;
      if (make.begin >= make.end) break;
    }
    const uint64_t begin = uint64_t{layers.layer[0].window.reads(make).begin} * layers.input_row;
    if (i == 0 && begin < uint64_t{y} * layers.layer[layers.count() - 1].output_row) return false;
  }
  return true;
}

// Whether the output is as large as the tensor, or smaller, with as many images, and as many rows. A function
// of its own to keep the stack short, as the next one is.
__attribute__((noinline)) bool has_extent(const StepView& layer, uint32_t tensor, uint32_t output,
                                          Extent extent, bool has_same_rows) {
  const int64_t *from = layer.extents(tensor), *to = layer.extents(output);
  const uint64_t read = layer.size_bytes(tensor), written = layer.size_bytes(output);
  const bool fits = extent == Extent::kSame ? written == read : written < read;
  return layer.rank(tensor) == 4 && fits && from[0] == to[0] && (!has_same_rows || from[1] == to[1]);
}

// Whether the last layer's output may take the place of that input of layer i, or of its beginning; of the
// first layer's input if that is read ahead.
__attribute__((noinline)) bool layer_may_be_in_place(const Layers& layers, uint32_t i, uint32_t input,
                                                     Extent extent) {
  const bool is_first = i == 0 && input == layers.layer[0].moving;
  const bool is_residual =
      i + 1 == layers.count() && input != layers.layer[i].moving && extent == Extent::kSame;
  if (!is_first && !is_residual) return false;
  const StepView layer = layers.view(i);
  const uint32_t output = layers.cascade.step.step->outputs()->Get(0);
  return is_convolution(layer.step->kernel()) &&
         has_extent(layer, layer.inputs()->Get(input), output, extent, is_residual) &&
         (!is_residual || layers.layer[i].family->in_place(layer, 0, input));
}

// Under which no layer is bound: where that happens the stack is short.
__attribute__((noinline)) bool layers_may_be_in_place(const Layers& layers, uint32_t input, Extent extent) {
  const uint32_t tensor = layers.cascade.step.step->inputs()->Get(input);
  bool is_first = false;
  for (uint32_t i = 0; i < layers.count(); ++i) {
    const auto* inputs = layers.params->layers()->Get(i)->inputs();
    for (uint32_t k = 0; k < format::count_of(inputs); ++k) {
      if (inputs->Get(k) != tensor) continue;
      if (!layer_may_be_in_place(layers, i, k, extent)) return false;
      is_first = is_first || i == 0;
    }
  }
  return !is_first || reads_ahead(layers);
}

// Rows that a layer makes for a block: what its arguments depend on, but for where rows are.
struct MadeShape {
  uint32_t output_rows, input_rows;
  int64_t above;  // rows of the first window that are above the first row that is read
  bool is_in_place;

  bool operator==(const MadeShape& other) const {
    return output_rows == other.output_rows && input_rows == other.input_rows && above == other.above &&
           is_in_place == other.is_in_place;
  }
};

struct Choice {
  const KernelVariant* variant;
  uint32_t work_items;
};

// What was chosen for a layer, and for which rows: nearly all blocks have as many, and to choose takes as
// many instructions as some blocks.
template <bool kKept>
struct KeptChoice {
  Choice choice;  // without a variant: nothing has been chosen
  MadeShape shape;

  void forget_choice() { choice.variant = nullptr; }
  template <typename Choose>
  Choice choice_for(const MadeShape& wanted, Choose choose) {
    if (choice.variant == nullptr || !(shape == wanted)) {
      choice = choose();
      shape = wanted;
    }
    return choice;
  }
};
template <>
struct KeptChoice<false> {
  void forget_choice() {}
  template <typename Choose>
  Choice choice_for(const MadeShape&, Choose choose) {
    return choose();
  }
};

// Rows of a layer's output, of the image at hand: while a cascade runs, those of all layers follow what is
// kept of them.
struct MadeRows : KeptChoice<kIsOnStack> {
  Rows held;       // those that the tile has; of the last layer, those of the block
  uint32_t first;  // of those, the first one that the block has to make

  Rows made() const { return {first, held.end}; }
  void set(Rows new_held, uint32_t new_first) {
    held = new_held;
    first = new_first;
  }
};

class Run {
 public:
  __attribute__((noinline))
  // room: for the arguments of one layer; null: the scratch has rooms.
  Run(const CascadeArgs& args, uint32_t isa, void* scratch, void* room, Layer* layers)
      : layers_(args, isa, room == nullptr ? scratch : room, layers,
                room == nullptr && args.num_rooms > 1 ? kKeptLayerBytes : 0),
        isa_(isa),
        rows_(reinterpret_cast<MadeRows*>(layers + args.num_layers)),
        tiles_(static_cast<uint8_t*>(scratch) + room_bytes(args)),
        scratch_bytes_(most_layer_scratch(layers_, isa)) {
    for (uint32_t i = 0; kIsOnStack && i < layers_.count(); ++i) rows_[i].forget_choice();
  }

  void work_items(uint32_t begin, uint32_t end) {
    const uint32_t blocks = (args().output_h + layers_.block_rows - 1) / layers_.block_rows;
    if (args().is_in_place) {
      begin = 0;
      end = args().batch * blocks;
    }
    for (uint32_t work_item = begin; work_item < end; ++work_item) {
      const uint32_t image = work_item / blocks, first = work_item % blocks * layers_.block_rows;
      if (work_item == begin || first == 0) forget();
      for (uint32_t i = plan_block(first); i < layers_.count(); ++i) run(i, image);
    }
  }

 private:
  const CascadeArgs& args() const { return layers_.cascade; }

  void forget() {
    for (uint32_t i = 0; i < layers_.count(); ++i) rows_[i].held = {0, 0};
  }

  // Which rows each layer makes for the block of output from row `first` on; returns the first layer that
  // makes any.
  __attribute__((noinline)) uint32_t plan_block(uint32_t first) const {
    uint32_t i = layers_.count() - 1;
    const uint32_t rest = args().output_h - first;
    rows_[i].set({first, first + (rest < layers_.block_rows ? rest : layers_.block_rows)}, first);
    for (; i > 0; --i) {
      advance(i);
      const Rows made = rows_[i - 1].made();
      if (made.begin == made.end) break;
    }
    return i;
  }

  // Moves the tile before a layer on to the rows that the layer reads.
  void advance(uint32_t layer) const {
    const Layer& writer = layers_.layer[layer - 1];
    const Rows need = layers_.layer[layer].window.reads(rows_[layer].made()), held = rows_[layer - 1].held;
    uint32_t first = need.begin;
    // A layer in place reads each row once: it keeps none.
    if (need.begin < held.end) {
      uint8_t* tile = tiles_ + writer.tile_offset;
      const size_t kept = (held.end - need.begin) * writer.output_row;
      if (need.begin > held.begin) {
        __builtin_memmove(tile, tile + (need.begin - held.begin) * writer.output_row, kept);
      }
      first = held.end;
    }
    rows_[layer - 1].set(need, first);
  }

  void run(uint32_t index, uint32_t image) const {
    const Choice choice = prepare(index, image);
    choice.variant->run(layers_.room_of(index), 0, choice.work_items, tiles_ + layers_.tile_bytes);
  }

  // A function of its own, whose stack is free while the layer runs.
  __attribute__((noinline)) Choice prepare(uint32_t index, uint32_t image) const {
    const Layer& layer = layers_.layer[index];
    const Rows output = rows_[index].made();
    const StepView view = layers_.view(index);
    const Rows need = layer.window.reads(output);
    const uint8_t* rows;
    if (index == 0) {
      rows = static_cast<const uint8_t*>(view.input_data(layer.moving)) + image * layers_.input_image +
             need.begin * layers_.input_row;
    } else {
      rows = tile_rows(index - 1, need.begin);
    }
    uint8_t* to;
    if (index + 1 == layers_.count()) {
      to = static_cast<uint8_t*>(view.output_data(0)) +
           (size_t{image} * args().output_h + output.begin) * layer.output_row;
    } else {
      to = tile_rows(index, output.begin);
    }
    void* const args = layers_.get_args(index);
    layer.family->row_cut->cut(view, {layer.moving, layer.window, image, output, rows, to}, args);
    const int64_t above = int64_t{need.begin} - int64_t{output.begin} * layer.window.stride;
    const MadeShape shape = {output.end - output.begin, need.end - need.begin, above, rows == to};
    return rows_[index].choice_for(shape, [&] {
      const KernelVariant* const variant = variant_for(layer, view, args, isa_, scratch_bytes_);
      return Choice{variant, variant->work_items(args)};
    });
  }

  // A row of a layer's output and those after it. Where the next layer is in place, they are the rows that it
  // makes, each of the same row of its input.
  uint8_t* tile_rows(uint32_t index, uint32_t row) const {
    const uint32_t tile = layers_.tile_of(index);
    const Layer& layer = layers_.layer[tile];
    return tiles_ + layer.tile_offset + (row - rows_[tile].held.begin) * layer.output_row;
  }

  const Layers layers_;
  const uint32_t isa_;
  MadeRows* const rows_;  // of each layer
  uint8_t* const tiles_;
  const size_t scratch_bytes_;
};

}  // namespace

uint32_t cascade_block_rows(uint32_t output_h, uint32_t output_w, uint32_t wanted_rows, uint32_t isa) {
  if (wanted_rows != 0) return wanted_rows < output_h ? wanted_rows : output_h;
  if (!isa_has_vectors(isa)) return 1;
  const uint32_t rows = ((kCascadeBlockPixels - 1) / output_w + 4) / 4 * 4;
  if (rows >= output_h) return output_h;
  // Blocks of one size, so that two threads have as many rows.
  const uint32_t blocks = (output_h + rows - 1) / rows;
  return (output_h + blocks - 1) / blocks;
}

bool cascade_layer_is_in_place(const StepView& layer, const KernelFamily& family, const void* args) {
  if (is_convolution(layer.step->kernel())) return false;
  const uint32_t moving = cascade_moving_input(layer, family);
  const RowWindow window = family.row_cut->window(args);
  const uint32_t input = layer.step->inputs()->Get(moving), output = layer.step->outputs()->Get(0);
  return window.stride == 1 && window.pad_top == 0 && window.window == 1 &&
         layer.extents(input)[1] == layer.extents(output)[1] &&
         layer.size_bytes(input) == layer.size_bytes(output) && family.in_place(layer, 0, moving);
}

uint32_t cascade_input_rows(const StepTensor& input, const KernelFamily& family, const void* args,
                            uint32_t rows) {
  const uint32_t span = family.row_cut->window(args).span(rows);
  const auto input_h = static_cast<uint32_t>(input.extents[1]);
  return span < input_h ? span : input_h;
}

bool cascade_has_variants(const CascadeArgs& args, uint32_t isa) {
  const Layers layers(args, isa, QPLAN_LAYER_ROOM(args.step), QPLAN_LAYER_STORAGE(args));
  for (uint32_t i = 0; i < layers.count(); ++i) {
    const void* const bound = layers.get_args(i);
    if (variant_for(layers.layer[i], layers.view(i), bound, isa, SIZE_MAX) == nullptr) return false;
  }
  return true;
}

bool cascade_may_be_in_place(const CascadeArgs& args, uint32_t input, Extent extent) {
  const Layers layers(args, kNoIsa, QPLAN_LAYER_ROOM(args.step), QPLAN_LAYER_STORAGE(args));
  return layers_may_be_in_place(layers, input, extent);
}

uint64_t cascade_tile_bytes(const CascadeArgs& args, uint32_t isa) {
  return Layers(args, isa, QPLAN_LAYER_ROOM(args.step), QPLAN_LAYER_STORAGE(args)).tile_bytes;
}

namespace {
size_t scratch_of(const CascadeArgs& args, uint32_t isa);
}

size_t cascade_scratch_bytes(const CascadeArgs& args, uint32_t isa) {
  if (!args.shares_layers) return scratch_of(args, isa);
  SharedLayers& shared = *shared_layers(args.step);
  if (shared.isa != isa) {
    shared.scratch = scratch_of(args, isa);
    shared.isa = isa;
  }
  return shared.scratch;
}

namespace {

size_t scratch_of(const CascadeArgs& args, uint32_t isa) {
  const Layers layers(args, isa, QPLAN_LAYER_ROOM(args.step), QPLAN_LAYER_STORAGE(args));
  const uint64_t bytes =
      saturating_sum(room_bytes(args) + layers.tile_bytes, most_layer_scratch(layers, isa));
  // More than there are addresses is more than any plan provides.
  return bytes > SIZE_MAX - kAlignment ? SIZE_MAX / kAlignment * kAlignment : static_cast<size_t>(bytes);
}

uint64_t work_of(const Layers& layers) {
  const CascadeArgs& args = layers.cascade;
  uint64_t work = 0;
  uint32_t rows = 1;  // of a layer's output, for one row of the cascade's
  for (uint32_t i = layers.count(); i-- > 0;) {
    const Layer& at = layers.layer[i];
    work = saturating_sum(work, at.family->work(layers.get_args(i)));
    rows = at.window.span(rows);
    if (i == 0) break;  // what the first layer reads does not move
    // Blocks of several rows keep no more rows each, and there are fewer of them.
    work = saturating_sum(work, saturating_product(args.batch, args.output_h, rows, layers.row_read(i)));
  }
  return work;
}

}  // namespace

uint64_t cascade_work(const CascadeArgs& args) {
  if (args.shares_layers) return shared_layers(args.step)->work;
  return work_of(Layers(args, QPLAN_ISA_REFERENCE, QPLAN_LAYER_ROOM(args.step), QPLAN_LAYER_STORAGE(args)));
}

void cascade_begin_sharing(const StepView& cascade) {
  describe_tiles(*cascade.step->params_as_CascadeParams()->tiles(), shared_tiles(cascade));
}

void* cascade_shared_args(const StepView& cascade, uint32_t index) {
  return shared_layers(cascade)->args[index];
}

void cascade_share_layer(const StepView& cascade, uint32_t index, const KernelFamily& family,
                         uint32_t moving) {
  Layer& layer = shared_layers(cascade)->layer[index];
  layer.family = &family;
  layer.moving = moving;
}

void cascade_share_layers(CascadeArgs* args) {
  SharedLayers* const shared = shared_layers(args->step);
  shared->work = work_of(Layers(*args, shared, QPLAN_LAYER_ROOM(args->step)));
  shared->isa = kNoIsa;
  args->shares_layers = true;
}

uint32_t cascade_work_items(const CascadeArgs& args, uint32_t isa) {
  if (args.is_in_place) return 1;
  const uint32_t rows = cascade_block_rows(args.output_h, args.output_w, args.wanted_rows, isa);
  return args.batch * ((args.output_h + rows - 1) / rows);
}

void cascade_run(const CascadeArgs& args, uint32_t isa, uint32_t begin, uint32_t end, void* scratch) {
  static_assert(alignof(Layer) >= alignof(MadeRows), "these follow those");
  const size_t bytes = args.num_layers * (sizeof(Layer) + sizeof(MadeRows));
  auto* const layers = static_cast<Layer*>(__builtin_alloca_with_align(bytes, 8 * alignof(Layer)));
  if (!kIsOnStack && args.num_rooms > 0) {
    Run(args, isa, scratch, nullptr, layers).work_items(begin, end);
  } else {
    Run(args, isa, scratch, QPLAN_LAYER_ROOM(args.step), layers).work_items(begin, end);
  }
}

}  // namespace qplan
