// The loop of a cascade over blocks of rows: from the output back, which rows each layer has to make; then
// forth, layer by layer, each by the variant that its own family chooses.
#include <stddef.h>
#include <stdint.h>

#include "src/runtime/cascade.h"
#include "src/runtime/cascade_layers.h"

namespace qplan {
namespace {

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
// many instructions as some blocks. Its step, too, is found once.
template <bool kKept>
struct KeptChoice {
  Choice choice;  // without a variant: nothing has been chosen
  MadeShape shape;
  StepView view;

  void begin(const StepView& of_layer) {
    choice.variant = nullptr;
    view = of_layer;
  }
  const StepView& view_in(const CascadeLayers&, uint32_t) const { return view; }
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
  void begin(const StepView&) {}
  StepView view_in(const CascadeLayers& layers, uint32_t index) const { return layers.view(index); }
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
  Run(const CascadeArgs& args, uint32_t isa, void* scratch, void* room, CascadeLayer* layers)
      : layers_(args, isa, room == nullptr ? scratch : room, layers,
                room == nullptr && args.num_rooms > 1 ? kKeptLayerBytes : 0),
        isa_(isa),
        rows_(reinterpret_cast<MadeRows*>(layers + args.num_layers)),
        tiles_(static_cast<uint8_t*>(scratch) + room_bytes(args)),
        scratch_bytes_(most_layer_scratch(layers_, isa)) {
    for (uint32_t i = 0; kIsOnStack && i < layers_.count(); ++i) rows_[i].begin(layers_.view(i));
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
    const CascadeLayer& writer = layers_.layer[layer - 1];
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
    choice.variant->run(args_of(index), 0, choice.work_items, tiles_ + layers_.tile_bytes);
  }

  // Those that are kept are cut where they are, again and again.
  void* args_of(uint32_t index) const {
    return kIsOnStack ? layers_.layer[index].in_place() : layers_.room_of(index);
  }

  // A function of its own, whose stack is free while the layer runs.
  __attribute__((noinline)) Choice prepare(uint32_t index, uint32_t image) const {
    const CascadeLayer& layer = layers_.layer[index];
    const Rows output = rows_[index].made();
    const auto& view = rows_[index].view_in(layers_, index);
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
    void* const args = kIsOnStack ? args_of(index) : layers_.get_args(index);
    const KernelFamily& family = layers_.family(index);
    family.row_cut->cut(view, {layer.moving, layer.window, image, output, rows, to}, args);
    const int64_t above = int64_t{need.begin} - int64_t{output.begin} * layer.window.stride;
    const MadeShape shape = {output.end - output.begin, need.end - need.begin, above, rows == to};
    return rows_[index].choice_for(shape, [&] {
      const KernelVariant* const variant = variant_for(family, view, args, isa_, scratch_bytes_);
      return Choice{variant, variant->work_items(args)};
    });
  }

  // A row of a layer's output and those after it. Where the next layer is in place, they are the rows that it
  // makes, each of the same row of its input.
  uint8_t* tile_rows(uint32_t index, uint32_t row) const {
    const uint32_t tile = layers_.tile_of(index);
    const CascadeLayer& layer = layers_.layer[tile];
    return tiles_ + layer.tile_offset + (row - rows_[tile].held.begin) * layer.output_row;
  }

  const CascadeLayers layers_;
  const uint32_t isa_;
  MadeRows* const rows_;  // of each layer
  uint8_t* const tiles_;
  const size_t scratch_bytes_;
};

}  // namespace

void cascade_run(const CascadeArgs& args, uint32_t isa, uint32_t begin, uint32_t end, void* scratch) {
  static_assert(alignof(CascadeLayer) >= alignof(MadeRows), "these follow those");
  const size_t bytes = args.num_layers * (sizeof(CascadeLayer) + sizeof(MadeRows));
  auto* const layers =
      static_cast<CascadeLayer*>(__builtin_alloca_with_align(bytes, 8 * alignof(CascadeLayer)));
  if (!kIsOnStack && args.num_rooms > 0) {
    Run(args, isa, scratch, nullptr, layers).work_items(begin, end);
  } else {
    Run(args, isa, scratch, QPLAN_LAYER_ROOM(args.step), layers).work_items(begin, end);
  }
}

}  // namespace qplan
