// What init asks about a cascade: its tiles, scratch memory and work, and whether it may be in place.
#include "src/runtime/cascade.h"

#include "kernels/cpu.h"
#include "kernels/numeric/wide.h"
#include "src/base/checked.h"
#include "src/runtime/cascade_layers.h"

namespace qplan {

// What the questions that init asks about a cascade share, in the room that the step's view has: each would
// bind all layers again, thousands of instructions.
struct SharedLayers {
  // Those that bind has checked; where they are not kept in `layer`, layer_scratch cuts them.
  alignas(kArgsAlignment) uint8_t args[kMaxCascadeLayers][kLayerArgsBytes];
  CascadeLayer layer[kMaxCascadeLayers];
  size_t input_row, input_image;  // as CascadeLayers has them
  uint64_t work;
  uint32_t isa;  // whose scratch this is; kNoIsa: of none yet
  size_t scratch;
};
constexpr size_t kTileEntryBytes = (kMaxCascadeLayers - 1) * sizeof(StepTensor);
static_assert(kTileEntryBytes + alignof(SharedLayers) + sizeof(SharedLayers) <= kCascadeRoomBytes,
              "what the view has room for");

namespace {

StepTensor* shared_tiles(const StepView& cascade) {
  // NOLINTNEXTLINE: what follows the table is the cascade's.
  return const_cast<StepTensor*>(cascade.tensors) + cascade.tensors_before_room;
}
SharedLayers* shared_layers(const StepView& cascade) {
  constexpr uintptr_t kMask = alignof(SharedLayers) - 1;
  const auto end = reinterpret_cast<uintptr_t>(shared_tiles(cascade) + kMaxCascadeLayers - 1);
  return reinterpret_cast<SharedLayers*>((end + kMask) & ~kMask);
}

}  // namespace

CascadeLayers::CascadeLayers(const CascadeArgs& args, uint32_t isa, void* layer_room, CascadeLayer* layers,
                             size_t next)
    : CascadeLayers(args, isa, args.shares_layers ? shared_layers(args.step) : nullptr, layer_room, layers,
                    next) {
  if (args.shares_layers) {
    input_row = shared_layers(args.step)->input_row;
    input_image = shared_layers(args.step)->input_image;
  } else {
    for (uint32_t i = 0; i < count(); ++i) {
      const uint32_t input_h = measure(i, false);
      bind_args(i);
      keep(i, input_h, room_of(i));
    }
  }
  if (isa != kNoIsa) lay_out_tiles();
}

CascadeLayers::CascadeLayers(const CascadeArgs& args, SharedLayers* shared, void* layer_room)
    : CascadeLayers(args, QPLAN_ISA_REFERENCE, shared, layer_room, nullptr, 0) {
  for (uint32_t i = 0; i < count(); ++i) keep(i, measure(i, true), cascade_shared_args(cascade.step, i));
  lay_out_tiles();
  shared->input_row = input_row;
  shared->input_image = input_image;
}

CascadeLayers::CascadeLayers(const CascadeArgs& args, uint32_t isa, SharedLayers* shared, void* layer_room,
                             CascadeLayer* layers, size_t next)
    : cascade(args),
      params(args.step.step->params_as_CascadeParams()),
      room(!kIsOnStack && shared != nullptr ? shared->args[0] : static_cast<uint8_t*>(layer_room)),
      room_of_next(!kIsOnStack && shared != nullptr ? kLayerArgsBytes : next),
      layer(shared != nullptr ? shared->layer : layers),
      block_rows(cascade_block_rows(args.output_h, args.output_w, args.wanted_rows, isa)) {}

void CascadeLayers::lay_out_tiles() {
  uint32_t rows = block_rows;
  for (uint32_t i = count(); i-- > 0;) {
    CascadeLayer& at = layer[i];
    at.tile_rows = rows;
    rows = at.window.span(rows);
  }
  for (uint32_t i = 0; i + 1 < count(); ++i) {
    if (layer[i].tile_offset == kTileOfNext) continue;
    layer[i].tile_offset = static_cast<size_t>(tile_bytes);
    tile_bytes += round_up_64(uint64_t{layer[i].tile_rows} * layer[i].output_row);
  }
}

__attribute__((noinline)) void CascadeLayers::bind_args(uint32_t i) const {
  (void)family(i).bind(view(i), false, room_of(i), nullptr);
}

// A function of its own, whose stack is free while layers are bound.
__attribute__((noinline)) void CascadeLayers::keep(uint32_t i, uint32_t input_h, const void* args) {
  CascadeLayer& at = layer[i];
  at.window = family(i).row_cut->window(args);
  if (at.window.input_h > input_h) at.window.input_h = input_h;
  at.tile_offset = 0;
  const bool may_be = i > 0 && i + 1 < count() && !is_convolution(family(i).id);
  if (may_be && is_in_place(i, args)) layer[i - 1].tile_offset = kTileOfNext;
  at.keep(args);
}

// A function of its own to keep the stack short, and not called for convolutions, whose binding takes most of
// it.
__attribute__((noinline)) bool CascadeLayers::is_in_place(uint32_t i, const void* args) const {
  return cascade_layer_is_in_place(view(i), family(i), args);
}

__attribute__((noinline)) uint32_t CascadeLayers::measure(uint32_t i, bool is_known) {
  CascadeLayer& at = layer[i];
  const StepView of_layer = view(i);
  if (!is_known) {
    at.family = static_cast<uint8_t>(cascade.families->position_of(of_layer.step->kernel()));
    at.moving = static_cast<uint8_t>(cascade_moving_input(of_layer, family(i)));
  }
  at.output_row = row_bytes(of_layer, of_layer.outputs()->Get(0));
  const uint32_t input = of_layer.inputs()->Get(at.moving);
  const RowCut& row_cut = *family(i).row_cut;
  const bool of_planes = row_cut.reads_planes != nullptr && row_cut.reads_planes(of_layer);
  const auto rows = static_cast<uint32_t>(of_layer.extents(input)[of_planes ? 2 : 1]);
  if (i == 0) {
    input_image = image_bytes(of_layer, input);
    input_row = input_image / rows;
    if (of_planes) input_row /= static_cast<uint32_t>(of_layer.extents(input)[1]);
  }
  return rows;
}
size_t CascadeLayers::row_bytes(const StepView& of_layer, uint32_t tensor) const {
  const auto rows = static_cast<uint32_t>(of_layer.extents(tensor)[1]);
  return image_bytes(of_layer, tensor) / rows;
}
size_t CascadeLayers::image_bytes(const StepView& of_layer, uint32_t tensor) const {
  return static_cast<size_t>(wide_quotient(of_layer.size_bytes(tensor), cascade.batch));
}

const KernelVariant* variant_for(const KernelFamily& family, const StepView& view, const void* args,
                                 uint32_t isa, size_t scratch) {
  const auto schedule = format::TableFields(view.step).scalar<uint64_t>(format::KernelStep::VT_SCHEDULE);
  return choose_variant(family, args, isa, scratch, schedule);
}

namespace {

// What a layer takes for the most rows that it makes at once: no family takes more for fewer. SIZE_MAX where
// no variant makes these. args: of the layer. A function of its own, whose stack is free while layers are
// bound.
__attribute__((noinline)) size_t layer_scratch(const CascadeLayers& layers, uint32_t i, uint32_t isa,
                                               void* args) {
  const CascadeLayer& layer = layers.layer[i];
  const CutRows rows = {layer.moving, layer.window, 0, {0, layer.tile_rows}, nullptr, nullptr};
  const StepView view = layers.view(i);
  layers.family(i).row_cut->cut(view, rows, args);
  const KernelVariant* const variant = variant_for(layers.family(i), view, args, isa, SIZE_MAX);
  return variant == nullptr ? SIZE_MAX : round_up_64(variant->scratch_bytes(args));
}

}  // namespace

size_t most_layer_scratch(const CascadeLayers& layers, uint32_t isa) {
  size_t most = 0;
  for (uint32_t i = 0; i < layers.count(); ++i) {
    const size_t bytes = layer_scratch(layers, i, isa, layers.get_args(i));
    if (bytes > most) most = bytes;
  }
  return most;
}

namespace {

// Whether the first layer, while rows of output from y on are made, reads nothing before the bytes of row y.
// More rows at a time read further ahead.
__attribute__((noinline)) bool reads_ahead(const CascadeLayers& layers) {
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
__attribute__((noinline)) bool layer_may_be_in_place(const CascadeLayers& layers, uint32_t i, uint32_t input,
                                                     Extent extent) {
  const bool is_first = i == 0 && input == layers.layer[0].moving;
  const bool is_residual =
      i + 1 == layers.count() && input != layers.layer[i].moving && extent == Extent::kSame;
  if (!is_first && !is_residual) return false;
  const StepView layer = layers.view(i);
  const uint32_t output = layers.cascade.step.step->outputs()->Get(0);
  return is_convolution(layer.step->kernel()) &&
         has_extent(layer, layer.inputs()->Get(input), output, extent, is_residual) &&
         (!is_residual || layers.family(i).in_place(layer, 0, input));
}

// Under which no layer is bound: where that happens the stack is short.
__attribute__((noinline)) bool layers_may_be_in_place(const CascadeLayers& layers, uint32_t input,
                                                      Extent extent) {
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

namespace {

// A function of its own, whose stack is free while layers are bound. args: of the layer.
__attribute__((noinline)) bool layer_has_variant(const CascadeLayers& layers, uint32_t i, uint32_t isa,
                                                 const void* args) {
  return variant_for(layers.family(i), layers.view(i), args, isa, SIZE_MAX) != nullptr;
}

}  // namespace

bool cascade_has_variants(const CascadeArgs& args, uint32_t isa) {
  const CascadeLayers layers(args, isa, QPLAN_LAYER_ROOM(args.step), QPLAN_LAYER_STORAGE(args));
  for (uint32_t i = 0; i < layers.count(); ++i) {
    if (!layer_has_variant(layers, i, isa, layers.get_args(i))) return false;
  }
  return true;
}

bool cascade_may_be_in_place(const CascadeArgs& args, uint32_t input, Extent extent) {
  const CascadeLayers layers(args, kNoIsa, QPLAN_LAYER_ROOM(args.step), QPLAN_LAYER_STORAGE(args));
  return layers_may_be_in_place(layers, input, extent);
}

uint64_t cascade_tile_bytes(const CascadeArgs& args, uint32_t isa) {
  return CascadeLayers(args, isa, QPLAN_LAYER_ROOM(args.step), QPLAN_LAYER_STORAGE(args)).tile_bytes;
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
  const CascadeLayers layers(args, isa, QPLAN_LAYER_ROOM(args.step), QPLAN_LAYER_STORAGE(args));
  const uint64_t bytes =
      saturating_sum(room_bytes(args) + layers.tile_bytes, most_layer_scratch(layers, isa));
  // More than there are addresses is more than any plan provides.
  return bytes > SIZE_MAX - kTileAlignment ? SIZE_MAX / kTileAlignment * kTileAlignment
                                           : static_cast<size_t>(bytes);
}

uint64_t work_of(const CascadeLayers& layers) {
  const CascadeArgs& args = layers.cascade;
  uint64_t work = 0;
  uint32_t rows = 1;  // of a layer's output, for one row of the cascade's
  for (uint32_t i = layers.count(); i-- > 0;) {
    const CascadeLayer& at = layers.layer[i];
    work = saturating_sum(work, layers.family(i).work(layers.get_args(i)));
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
  return work_of(
      CascadeLayers(args, QPLAN_ISA_REFERENCE, QPLAN_LAYER_ROOM(args.step), QPLAN_LAYER_STORAGE(args)));
}

void cascade_begin_sharing(const StepView& cascade) {
  describe_tiles(*cascade.step->params_as_CascadeParams()->tiles(), shared_tiles(cascade));
}

void* cascade_shared_args(const StepView& cascade, uint32_t index) {
  return shared_layers(cascade)->args[index];
}

void cascade_share_layer(const StepView& cascade, uint32_t index, uint32_t family, uint32_t moving) {
  CascadeLayer& layer = shared_layers(cascade)->layer[index];
  layer.family = static_cast<uint8_t>(family);
  layer.moving = static_cast<uint8_t>(moving);
}

void cascade_share_layers(CascadeArgs* args) {
  SharedLayers* const shared = shared_layers(args->step);
  shared->work = work_of(CascadeLayers(*args, shared, QPLAN_LAYER_ROOM(args->step)));
  shared->isa = kNoIsa;
  args->shares_layers = true;
}

uint32_t cascade_work_items(const CascadeArgs& args, uint32_t isa) {
  if (args.is_in_place) return 1;
  const uint32_t rows = cascade_block_rows(args.output_h, args.output_w, args.wanted_rows, isa);
  return args.batch * ((args.output_h + rows - 1) / rows);
}

}  // namespace qplan
