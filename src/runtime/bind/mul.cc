#include "kernels/mul/mul.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_scaling(const StepCheck& check, const format::MulParams& params) {
  if (params.contract() == format::Contract_F32E) {
    return check.scale("input1_scale", params.input1_scale()) &&
           check.scale("input2_scale", params.input2_scale()) &&
           check.scale("output_scale", params.output_scale());
  }
  return check.multiplier("output", params.output_multiplier(), params.output_shift());
}

bool check_params(const StepCheck& check, const format::MulParams& params, Dtype dtype) {
  // The product of two differences to zero points of int16 would not fit int32.
  if (dtype == Dtype::kS16 &&
      (!check.contract_of_dtype(params.contract(), dtype) ||
       !check.range("input1_zero_point of int16", params.input1_zero_point(), 0, 0) ||
       !check.range("input2_zero_point of int16", params.input2_zero_point(), 0, 0))) {
    return false;
  }
  return check.contract(params.contract(), kContractsTfl2F32e) && check_scaling(check, params) &&
         check.in_dtype("input1_zero_point", params.input1_zero_point(), dtype) &&
         check.in_dtype("input2_zero_point", params.input2_zero_point(), dtype) &&
         check.in_dtype("output_zero_point", params.output_zero_point(), dtype) &&
         check.clamp(params.clamp_min(), params.clamp_max(), dtype);
}

qplan_status bind(const StepView& step, bool checked, MulArgs& args, Error* error) {
  const StepCheck check(step, "mul", error);
  if (checked) {
    if (!check.arity(2, 1) || !check.params(format::KernelParams_MulParams) ||
        !check.input(0, "input 1", kDtypesQuantized, kAnyRank, nullptr)) {
      return check.status();
    }
    const Dtype dtype = step.input(0).dtype;
    if (!check.input(1, "input 2", dtype_bit(dtype), kAnyRank, nullptr) ||
        !check.output(0, "output", dtype_bit(dtype), kAnyRank, nullptr) ||
        !check_params(check, check.params_as<format::MulParams>(), dtype)) {
      return check.status();
    }
  }
  if (!make_broadcast(shape_of(step.input(0)), shape_of(step.input(1)), shape_of(step.output(0)),
                      &args.broadcast)) {
    check.fail_output(0, "output") << "is not the shape that the inputs broadcast to";
    return check.status();
  }
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

uint64_t work(const MulArgs& args) { return args.broadcast.elements; }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(MulArgs, name, isa),
    QPLAN_MUL_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(MulArgs, mul_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kMulFamily =
    make_family<MulArgs, bind, binary_in_place, work>(kKernel_mul, "mul", kVariants);
constexpr KernelFamily kMulFamilyReference =
    make_family<MulArgs, bind, binary_in_place, work>(kKernel_mul, "mul", kReference);

}  // namespace qplan
