#include "kernels/chain/chain.h"

#include "format/plan_view.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

using format::ChainParams;

static_assert(kMaxChainStages == format::kMaxChainStages, "what open() lets through");

const ChainParams& params_of(const StepView& chain) { return *chain.step->params_as_ChainParams(); }

// Writes "chain: stage 1: conv2d: what is wrong".
bool fail_stage(const StepCheck& check, uint32_t index, qplan_status status, const char* text) {
  return check.fail(status) << "stage " << index << ": " << text;
}

bool check_stage(const StepCheck& check, const StageFamilies& families, const StepView& chain,
                 uint32_t index) {
  const StepView stage = chain_stage(chain, index);
  const KernelFamily* family = families.find(stage.step->kernel());
  if (family == nullptr) {
    return check.fail(QPLAN_KERNEL_MISSING)
           << "stage " << index << ": kernel " << uint32_t{stage.step->kernel()} << " cannot be a stage here";
  }
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  Error error;
  const qplan_status bound = family->bind(stage, true, args, &error);
  if (bound < 0) return fail_stage(check, index, bound, error.text());
  // open() has checked that the tile before the stage is one of its inputs.
  if (chain_moving_input(stage, *family) >= stage.num_inputs()) {
    return check.fail() << "stage " << index << ": " << family->name
                        << " cannot be cut into rows of an input that comes and goes";
  }
  const uint32_t last = params_of(chain).stages()->size() - 1;
  if (stage.output(0).extents[0] != chain.output(0).extents[0]) {
    return check.fail() << "stage " << index << ": batch " << stage.output(0).extents[0]
                        << " is not the output's " << chain.output(0).extents[0] << " of stage " << last;
  }
  return true;
}

bool check_step(const StepCheck& check, const StageFamilies& families, const StepView& chain) {
  if (!check.params(format::KernelParams_ChainParams) || !check.arity(chain.num_inputs(), 1)) return false;
  Shape output;
  if (!check.output(0, "output", kDtypesU8S8, 4, &output)) return false;
  const uint32_t num_stages = params_of(chain).stages()->size();
  for (uint32_t i = 0; i < num_stages; ++i) {
    if (!check_stage(check, families, chain, i)) return false;
  }
  return check.range("output rows", int64_t{output[0]} * output[1], 1, INT32_MAX);
}

void fill_args(const StepView& chain, const StageFamilies& families, ChainArgs& args) {
  const StepTensor output = chain.output(0);
  args.step = chain;
  args.families = &families;
  args.num_stages = params_of(chain).stages()->size();
  args.batch = static_cast<uint32_t>(output.extents[0]);
  args.output_h = static_cast<uint32_t>(output.extents[1]);
  args.output_w = static_cast<uint32_t>(output.extents[2]);
  args.wanted_rows = knob_value(chain.step->schedule(), kChainKnobs, kChainBlockRows);
}

template <const StageFamilies& kFamilies>
qplan_status bind(const StepView& step, bool checked, ChainArgs& args, Error* error) {
  const StepCheck check(step, "chain", error);
  if (checked && !check_step(check, kFamilies, step)) return check.status();
  fill_args(step, kFamilies, args);
  return QPLAN_OK;
}

// The rows of variants.def: the same code, with stages up to that instruction set.
template <uint32_t kIsa>
struct Variant {
  static bool accepts(const ChainArgs&) { return true; }
  static size_t scratch_bytes(const ChainArgs& args) { return chain_scratch_bytes(args, kIsa); }
  static uint32_t units(const ChainArgs& args) { return chain_units(args, kIsa); }
  static void run(const ChainArgs& args, uint32_t begin, uint32_t end, void* scratch) {
    chain_run(args, kIsa, begin, end, scratch);
  }
};

constexpr KernelVariant with_sharing(KernelVariant variant) {
  variant.neighbours_share = true;
  return variant;
}

#define QPLAN_VARIANT(name, isa)                                                                      \
  with_sharing(with_knobs(make_variant<ChainArgs, Variant<isa>::accepts, Variant<isa>::scratch_bytes, \
                                       Variant<isa>::units, Variant<isa>::run>(#name, isa),           \
                          kChainKnobs)),
constexpr KernelVariant kVariants[] = {
#include "kernels/chain/variants.def"
};
#undef QPLAN_VARIANT
constexpr KernelVariant kReference[] = {kVariants[sizeof(kVariants) / sizeof(kVariants[0]) - 1]};

constexpr const KernelFamily* kAll[] = {&kConv2dFamily, &kDepthwiseConv2dFamily, &kAddFamily, &kSubFamily};
constexpr const KernelFamily* kReferences[] = {&kConv2dFamilyReference, &kDepthwiseConv2dFamilyReference,
                                               &kAddFamilyReference, &kSubFamilyReference};
constexpr StageFamilies kReferenceStages = {kReferences, sizeof(kReferences) / sizeof(kReferences[0])};

}  // namespace

constexpr StageFamilies kChainStages = {kAll, sizeof(kAll) / sizeof(kAll[0])};

const KernelFamily* StageFamilies::find(uint16_t kernel) const {
  for (uint32_t i = 0; i < num_families; ++i) {
    if (families[i]->id == kernel) return families[i];
  }
  return nullptr;
}

StepView chain_stage(const StepView& chain, uint32_t index) {
  StepView stage = chain;
  stage.step = params_of(chain).stages()->Get(index);
  if (chain.plan == nullptr) return stage;
  stage.tiles = params_of(chain).tiles();
  stage.data = nullptr;
  stage.data_without_tiles = chain.data;
  return stage;
}

uint32_t chain_moving_input(const StepView& stage, const KernelFamily& family) {
  if (family.row_cut == nullptr) return stage.num_inputs();
  uint32_t moving = stage.num_inputs();
  for (uint32_t i = stage.num_inputs(); i-- > 0;) {
    if (stage.input(i).is_tile) moving = i;
  }
  if (moving < stage.num_inputs())
    return family.row_cut->accepts(stage, moving) ? moving : stage.num_inputs();
  for (uint32_t i = stage.num_inputs(); i-- > 0;) {
    if (!stage.input(i).is_constant && family.row_cut->accepts(stage, i)) moving = i;
  }
  return moving;
}

constexpr KernelFamily kChainFamily =
    make_family<ChainArgs, bind<kChainStages>, never_in_place, chain_work>(kKernel_chain, "chain", kVariants);
constexpr KernelFamily kChainFamilyReference =
    make_family<ChainArgs, bind<kReferenceStages>, never_in_place, chain_work>(kKernel_chain, "chain",
                                                                               kReference);

}  // namespace qplan
