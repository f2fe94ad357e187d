#include "src/runtime/cascade.h"

#include "format/plan_view.h"
#include "kernels/variant.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/resize_arg_max.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

using format::CascadeParams;

static_assert(kMaxCascadeLayers == format::kMaxCascadeLayers, "what open() lets through");

const CascadeParams& params_of(const StepView& cascade) { return *cascade.step->params_as_CascadeParams(); }

// Writes "chain: layer 1: conv2d: what is wrong".
__attribute__((noinline)) bool fail_layer(const StepCheck& check, uint32_t index) {
  const Error of_layer = *check.error();
  return check.fail(of_layer.status()) << "layer " << index << ": " << of_layer.text();
}

__attribute__((noinline)) bool check_layer(const StepCheck& check, const LayerFamilies& families,
                                           const StepView& cascade, uint32_t index) {
  const StepView layer = cascade_layer(cascade, index);
  const uint32_t position = families.position_of(layer.step->kernel());
  if (position == families.num_families) {
    return check.fail(QPLAN_KERNEL_MISSING)
           << "layer " << index << ": kernel " << uint32_t{layer.step->kernel()} << " cannot be a layer here";
  }
  const KernelFamily* const family = families.families[position];
  void* const args = layer.has_cascade_room() ? cascade_shared_args(cascade, index) : QPLAN_LAYER_ROOM(layer);
  if (family->bind(layer, true, args, check.error()) < 0) return fail_layer(check, index);
  // open() has checked that the tile before the layer is one of its inputs.
  const uint32_t moving = cascade_moving_input(layer, *family);
  if (layer.has_cascade_room()) cascade_share_layer(cascade, index, position, moving);
  if (moving >= layer.num_inputs()) {
    return check.fail() << "layer " << index << ": " << family->name
                        << " cannot be cut into rows of an input that comes and goes";
  }
  const int64_t batch = layer.output_extents(0)[0], expected = cascade.output_extents(0)[0];
  if (batch != expected) {
    return check.fail() << "layer " << index << ": batch " << batch << " is not the output's " << expected
                        << " of layer " << params_of(cascade).layers()->size() - 1;
  }
  return true;
}

// Images, or of images the indices of arg_max: the last layer's own check says the same of them.
template <bool kGivesIndices>
bool check_output(const StepCheck& check, const StepView& cascade) {
  if constexpr (kGivesIndices) {
    const auto& layers = *params_of(cascade).layers();
    if (layers.Get(layers.size() - 1)->kernel() == kKernel_arg_max) {
      const uint32_t rank = cascade.output(0).rank == 4 ? 4 : 3;
      return check.output(0, "output", dtype_bit(Dtype::kS32) | dtype_bit(Dtype::kS64), rank, nullptr);
    }
  }
  return check.output(0, "output", kDtypesU8S8, 4, nullptr);
}

template <bool kGivesIndices>
bool check_step(const StepCheck& check, const LayerFamilies& families, const StepView& cascade) {
  if (!check.params(format::KernelParams_CascadeParams) || !check.arity(cascade.num_inputs(), 1))
    return false;
  if (!check_output<kGivesIndices>(check, cascade)) return false;
  if (cascade.has_cascade_room()) cascade_begin_sharing(cascade);
  const uint32_t num_layers = params_of(cascade).layers()->size();
  for (uint32_t i = 0; i < num_layers; ++i) {
    if (!check_layer(check, families, cascade, i)) return false;
  }
  const int64_t* output = cascade.output_extents(0);
  return check.range("output rows", output[0] * output[1], 1, INT32_MAX);
}

// in_init: see has_init_room.
void fill_args(const StepView& cascade, const LayerFamilies& families, bool in_init, CascadeArgs& args) {
  const int64_t* output = cascade.output_extents(0);
  const CascadeParams& params = params_of(cascade);
  args.step = cascade;
  args.families = &families;
  args.has_init_room = in_init && cascade.room != nullptr;
  args.num_layers = params.layers()->size();
  args.batch = static_cast<uint32_t>(output[0]);
  args.output_h = static_cast<uint32_t>(output[1]);
  args.output_w = static_cast<uint32_t>(output[2]);
  const bool keeps = params.keeps_arguments();
  args.num_rooms = static_cast<uint8_t>(keeps ? args.num_layers : params.binds_in_scratch());
  args.wanted_rows = knob_value(cascade.step->schedule(), kCascadeKnobs, kCascadeBlockRows);
}

// Whether the output lies over an input, or over the beginning of one.
bool is_over_an_input(const StepView& cascade) {
  const void* const data = cascade.output_data(0);
  const auto* inputs = cascade.step->inputs();
  for (uint32_t i = 0; data != nullptr && i < format::count_of(inputs); ++i) {
    if (cascade.address(inputs->Get(i)) == data) return true;
  }
  return false;
}

template <const LayerFamilies& kFamilies>
inline bool may_be_in_place(const StepView& step, uint32_t input, Extent extent) {
  CascadeArgs args;
  fill_args(step, kFamilies, true, args);
  args.shares_layers = step.has_cascade_room();
  return cascade_may_be_in_place(args, input, extent);
}

