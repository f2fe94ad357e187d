#include "kernels/mean/mean.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step, Reduction reduction) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_MeanParams)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", kDtypesQuantized, kAnyRank, &input)) return false;
  const Dtype dtype = step.input(0).dtype;
  if (!check.output(0, "output", dtype_bit(dtype), kAnyRank, &output)) return false;
  const format::MeanParams& params = check.params_as<format::MeanParams>();
  if (!check.contract(params.contract(), kContractsTfl2F32e) ||
      !check.contract_of_dtype(params.contract(), dtype)) {
    return false;
  }
  if (params.axes() == 0 || params.axes() >> input.rank != 0) {
    return check.fail() << "axes " << params.axes() << " names no axis or one beyond the input's rank "
                        << input.rank;
  }
  if (!is_reduced_shape(input, params.axes(), output)) {
    return check.fail_output(0, "output") << "is not the input's shape reduced along axes " << params.axes();
  }
  uint64_t reduced = 1;
  for (uint32_t axis = 0; axis < input.rank; ++axis) {
    if (reduces(params.axes(), axis)) reduced *= input[axis];
  }
  const uint32_t most = dtype == Dtype::kS16 ? MeanArgs::kMaxReducedS16 : MeanArgs::kMaxReduced;
  if (!check.range("number of reduced elements", static_cast<int64_t>(reduced), 1, most)) {
    return false;
  }
  if (reduction == Reduction::kMax || reduction == Reduction::kMin) return true;
  if (reduction == Reduction::kProd &&
      (!check.contract(params.contract(), contract_bit(format::Contract_TFL2)) ||
       !check.range("output shift", params.output_shift(), -31, kMaxWideShift))) {
    return false;
  }
  const bool scaling = params.contract() == format::Contract_F32E
                           ? check.scale("scale", params.scale())
                           : check.multiplier("output", params.output_multiplier(), params.output_shift());
  return scaling && check.in_dtype("input_zero_point", params.input_zero_point(), dtype) &&
         check.in_dtype("output_zero_point", params.output_zero_point(), dtype);
}

template <Reduction kReduction>
qplan_status bind(const StepView& step, bool checked, MeanArgs& args, Error* error) {
  constexpr const char* kNames[] = {"mean", "reduce_max", "reduce_min", "reduce_prod"};
  const StepCheck check(step, kNames[static_cast<int>(kReduction)], error);
  if (checked && !check_step(check, step, kReduction)) return check.status();
  args.reduction = kReduction;
  const format::MeanParams& params = check.params_as<format::MeanParams>();
  const Shape input = shape_of(step.input(0));
  args.contract = contract_of(params.contract());
  args.dtype = step.input(0).dtype;
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  split_axes(input, params.axes(), args);
  args.input_zero_point = params.input_zero_point();
  args.output_zero_point = params.output_zero_point();
  args.output_multiplier = params.output_multiplier();
  args.output_shift = params.output_shift();
  args.scale = params.scale();
  return QPLAN_OK;
}

uint64_t work(const MeanArgs& args) { return saturating_product(args.num_outputs, args.num_reduced); }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(MeanArgs, name, isa),
    QPLAN_MEAN_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(MeanArgs, mean_ref, QPLAN_ISA_REFERENCE)};
constexpr KernelVariant kReduceVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(MeanArgs, name, isa),
    QPLAN_REDUCE_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kMeanFamily =
    make_family<MeanArgs, bind<Reduction::kMean>, never_in_place, work>(kKernel_mean, "mean", kVariants);
constexpr KernelFamily kMeanFamilyReference =
    make_family<MeanArgs, bind<Reduction::kMean>, never_in_place, work>(kKernel_mean, "mean", kReference);

constexpr KernelFamily kReduceMaxFamily = make_family<MeanArgs, bind<Reduction::kMax>, never_in_place, work>(
    kKernel_reduce_max, "reduce_max", kReduceVariants);
constexpr KernelFamily kReduceMaxFamilyReference = kReduceMaxFamily;
constexpr KernelFamily kReduceMinFamily = make_family<MeanArgs, bind<Reduction::kMin>, never_in_place, work>(
    kKernel_reduce_min, "reduce_min", kReduceVariants);
constexpr KernelFamily kReduceMinFamilyReference = kReduceMinFamily;
constexpr KernelFamily kReduceProdFamily =
    make_family<MeanArgs, bind<Reduction::kProd>, never_in_place, work>(kKernel_reduce_prod, "reduce_prod",
                                                                        kReduceVariants);
constexpr KernelFamily kReduceProdFamilyReference = kReduceProdFamily;

}  // namespace qplan
