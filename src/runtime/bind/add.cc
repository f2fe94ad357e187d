// Glue of add and sub: they differ in a sign.
#include "kernels/elementwise/add.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/layer.h"

namespace qplan {
namespace {

bool check_rescale(const StepCheck& check, const char* name, int32_t multiplier, int32_t shift) {
  return check.multiplier(name, multiplier, shift) && check.range("shift", shift, -31, 0);
}

bool check_scaling(const StepCheck& check, const format::AddParams& params, Dtype dtype,
                   int32_t max_output_shift) {
  if (params.contract() == format::Contract_F32E) {
    return check.scale("input1_scale", params.input1_scale()) &&
           check.scale("input2_scale", params.input2_scale()) &&
           check.scale("output_scale", params.output_scale());
  }
  const int32_t max_shift = dtype == Dtype::kS16 ? AddArgs::kMaxLeftShiftS16 : AddArgs::kMaxLeftShift;
  return check.range("left_shift", params.left_shift(), 0, max_shift) &&
         check_rescale(check, "input1", params.input1_multiplier(), params.input1_shift()) &&
         check_rescale(check, "input2", params.input2_multiplier(), params.input2_shift()) &&
         check.multiplier("output", params.output_multiplier(), params.output_shift()) &&
         check.range("shift", params.output_shift(), -31, max_output_shift);
}

// No shift of a sum is positive.
bool check_formula(const StepCheck& check, const format::AddParams& params, Dtype dtype, uint32_t contracts,
                   int32_t max_output_shift) {
  return check.contract(params.contract(), contracts) && check.contract_of_dtype(params.contract(), dtype) &&
         check_scaling(check, params, dtype, max_output_shift) &&
         check.in_dtype("input1_zero_point", params.input1_zero_point(), dtype) &&
         check.in_dtype("input2_zero_point", params.input2_zero_point(), dtype) &&
         check.in_dtype("output_zero_point", params.output_zero_point(), dtype) &&
         check.clamp(params.clamp_min(), params.clamp_max(), dtype);
}

}  // namespace

bool check_add_formula(const StepCheck& check, const format::AddParams& params, Dtype dtype) {
  return check_formula(check, params, dtype, kContractsTfl2F32e, 0);
}

void fill_add_formula(const format::AddParams& params, Dtype dtype, AddFormula& formula) {
  formula.contract = contract_of(params.contract());
  formula.dtype = dtype;
  formula.left_shift = params.left_shift();
  formula.input1_zero_point = params.input1_zero_point();
  formula.input1_multiplier = params.input1_multiplier();
  formula.input1_shift = params.input1_shift();
  formula.input2_zero_point = params.input2_zero_point();
  formula.input2_multiplier = params.input2_multiplier();
  formula.input2_shift = params.input2_shift();
  formula.output_zero_point = params.output_zero_point();
  formula.output_multiplier = params.output_multiplier();
  formula.output_shift = params.output_shift();
  formula.clamp_min = params.clamp_min();
  formula.clamp_max = params.clamp_max();
  formula.input1_scale = params.input1_scale();
  formula.input2_scale = params.input2_scale();
  formula.output_scale = params.output_scale();
  if (formula.contract == Contract::kTfl2 && params.float_scale1() > 0.0f) {
    formula.float_scale1 = params.float_scale1();
    formula.float_scale2 = params.float_scale2();
    formula.float_offset = params.float_offset();
  }
}

namespace {

enum class Combine { kSum, kSquaredDifference };

// A function of its own, whose stack is free while arguments are filled.
__attribute__((noinline)) bool check_step(const StepCheck& check, const StepView& step, Combine combine) {
  const bool is_sum = combine == Combine::kSum;
  if (!check.arity(2, 1) || !check.params(format::KernelParams_AddParams) ||
      !check.input(0, "input 1", is_sum ? kDtypesQuantized : kDtypesU8S8, kAnyRank, nullptr)) {
    return false;
  }
  const Dtype dtype = step.input_dtype(0);
  return check.input(1, "input 2", dtype_bit(dtype), kAnyRank, nullptr) &&
         check.output(0, "output", dtype_bit(dtype), kAnyRank, nullptr) &&
         check_formula(check, check.params_as<format::AddParams>(), dtype,
                       is_sum ? kContractsTfl2F32e : contract_bit(format::Contract_TFL2), is_sum ? 0 : 30);
}

qplan_status bind_named(const char* name, const StepView& step, bool checked, AddArgs& args, Error* error,
                        Combine combine = Combine::kSum) {
  const StepCheck check(step, name, error);
  if (checked && !check_step(check, step, combine)) return check.status();
  if (!make_broadcast(step, &args.broadcast)) {
    check.fail_output(0, "output") << "is not the shape that the inputs broadcast to";
    return check.status();
  }
  fill_add_formula(check.params_as<format::AddParams>(), step.input_dtype(0), args);
  args.a = step.input_data(0);
  args.b = step.input_data(1);
  args.output = step.output_data(0);
  return QPLAN_OK;
}

qplan_status bind_add(const StepView& step, bool check, AddArgs& args, Error* error) {
  return bind_named("add", step, check, args, error);
}

qplan_status bind_sub(const StepView& step, bool check, AddArgs& args, Error* error) {
  return bind_named("sub", step, check, args, error);
}

qplan_status bind_squared_difference(const StepView& step, bool check, AddArgs& args, Error* error) {
  return bind_named("squared_difference", step, check, args, error, Combine::kSquaredDifference);
}

// Rows of images without broadcasting, which are one axis of elements.
bool accepts_rows(const StepView& step, uint32_t) {
  const auto* inputs = step.inputs();
  const uint32_t output = step.outputs()->Get(0);
  if (dtype_bytes(step.dtype(output)) != 1) return false;  // rows are cut in elements of a byte
  return step.rank(output) == 4 && have_same_shape(step, inputs->Get(0), output) &&
         have_same_shape(step, inputs->Get(1), output);
}

RowWindow row_window(const void*) { return {1, 0, 1, UINT32_MAX}; }

void cut_rows(const StepView& step, const CutRows& rows, void* storage) {
  AddArgs& args = *static_cast<AddArgs*>(storage);
  const Extents shape = extents_of(step, step.outputs()->Get(0));
  const uint64_t row = uint64_t{shape[2]} * shape[3];
  const size_t begin = static_cast<size_t>((uint64_t{rows.image} * shape[1] + rows.output.begin) * row);
  const auto* other = static_cast<const uint8_t*>(step.input_data(1 - rows.input));
  (rows.input == 0 ? args.b : args.a) = other == nullptr ? nullptr : other + begin;
  (rows.input == 0 ? args.a : args.b) = rows.from;
  args.output = rows.to;
  args.broadcast.elements = args.broadcast.extents[0] = (rows.output.end - rows.output.begin) * row;
}

constexpr RowCut kRowCut = {accepts_rows, row_window, cut_rows};

uint64_t work(const AddArgs& args) { return args.broadcast.elements; }

#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(AddArgs, name, isa),
constexpr KernelVariant kAddVariants[] = {QPLAN_ADD_VARIANTS};
constexpr KernelVariant kSubVariants[] = {QPLAN_SUB_VARIANTS};
#undef QPLAN_VARIANT
constexpr KernelVariant kAddReference[] = {QPLAN_VARIANT_ROW(AddArgs, add_ref, QPLAN_ISA_REFERENCE)};
constexpr KernelVariant kSquaredDifferenceVariants[] = {
    QPLAN_VARIANT_ROW(AddArgs, squared_difference_ref, QPLAN_ISA_REFERENCE)};
constexpr KernelVariant kSubReference[] = {QPLAN_VARIANT_ROW(AddArgs, sub_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kAddFamily =
    make_family<AddArgs, bind_add, binary_in_place, work>(kKernel_add, "add", kAddVariants, &kRowCut);
constexpr KernelFamily kAddFamilyReference =
    make_family<AddArgs, bind_add, binary_in_place, work>(kKernel_add, "add", kAddReference, &kRowCut);
constexpr KernelFamily kSubFamily =
    make_family<AddArgs, bind_sub, binary_in_place, work>(kKernel_sub, "sub", kSubVariants, &kRowCut);
constexpr KernelFamily kSubFamilyReference =
    make_family<AddArgs, bind_sub, binary_in_place, work>(kKernel_sub, "sub", kSubReference, &kRowCut);

constexpr KernelFamily kSquaredDifferenceFamily =
    make_family<AddArgs, bind_squared_difference, binary_in_place, work>(
        kKernel_squared_difference, "squared_difference", kSquaredDifferenceVariants);
constexpr KernelFamily kSquaredDifferenceFamilyReference = kSquaredDifferenceFamily;

}  // namespace qplan
