// Kernel argument binding of elementwise kernels: mul, div, maximum, minimum, prelu, compare and select;
// add.cc has add and sub, lookup.cc tables.
#include "kernels/elementwise/elementwise.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool broadcast_inputs(const StepCheck& check, const StepView& step, Broadcast* broadcast) {
  if (make_broadcast(step, broadcast)) return true;
  return check.fail_output(0, "output") << "is not the shape that the inputs broadcast to";
}

// ---- mul ----

bool check_mul_scaling(const StepCheck& check, const format::MulParams& params) {
  if (params.contract() == format::Contract_F32E) {
    return check.scale("input1_scale", params.input1_scale()) &&
           check.scale("input2_scale", params.input2_scale()) &&
           check.scale("output_scale", params.output_scale());
  }
  return check.multiplier("output", params.output_multiplier(), params.output_shift());
}

bool check_mul_params(const StepCheck& check, const format::MulParams& params, Dtype dtype) {
  // The product of two differences to zero points of int16 would not fit int32.
  if (dtype == Dtype::kS16 &&
      (!check.contract_of_dtype(params.contract(), dtype) ||
       !check.range("input1_zero_point of int16", params.input1_zero_point(), 0, 0) ||
       !check.range("input2_zero_point of int16", params.input2_zero_point(), 0, 0))) {
    return false;
  }
  return check.contract(params.contract(), kContractsTfl2F32e) && check_mul_scaling(check, params) &&
         check.in_dtype("input1_zero_point", params.input1_zero_point(), dtype) &&
         check.in_dtype("input2_zero_point", params.input2_zero_point(), dtype) &&
         check.in_dtype("output_zero_point", params.output_zero_point(), dtype) &&
         check.clamp(params.clamp_min(), params.clamp_max(), dtype);
}

qplan_status bind_mul(const StepView& step, bool checked, MulArgs& args, Error* error) {
  const StepCheck check(step, "mul", error);
  if (checked) {
    if (!check.arity(2, 1) || !check.params(format::KernelParams_MulParams) ||
        !check.input(0, "input 1", kDtypesQuantized, kAnyRank, nullptr)) {
      return check.status();
    }
    const Dtype dtype = step.input(0).dtype;
    if (!check.input(1, "input 2", dtype_bit(dtype), kAnyRank, nullptr) ||
        !check.output(0, "output", dtype_bit(dtype), kAnyRank, nullptr) ||
        !check_mul_params(check, check.params_as<format::MulParams>(), dtype)) {
      return check.status();
    }
  }
  if (!broadcast_inputs(check, step, &args.broadcast)) return check.status();
  const format::MulParams& params = check.params_as<format::MulParams>();
  args.contract = contract_of(params.contract());
  args.dtype = step.input(0).dtype;
  args.a = step.input_data(0);
  args.b = step.input_data(1);
  args.output = step.output_data(0);
  args.input1_zero_point = params.input1_zero_point();
  args.input2_zero_point = params.input2_zero_point();
  args.output_zero_point = params.output_zero_point();
  args.output_multiplier = params.output_multiplier();
  args.output_shift = params.output_shift();
  args.clamp_min = params.clamp_min();
  args.clamp_max = params.clamp_max();
  args.input1_scale = params.input1_scale();
  args.input2_scale = params.input2_scale();
  args.output_scale = params.output_scale();
  return QPLAN_OK;
}

uint64_t mul_work(const MulArgs& args) { return args.broadcast.elements; }

