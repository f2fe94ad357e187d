// Kernel argument binding of the kernels along axes (kernels/reduction/).
#include "kernels/reduction/reduction.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {

// ---- mean, reduce_max, reduce_min, reduce_prod ----

namespace {

bool check_reduction(const StepCheck& check, const StepView& step, Reduction reduction) {
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
  if (!check_axes(check, params.axes(), input)) return false;
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
qplan_status bind_reduction(const StepView& step, bool checked, MeanArgs& args, Error* error) {
  constexpr const char* kNames[] = {"mean", "reduce_max", "reduce_min", "reduce_prod"};
  const StepCheck check(step, kNames[static_cast<int>(kReduction)], error);
  if (checked && !check_reduction(check, step, kReduction)) return check.status();
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

uint64_t reduction_work(const MeanArgs& args) {
  return saturating_product(args.num_outputs, args.num_reduced);
}

constexpr KernelVariant kMeanVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(MeanArgs, name, isa),
    QPLAN_MEAN_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kMeanReference[] = {QPLAN_VARIANT_ROW(MeanArgs, mean_ref, QPLAN_ISA_REFERENCE)};
constexpr KernelVariant kReduceVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(MeanArgs, name, isa),
    QPLAN_REDUCE_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kMeanFamily =
    make_family<MeanArgs, bind_reduction<Reduction::kMean>, never_in_place, reduction_work>(
        kKernel_mean, "mean", kMeanVariants);
constexpr KernelFamily kMeanFamilyReference =
    make_family<MeanArgs, bind_reduction<Reduction::kMean>, never_in_place, reduction_work>(
        kKernel_mean, "mean", kMeanReference);

constexpr KernelFamily kReduceMaxFamily =
    make_family<MeanArgs, bind_reduction<Reduction::kMax>, never_in_place, reduction_work>(
        kKernel_reduce_max, "reduce_max", kReduceVariants);
constexpr KernelFamily kReduceMaxFamilyReference = kReduceMaxFamily;
constexpr KernelFamily kReduceMinFamily =
    make_family<MeanArgs, bind_reduction<Reduction::kMin>, never_in_place, reduction_work>(
        kKernel_reduce_min, "reduce_min", kReduceVariants);
constexpr KernelFamily kReduceMinFamilyReference = kReduceMinFamily;
constexpr KernelFamily kReduceProdFamily =
    make_family<MeanArgs, bind_reduction<Reduction::kProd>, never_in_place, reduction_work>(
        kKernel_reduce_prod, "reduce_prod", kReduceVariants);
constexpr KernelFamily kReduceProdFamilyReference = kReduceProdFamily;

// ---- arg_max, arg_min ----

namespace {

// A function of its own, whose stack is free while arguments are filled.
__attribute__((noinline)) bool check_arg_max(const StepCheck& check, uint32_t dtypes) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_ArgMaxParams)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", dtypes, kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(Dtype::kS32) | dtype_bit(Dtype::kS64), kAnyRank, &output)) {
    return false;
  }
  const uint32_t axis = check.params_as<format::ArgMaxParams>().axis();
  if (!check.range("axis", axis, 0, int64_t{input.rank} - 1)) return false;
  if (!is_reduced_shape(input, 1u << axis, output)) {
    return check.fail_output(0, "output") << "is not the input's shape reduced along axis " << axis;
  }
  return true;
}

template <bool kIsMinimum>
qplan_status bind_arg_max(const StepView& step, bool checked, ArgMaxArgs& args, Error* error) {
  const StepCheck check(step, kIsMinimum ? "arg_min" : "arg_max", error);
  const uint32_t dtypes = kDtypesU8S8 | dtype_bit(Dtype::kS32) | dtype_bit(Dtype::kS64) |
                          (kIsMinimum ? 0 : dtype_bit(Dtype::kF32));
  if (checked && !check_arg_max(check, dtypes)) return check.status();
  args.is_minimum = kIsMinimum;
  const uint32_t axis = check.params_as<format::ArgMaxParams>().axis();
  const uint32_t from = step.inputs()->Get(0);
  const Extents input = extents_of(step, from);
  args.input_dtype = step.dtype(from);
  args.output_dtype = step.output_dtype(0);
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.outer = axis_rows(input, axis);
  args.extent = input[axis];
  args.inner = elements_of(step, from) / args.outer / args.extent;
  return QPLAN_OK;
}

uint64_t arg_max_work(const ArgMaxArgs& args) {
  return saturating_product(args.outer, args.extent, args.inner);
}

// Along the channels of images; the output may have an axis of one in their place.
bool accepts_arg_max_rows(const StepView& step, uint32_t input) {
  return input == 0 && step.rank(step.inputs()->Get(0)) == 4 &&
         step.step->params_as_ArgMaxParams()->axis() == 3;
}

RowWindow arg_max_row_window(const void*) { return {1, 0, 1, UINT32_MAX}; }

void cut_arg_max_rows(const StepView& step, const CutRows& rows, void* storage) {
  ArgMaxArgs& args = *static_cast<ArgMaxArgs*>(storage);
  const auto output_w = static_cast<uint32_t>(step.output_extents(0)[2]);
  args.input = rows.from;
  args.output = rows.to;
  args.outer = uint64_t{rows.output.end - rows.output.begin} * output_w;
}

constexpr RowCut kArgMaxRowCut = {accepts_arg_max_rows, arg_max_row_window, cut_arg_max_rows};

constexpr KernelVariant kArgMaxVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(ArgMaxArgs, name, isa),
    QPLAN_ARG_MAX_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kArgMaxReference[] = {
    QPLAN_VARIANT_ROW(ArgMaxArgs, arg_max_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kArgMaxFamily =
    make_family<ArgMaxArgs, bind_arg_max<false>, never_in_place, arg_max_work>(kKernel_arg_max, "arg_max",
                                                                               kArgMaxVariants);
constexpr KernelFamily kArgMaxFamilyReference =
    make_family<ArgMaxArgs, bind_arg_max<false>, never_in_place, arg_max_work>(kKernel_arg_max, "arg_max",
                                                                               kArgMaxReference);

constexpr KernelFamily kArgMaxLayer = as_layer(kArgMaxFamily, kArgMaxRowCut);
constexpr KernelFamily kArgMaxLayerReference = as_layer(kArgMaxFamilyReference, kArgMaxRowCut);

constexpr KernelFamily kArgMinFamily =
    make_family<ArgMaxArgs, bind_arg_max<true>, never_in_place, arg_max_work>(kKernel_arg_min, "arg_min",
                                                                              kArgMaxReference);
constexpr KernelFamily kArgMinFamilyReference = kArgMinFamily;

// ---- top_k ----

namespace {

constexpr uint32_t kTopKDtypes = kDtypesQuantized | dtype_bit(Dtype::kS32) | dtype_bit(Dtype::kF32);

bool check_top_k(const StepCheck& check, const StepView& step) {
  Shape input, values, indices;
  if (!check.arity(1, 2) || !check.params(format::KernelParams_NoParams) ||
      !check.input(0, "input", kTopKDtypes, kAnyRank, &input) ||
      !check.output(0, "values", dtype_bit(step.input(0).dtype), kAnyRank, &values) ||
      !check.output(1, "indices", dtype_bit(Dtype::kS32), kAnyRank, &indices)) {
    return false;
  }
  if (input.rank == 0) return check.fail() << "an input without axes has no rows";
  if (values != indices) return check.fail_output(1, "indices") << "has another shape than the values";
  const uint32_t last = input.rank - 1;
  if (!equal_but_for_axis(input, values, last) || values[last] > input[last]) {
    return check.fail_output(0, "values")
           << "has not the input's shape with at most " << input[last] << " elements in a row";
  }
  return check.range("rows", static_cast<int64_t>(axis_rows(input, last)), 1, INT32_MAX);
}

qplan_status bind_top_k(const StepView& step, bool checked, TopKArgs& args, Error* error) {
  const StepCheck check(step, "top_k", error);
  if (checked && !check_top_k(check, step)) return check.status();
  const Shape input = shape_of(step.input(0)), values = shape_of(step.output(0));
  args.dtype = step.input(0).dtype;
  args.input = step.input_data(0);
  args.values = step.output_data(0);
  args.indices = static_cast<int32_t*>(step.output_data(1));
  args.rows = axis_rows(input, input.rank - 1);
  args.depth = input[input.rank - 1];
  args.k = values[input.rank - 1];
  return QPLAN_OK;
}

uint64_t top_k_work(const TopKArgs& args) { return saturating_product(args.rows, args.depth, args.k); }

constexpr KernelVariant kTopKVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(TopKArgs, name, isa),
    QPLAN_TOP_K_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kTopKFamily =
    make_family<TopKArgs, bind_top_k, never_in_place, top_k_work>(kKernel_top_k, "top_k", kTopKVariants);
constexpr KernelFamily kTopKFamilyReference = kTopKFamily;

// ---- cumulative_sum ----

namespace {

bool check_cumulative_sum(const StepCheck& check, const StepView& step) {
  Shape input, output;
  if (!check.arity(1, 1) || !check.params(format::KernelParams_CumulativeSumParams) ||
      !check.input(0, "input", dtype_bit(Dtype::kS32) | dtype_bit(Dtype::kS64) | dtype_bit(Dtype::kF32),
                   kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(step.input(0).dtype), kAnyRank, &output)) {
    return false;
  }
  if (input != output) return check.fail_output(0, "output") << "has another shape than the input";
  const uint32_t axis = check.params_as<format::CumulativeSumParams>().axis();
  if (axis >= input.rank) return check.fail() << "axis " << axis << " of an input of rank " << input.rank;
  return check.range("elements before the axis", static_cast<int64_t>(axis_rows(input, axis)), 1, INT32_MAX);
}

qplan_status bind_cumulative_sum(const StepView& step, bool checked, CumulativeSumArgs& args, Error* error) {
  const StepCheck check(step, "cumulative_sum", error);
  if (checked && !check_cumulative_sum(check, step)) return check.status();
  const auto& p = check.params_as<format::CumulativeSumParams>();
  const Shape shape = shape_of(step.input(0));
  args.dtype = step.input(0).dtype;
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.outer = axis_rows(shape, p.axis());
  args.depth = shape[p.axis()];
  args.inner = shape.elements() / (args.outer * args.depth);
  args.exclusive = p.exclusive();
  args.reverse = p.reverse();
  return QPLAN_OK;
}

// Each element is read before it is written.
bool cumulative_sum_in_place(const StepView&, uint32_t, uint32_t) { return true; }

uint64_t cumulative_sum_work(const CumulativeSumArgs& args) { return args.outer * args.depth * args.inner; }

constexpr KernelVariant kCumulativeSumVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(CumulativeSumArgs, name, isa),
    QPLAN_CUMULATIVE_SUM_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kCumulativeSumFamily =
    make_family<CumulativeSumArgs, bind_cumulative_sum, cumulative_sum_in_place, cumulative_sum_work>(
        kKernel_cumulative_sum, "cumulative_sum", kCumulativeSumVariants);
constexpr KernelFamily kCumulativeSumFamilyReference = kCumulativeSumFamily;

// ---- l2_normalization ----

namespace {

bool check_l2_normalization(const StepCheck& check, const StepView& step) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_L2NormalizationParams)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", kDtypesU8S8, kAnyRank, &input)) return false;
  const Dtype dtype = step.input(0).dtype;
  if (!check.output(0, "output", dtype_bit(dtype), kAnyRank, &output)) return false;
  if (input != output) return check.fail_output(0, "output") << "has another shape than the input";
  if (input.rank == 0) return check.fail_input(0, "input") << "has no axis";
  return check.range("last extent", input[input.rank - 1], 1, L2NormalizationArgs::kMaxDepth) &&
         check.in_dtype("input_zero_point",
                        check.params_as<format::L2NormalizationParams>().input_zero_point(), dtype);
}

qplan_status bind_l2_normalization(const StepView& step, bool checked, L2NormalizationArgs& args,
                                   Error* error) {
  const StepCheck check(step, "l2_normalization", error);
  if (checked && !check_l2_normalization(check, step)) return check.status();
  const Shape shape = shape_of(step.input(0));
  args.dtype = step.input(0).dtype;
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.depth = shape[shape.rank - 1];
  args.rows = shape.elements() / args.depth;
  args.input_zero_point = check.params_as<format::L2NormalizationParams>().input_zero_point();
  return QPLAN_OK;
}

// A row is read whole before its first output is written, and again element by element.
bool l2_normalization_in_place(const StepView&, uint32_t, uint32_t input) { return input == 0; }

uint64_t l2_normalization_work(const L2NormalizationArgs& args) {
  return saturating_product(args.rows, args.depth, uint64_t{2});
}

constexpr KernelVariant kL2NormalizationVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(L2NormalizationArgs, name, isa),
    QPLAN_L2_NORMALIZATION_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kL2NormalizationFamily =
    make_family<L2NormalizationArgs, bind_l2_normalization, l2_normalization_in_place, l2_normalization_work>(
        kKernel_l2_normalization, "l2_normalization", kL2NormalizationVariants);
constexpr KernelFamily kL2NormalizationFamilyReference = kL2NormalizationFamily;

}  // namespace qplan