template <const LayerFamilies& kFamilies>
bool in_place(const StepView& step, uint32_t, uint32_t input) {
  return may_be_in_place<kFamilies>(step, input, Extent::kSame);
}

template <const LayerFamilies& kFamilies>
bool part(const StepView& step, uint32_t, uint32_t input, uint64_t* offset) {
  *offset = 0;
  return may_be_in_place<kFamilies>(step, input, Extent::kSmaller);
}

template <const LayerFamilies& kFamilies>
qplan_status bind(const StepView& step, bool checked, CascadeArgs& args, Error* error) {
  const StepCheck check(step, "chain", error);
  if (checked && !check_step<kFamilies.gives_indices>(check, kFamilies, step)) return check.status();
  fill_args(step, kFamilies, checked, args);
  args.is_in_place = is_over_an_input(step);
  if (checked && step.has_cascade_room()) cascade_share_layers(&args);
  return QPLAN_OK;
}

// The executor as a choice among instruction sets: the layers of a cascade run by variants up to kIsa.
template <uint32_t kIsa>
struct LayersUpTo {
  static Refusal accepts(const CascadeArgs& args) {
    return cascade_has_variants(args, kIsa) ? Refusal::kNone : Refusal::kLayout;
  }
  static size_t scratch_bytes(const CascadeArgs& args) { return cascade_scratch_bytes(args, kIsa); }
  static uint32_t work_items(const CascadeArgs& args) { return cascade_work_items(args, kIsa); }
  static void run(const CascadeArgs& args, uint32_t begin, uint32_t end, void* scratch) {
    cascade_run(args, kIsa, begin, end, scratch);
  }
  static constexpr KernelVariant choice(const char* name) {
    KernelVariant choice = make_variant<CascadeArgs, accepts, scratch_bytes, work_items, run>(name, kIsa);
    choice.repeated_work = RepeatedWork::kBorderRows;
    return with_knobs(choice, kCascadeKnobs);
  }
};

#define QPLAN_VARIANT(name, isa) LayersUpTo<isa>::choice(#name),
constexpr KernelVariant kChoices[] = {QPLAN_DOT_VARIANTS(chain) QPLAN_SCALAR_VARIANTS(chain)
                                          QPLAN_VARIANT(chain_ref, QPLAN_ISA_REFERENCE)};
#undef QPLAN_VARIANT
constexpr KernelVariant kReference[] = {LayersUpTo<QPLAN_ISA_REFERENCE>::choice("chain_ref")};
#define QPLAN_VARIANT(name, isa) LayersUpTo<isa>::choice(#name),
constexpr KernelVariant kOptimized[] = {QPLAN_DOT_VARIANTS(chain) QPLAN_SCALAR_VARIANTS(chain)};
#undef QPLAN_VARIANT

// The same after kernels that compute all layers of some cascades.
#define QPLAN_VARIANT(name, isa) +1
constexpr size_t kNumWholeCascades = 0 QPLAN_RESIZE_ARG_MAX_VARIANTS;
#undef QPLAN_VARIANT
struct AllChoices {
  KernelVariant rows[kNumWholeCascades + sizeof(kChoices) / sizeof(kChoices[0])];
};
constexpr AllChoices all_choices() {
  AllChoices all = {};
  size_t num_rows = 0;
#define QPLAN_VARIANT(name, isa)                                                                           \
  all.rows[num_rows++] =                                                                                   \
      ResizeArgMaxCascade<name::accepts, name::scratch_bytes, name::work_items, name::run>::variant(#name, \
                                                                                                    isa);
  QPLAN_RESIZE_ARG_MAX_VARIANTS
#undef QPLAN_VARIANT
  for (const KernelVariant& choice : kChoices) all.rows[num_rows++] = choice;
  return all;
}
constexpr AllChoices kAllChoices = all_choices();

// Those that few cascades have come last.
#define QPLAN_ALL_LAYERS(F)                                                                  \
  F(kConv2dFamily), F(kDepthwiseConv2dFamily), F(kAddFamily), F(kSubFamily), F(kLut8Family), \
      F(kAvgPool2dLayer), F(kMaxPool2dLayer), F(kQuantizeFamily), F(kTransposeFamily),       \
      F(kResizeBilinearLayer), F(kArgMaxLayer)
#define QPLAN_FAMILY(name) &name
#define QPLAN_FAMILY_REFERENCE(name) &name##Reference
constexpr const KernelFamily* kAll[] = {QPLAN_ALL_LAYERS(QPLAN_FAMILY)};
constexpr const KernelFamily* kReferences[] = {QPLAN_ALL_LAYERS(QPLAN_FAMILY_REFERENCE)};
#undef QPLAN_FAMILY_REFERENCE
#undef QPLAN_FAMILY
#undef QPLAN_ALL_LAYERS
constexpr LayerFamilies kReferenceLayers = {kReferences, sizeof(kReferences) / sizeof(kReferences[0]), true};
// Only the first five: lists of their own, so that linkers drop what only the others name.
constexpr const KernelFamily* kPlain[] = {&kConv2dFamily, &kDepthwiseConv2dFamily, &kAddFamily, &kSubFamily,
                                          &kLut8Family};