#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(MulArgs, name, isa),
constexpr KernelVariant kMulVariants[] = {QPLAN_MUL_VARIANTS};
#undef QPLAN_VARIANT
constexpr KernelVariant kMulReference[] = {QPLAN_VARIANT_ROW(MulArgs, mul_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kMulFamily =
    make_family<MulArgs, bind_mul, binary_in_place, mul_work>(kKernel_mul, "mul", kMulVariants);
constexpr KernelFamily kMulFamilyReference =
    make_family<MulArgs, bind_mul, binary_in_place, mul_work>(kKernel_mul, "mul", kMulReference);

// ---- div ----

namespace {

bool check_div(const StepCheck& check, const StepView& step) {
  if (!check.arity(2, 1) || !check.params(format::KernelParams_DivParams) ||
      !check.input(0, "input 1", kDtypesU8S8, kAnyRank, nullptr)) {
    return false;
  }
  const Dtype dtype = step.input(0).dtype;
  const auto& p = check.params_as<format::DivParams>();
  return check.input(1, "input 2", dtype_bit(dtype), kAnyRank, nullptr) &&
         check.output(0, "output", dtype_bit(dtype), kAnyRank, nullptr) &&
         check.in_dtype("input1_zero_point", p.input1_zero_point(), dtype) &&
         check.in_dtype("input2_zero_point", p.input2_zero_point(), dtype) &&
         check.in_dtype("output_zero_point", p.output_zero_point(), dtype) &&
         check.range("output_multiplier", p.output_multiplier(), 0, INT32_MAX) &&
         check.range("output_shift", p.output_shift(), -31, DivArgs::kMaxShift) &&
         check.clamp(p.clamp_min(), p.clamp_max(), dtype);
}

qplan_status bind_div(const StepView& step, bool checked, DivArgs& args, Error* error) {
  const StepCheck check(step, "div", error);
  if (checked && !check_div(check, step)) return check.status();
  if (!broadcast_inputs(check, step, &args.broadcast)) return check.status();
  const auto& p = check.params_as<format::DivParams>();
  args.dtype = step.input(0).dtype;
  args.a = step.input_data(0);
  args.b = step.input_data(1);
  args.output = step.output_data(0);
  args.input1_zero_point = p.input1_zero_point();
  args.input2_zero_point = p.input2_zero_point();
  args.output_zero_point = p.output_zero_point();
  args.output_multiplier = p.output_multiplier();
  args.output_shift = p.output_shift();
  args.clamp_min = p.clamp_min();
  args.clamp_max = p.clamp_max();
  return QPLAN_OK;
}

uint64_t div_work(const DivArgs& args) { return args.broadcast.elements; }

#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(DivArgs, name, isa),
constexpr KernelVariant kDivVariants[] = {QPLAN_DIV_VARIANTS};
#undef QPLAN_VARIANT

}  // namespace

constexpr KernelFamily kDivFamily =
    make_family<DivArgs, bind_div, binary_in_place, div_work>(kKernel_div, "div", kDivVariants);
constexpr KernelFamily kDivFamilyReference = kDivFamily;

// ---- maximum, minimum ----

namespace {

qplan_status bind_minmax(const char* name, const StepView& step, bool checked, MinmaxArgs& args,
                         Error* error) {
  const StepCheck check(step, name, error);
  if (checked) {
    if (!check.arity(2, 1) || !check.params(format::KernelParams_NoParams) ||
        !check.input(0, "input 1", kDtypesQuantized, kAnyRank, nullptr)) {
      return check.status();
    }
    const uint32_t dtype = dtype_bit(step.input(0).dtype);
    if (!check.input(1, "input 2", dtype, kAnyRank, nullptr) ||
        !check.output(0, "output", dtype, kAnyRank, nullptr)) {
      return check.status();
    }
  }
  if (!broadcast_inputs(check, step, &args.broadcast)) return check.status();
  args.is_maximum = step.step->kernel() == kKernel_maximum;
  args.dtype = step.input(0).dtype;
  args.a = step.input_data(0);
  args.b = step.input_data(1);
  args.output = step.output_data(0);
  return QPLAN_OK;
}

qplan_status bind_maximum(const StepView& step, bool check, MinmaxArgs& args, Error* error) {
  return bind_minmax("maximum", step, check, args, error);
}

qplan_status bind_minimum(const StepView& step, bool check, MinmaxArgs& args, Error* error) {
  return bind_minmax("minimum", step, check, args, error);
}

uint64_t minmax_work(const MinmaxArgs& args) { return args.broadcast.elements; }

#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(MinmaxArgs, name, isa),
constexpr KernelVariant kMinmaxVariants[] = {QPLAN_MINMAX_VARIANTS};
#undef QPLAN_VARIANT
constexpr KernelVariant kMinmaxReference[] = {QPLAN_VARIANT_ROW(MinmaxArgs, minmax_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kMaximumFamily = make_family<MinmaxArgs, bind_maximum, binary_in_place, minmax_work>(
    kKernel_maximum, "maximum", kMinmaxVariants);
constexpr KernelFamily kMaximumFamilyReference =
    make_family<MinmaxArgs, bind_maximum, binary_in_place, minmax_work>(kKernel_maximum, "maximum",
                                                                        kMinmaxReference);
constexpr KernelFamily kMinimumFamily = make_family<MinmaxArgs, bind_minimum, binary_in_place, minmax_work>(
    kKernel_minimum, "minimum", kMinmaxVariants);
constexpr KernelFamily kMinimumFamilyReference =
    make_family<MinmaxArgs, bind_minimum, binary_in_place, minmax_work>(kKernel_minimum, "minimum",
                                                                        kMinmaxReference);

// ---- prelu ----

namespace {

bool check_prelu(const StepCheck& check, const StepView& step) {
  if (!check.arity(2, 1) || !check.params(format::KernelParams_PreluParams) ||
      !check.input(0, "input", kDtypesQuantized, kAnyRank, nullptr)) {
    return false;
  }
  const Dtype dtype = step.input(0).dtype;
  const format::PreluParams& p = check.params_as<format::PreluParams>();
  if (!check.input(1, "alpha", dtype_bit(dtype), kAnyRank, nullptr) ||
      !check.output(0, "output", dtype_bit(dtype), kAnyRank, nullptr)) {
    return false;
  }
  // The product of two differences to zero points of int16 would not fit int32.
  if (dtype == Dtype::kS16 && (!check.range("input_zero_point of int16", p.input_zero_point(), 0, 0) ||
                               !check.range("alpha_zero_point of int16", p.alpha_zero_point(), 0, 0))) {
    return false;
  }
  return check.in_dtype("input_zero_point", p.input_zero_point(), dtype) &&
         check.in_dtype("alpha_zero_point", p.alpha_zero_point(), dtype) &&
         check.in_dtype("output_zero_point", p.output_zero_point(), dtype) &&
         check.multiplier("above", p.above_multiplier(), p.above_shift()) &&
         check.multiplier("below", p.below_multiplier(), p.below_shift());
}

qplan_status bind_prelu(const StepView& step, bool checked, PreluArgs& args, Error* error) {
  const StepCheck check(step, "prelu", error);
  if (checked && !check_prelu(check, step)) return check.status();
  if (!broadcast_inputs(check, step, &args.broadcast)) return check.status();
  const format::PreluParams& p = check.params_as<format::PreluParams>();
  args.dtype = step.input(0).dtype;
  args.input = step.input_data(0);
  args.alpha = step.input_data(1);
  args.output = step.output_data(0);
  args.input_zero_point = p.input_zero_point();
  args.alpha_zero_point = p.alpha_zero_point();
  args.output_zero_point = p.output_zero_point();
  args.above_multiplier = p.above_multiplier();
  args.above_shift = p.above_shift();
  args.below_multiplier = p.below_multiplier();
  args.below_shift = p.below_shift();
  return QPLAN_OK;
}

uint64_t prelu_work(const PreluArgs& args) { return args.broadcast.elements; }

#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(PreluArgs, name, isa),
constexpr KernelVariant kPreluVariants[] = {QPLAN_PRELU_VARIANTS};
#undef QPLAN_VARIANT
constexpr KernelVariant kPreluReference[] = {QPLAN_VARIANT_ROW(PreluArgs, prelu_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kPreluFamily =
    make_family<PreluArgs, bind_prelu, binary_in_place, prelu_work>(kKernel_prelu, "prelu", kPreluVariants);
constexpr KernelFamily kPreluFamilyReference =
    make_family<PreluArgs, bind_prelu, binary_in_place, prelu_work>(kKernel_prelu, "prelu", kPreluReference);

// ---- compare ----

namespace {

static_assert(static_cast<int>(Comparison::kEqual) == format::Comparison_MAX, "the plan's numbers");

// A condition: a byte for each element. Steps see bool as uint8.
constexpr uint32_t kCondition = dtype_bit(Dtype::kU8);

bool check_compare(const StepCheck& check, const StepView& step) {
  if (!check.arity(2, 1) || !check.params(format::KernelParams_CompareParams) ||
      !check.input(0, "input 1", kDtypesAny8To64, kAnyRank, nullptr) ||
      !check.input(1, "input 2", dtype_bit(step.input(0).dtype), kAnyRank, nullptr) ||
      !check.output(0, "output", kCondition, kAnyRank, nullptr)) {
    return false;
  }
  const auto& params = check.params_as<format::CompareParams>();
  if (params.op() <= format::Comparison_MAX) return true;
  return check.fail(QPLAN_KERNEL_MISSING)
         << "comparison " << static_cast<uint32_t>(params.op()) << ", expected at most "
         << static_cast<uint32_t>(format::Comparison_MAX);
}

qplan_status bind_compare(const StepView& step, bool checked, CompareArgs& args, Error* error) {
  const StepCheck check(step, "compare", error);
  if (checked && !check_compare(check, step)) return check.status();
  if (!broadcast_inputs(check, step, &args.broadcast)) return check.status();
  args.op = static_cast<Comparison>(check.params_as<format::CompareParams>().op());
  args.dtype = step.input(0).dtype;
  args.a = step.input_data(0);
  args.b = step.input_data(1);
  args.output = static_cast<uint8_t*>(step.output_data(0));
  return QPLAN_OK;
}

uint64_t compare_work(const CompareArgs& args) { return args.broadcast.elements; }

// ---- select ----

bool check_select(const StepCheck& check, const StepView& step) {
  return check.arity(3, 1) && check.params(format::KernelParams_NoParams) &&
         check.input(0, "condition", kCondition, kAnyRank, nullptr) &&
         check.input(1, "input 1", kDtypesAny8To64, kAnyRank, nullptr) &&
         check.input(2, "input 2", dtype_bit(step.input(1).dtype), kAnyRank, nullptr) &&
         check.output(0, "output", dtype_bit(step.input(1).dtype), kAnyRank, nullptr);
}

// The extent of `shape`, aligned with the last axes of `output`, at an axis of it.
uint32_t extent_at(const Shape& shape, const Shape& output, uint32_t axis) {
  const uint32_t missing = output.rank - shape.rank;
  return axis < missing ? 1 : shape[axis - missing];
}

// Whether each extent of the output is that of an input, and every other one 1.
bool broadcasts_to(const Shape (&inputs)[3], const Shape& output) {
  for (const Shape& input : inputs) {
    if (input.rank > output.rank) return false;
  }
  for (uint32_t axis = 0; axis < output.rank; ++axis) {
    bool has_extent = output[axis] == 1;
    for (const Shape& input : inputs) {
      const uint32_t extent = extent_at(input, output, axis);
      if (extent != 1 && extent != output[axis]) return false;
      has_extent = has_extent || extent == output[axis];
    }
    if (!has_extent) return false;
  }
  return true;
}

void fill_strides(const Shape& input, const Shape& output, uint64_t* strides) {
  uint64_t stride = 1;
  for (uint32_t axis = output.rank; axis-- > 0;) {
    const uint32_t extent = extent_at(input, output, axis);
    strides[axis] = extent == 1 ? 0 : stride;
    stride *= extent;
  }
}

qplan_status bind_select(const StepView& step, bool checked, SelectArgs& args, Error* error) {
  const StepCheck check(step, "select", error);
  if (checked && !check_select(check, step)) return check.status();
  const Shape inputs[3] = {shape_of(step.input(0)), shape_of(step.input(1)), shape_of(step.input(2))};
  const Shape output = shape_of(step.output(0));
  if (!broadcasts_to(inputs, output)) {
    check.fail_output(0, "output") << "is not the shape that the inputs broadcast to";
    return check.status();
  }
  args.condition = static_cast<const uint8_t*>(step.input_data(0));
  args.a = static_cast<const uint8_t*>(step.input_data(1));
  args.b = static_cast<const uint8_t*>(step.input_data(2));
  args.output = static_cast<uint8_t*>(step.output_data(0));
  args.element_bytes = dtype_bytes(step.input(1).dtype);
  args.elements = output.elements();
  if (output.rank == 0) return QPLAN_OK;  // one element, as the defaults say
  args.rank = output.rank;
  for (uint32_t axis = 0; axis < output.rank; ++axis) args.extents[axis] = output[axis];
  fill_strides(inputs[0], output, args.condition_strides);
  fill_strides(inputs[1], output, args.a_strides);
  fill_strides(inputs[2], output, args.b_strides);
  return QPLAN_OK;
}

uint64_t select_work(const SelectArgs& args) { return args.elements; }

#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(CompareArgs, name, isa),
constexpr KernelVariant kCompareVariants[] = {QPLAN_COMPARE_VARIANTS};
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(SelectArgs, name, isa),
constexpr KernelVariant kSelectVariants[] = {QPLAN_SELECT_VARIANTS};
#undef QPLAN_VARIANT

}  // namespace

constexpr KernelFamily kCompareFamily = make_family<CompareArgs, bind_compare, binary_in_place, compare_work>(
    kKernel_compare, "compare", kCompareVariants);
constexpr KernelFamily kCompareFamilyReference = kCompareFamily;
constexpr KernelFamily kSelectFamily = make_family<SelectArgs, bind_select, binary_in_place, select_work>(
    kKernel_select, "select", kSelectVariants);
constexpr KernelFamily kSelectFamilyReference = kSelectFamily;

}  // namespace qplan