constexpr LayerFamilies kPlainLayers = {kPlain, sizeof(kPlain) / sizeof(kPlain[0])};
constexpr const KernelFamily* kPlainReferences[] = {&kConv2dFamilyReference, &kDepthwiseConv2dFamilyReference,
                                                    &kAddFamilyReference, &kSubFamilyReference,
                                                    &kLut8FamilyReference};
constexpr LayerFamilies kPlainReferenceLayers = {kPlainReferences,
                                                 sizeof(kPlainReferences) / sizeof(kPlainReferences[0])};
constexpr const KernelFamily* kPools[] = {&kConv2dFamilyOptimized, &kDepthwiseConv2dFamilyOptimized,
                                          &kAvgPool2dLayer, &kMaxPool2dLayer};
constexpr LayerFamilies kPoolLayers = {kPools, sizeof(kPools) / sizeof(kPools[0])};
constexpr const KernelFamily* kPoolReferences[] = {&kConv2dFamilyReference, &kDepthwiseConv2dFamilyReference,
                                                   &kAvgPool2dLayerReference, &kMaxPool2dLayerReference};
constexpr LayerFamilies kPoolReferenceLayers = {kPoolReferences,
                                                sizeof(kPoolReferences) / sizeof(kPoolReferences[0])};
constexpr const KernelFamily* kConvolutions[] = {&kConv2dFamilyOptimized, &kDepthwiseConv2dFamilyOptimized};
constexpr LayerFamilies kOptimizedLayers = {kConvolutions, sizeof(kConvolutions) / sizeof(kConvolutions[0])};

}  // namespace

constexpr LayerFamilies kCascadeLayerFamilies = {kAll, sizeof(kAll) / sizeof(kAll[0]), true};

uint32_t LayerFamilies::position_of(uint16_t kernel) const {
  uint32_t i = 0;
  while (i < num_families && families[i]->id != kernel) ++i;
  return i;
}
const KernelFamily* LayerFamilies::find(uint16_t kernel) const {
  const uint32_t position = position_of(kernel);
  return position == num_families ? nullptr : families[position];
}

StepView cascade_layer(const StepView& cascade, uint32_t index) {
  return cascade_layer(cascade, params_of(cascade), index);
}

StepView cascade_layer(const StepView& cascade, const CascadeParams& params, uint32_t index) {
  using Steps = flatbuffers::Offset<format::KernelStep>;
  using Tensors = flatbuffers::Offset<format::Tensor>;
  const format::TableFields fields(&params);
  StepView layer = cascade;
  layer.step = fields.vector<Steps>(CascadeParams::VT_LAYERS)->Get(index);
  if (cascade.plan == nullptr) return layer;
  layer.tiles = fields.vector<Tensors>(CascadeParams::VT_TILES);
  layer.data = nullptr;
  if (!cascade.has_cascade_room()) layer.tensors = nullptr;  // which has no tiles
  layer.data_without_tiles = cascade.data;
  return layer;
}

uint32_t cascade_moving_input(const StepView& layer, const KernelFamily& family) {
  const auto* inputs = layer.step->inputs();
  const uint32_t num_inputs = format::count_of(inputs);
  if (family.row_cut == nullptr) return num_inputs;
  uint32_t moving = num_inputs;
  for (uint32_t i = num_inputs; i-- > 0;) {
    if (layer.is_tile(inputs->Get(i))) moving = i;
  }
  if (moving < num_inputs) return family.row_cut->follows(layer, moving) ? moving : num_inputs;
  for (uint32_t i = num_inputs; i-- > 0;) {
    if (!layer.is_constant(inputs->Get(i)) && family.row_cut->accepts(layer, i)) moving = i;
  }
  return moving;
}

template <const LayerFamilies& kFamilies, size_t num_choices>
constexpr KernelFamily make_cascade_family(const KernelVariant (&choices)[num_choices]) {
  return make_family<CascadeArgs, bind<kFamilies>, in_place<kFamilies>, cascade_work>(
      kKernel_chain, "chain", choices, nullptr, part<kFamilies>);
}

constexpr KernelFamily kCascadeFamily = make_cascade_family<kCascadeLayerFamilies>(kAllChoices.rows);
constexpr KernelFamily kCascadeFamilyReference = make_cascade_family<kReferenceLayers>(kReference);
constexpr KernelFamily kCascadeFamilyOptimized = make_cascade_family<kOptimizedLayers>(kOptimized);
constexpr KernelFamily kCascadeFamilyPlain = make_cascade_family<kPlainLayers>(kChoices);
constexpr KernelFamily kCascadeFamilyPlainReference = make_cascade_family<kPlainReferenceLayers>(kReference);
constexpr KernelFamily kCascadeFamilyPools = make_cascade_family<kPoolLayers>(kOptimized);
constexpr KernelFamily kCascadeFamilyPoolsReference = make_cascade_family<kPoolReferenceLayers>(kReference);

}  // namespace qplan
