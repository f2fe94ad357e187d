#include "kernels/softmax/softmax.h"

#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

enum Input : uint32_t { kInput, kTable };

bool check_scaling(const StepCheck& check, const format::SoftmaxParams& params) {
  return check.range("input_multiplier", params.input_multiplier(), 0, INT32_MAX) &&
         check.range("input_left_shift", params.input_left_shift(), 0, 31) &&
         check.range("diff_min", params.diff_min(), -(SoftmaxArgs::kMaxShifted >> params.input_left_shift()),
                     0);
}

// Checks the table of a step under F32E: with entries in [0, 1] and a first entry of 1, sums are at least 1,
// and quotients are numbers.
bool check_table(const StepCheck& check, const StepView& step, const format::SoftmaxParams& params) {
  if (!check.scale("output_scale", params.output_scale()) ||
      !check.in_dtype("output_zero_point", params.output_zero_point(), step.output_dtype(0)) ||
      !check.constant(kTable, "table", Dtype::kF32, SoftmaxArgs::kTableEntries)) {
    return false;
  }
  const auto* table = static_cast<const float*>(step.input_data(kTable));
  if (table[0] != 1.0f) return check.fail_input(kTable, "table") << "does not begin with 1";
  for (uint32_t d = 0; d < SoftmaxArgs::kTableEntries; ++d) {
    if (table[d] >= 0.0f && table[d] <= 1.0f) continue;
    return check.fail_input(kTable, "table") << "entry " << d << " is not in 0 .. 1";
  }
  return true;
}

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.params(format::KernelParams_SoftmaxParams)) return false;
  const format::SoftmaxParams& params = check.params_as<format::SoftmaxParams>();
  const bool is_f32e = params.contract() == format::Contract_F32E;
  if (!check.contract(params.contract(), kContractsTfl2F32e) || !check.arity(is_f32e ? 2 : 1, 1))
    return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", kDtypesU8S8, kAnyRank, &input)) return false;
  if (!check.output(0, "output", dtype_bit(step.input_dtype(kInput)), kAnyRank, &output)) return false;
  if (input.rank == 0) return check.fail_input(0, "input") << "is a scalar, expected at least one axis";
  if (input != output) return check.fail_output(0, "output") << "has another shape than the input";
  const uint64_t rows = rows_of(step, step.step->inputs()->Get(kInput));
  return check.range("number of rows", static_cast<int64_t>(rows), 1, INT32_MAX) &&
         (is_f32e ? check_table(check, step, params) : check_scaling(check, params));
}

qplan_status bind(const StepView& step, bool checked, SoftmaxArgs& args, Error* error) {
  const StepCheck check(step, "softmax", error);
  if (checked && !check_step(check, step)) return check.status();
  const format::SoftmaxParams& params = check.params_as<format::SoftmaxParams>();
  const uint32_t input = step.step->inputs()->Get(kInput);
  args.contract = contract_of(params.contract());
  args.dtype = step.dtype(input);
  args.input = step.address(input);
  args.output = step.output_data(0);
  args.depth = columns_of(step, input);
  args.rows = static_cast<uint32_t>(rows_of(step, input));
  args.input_multiplier = params.input_multiplier();
  args.input_left_shift = params.input_left_shift();
  args.diff_min = params.diff_min();
  if (args.contract == Contract::kF32e) args.table = static_cast<const float*>(step.input_data(kTable));
  args.output_scale = params.output_scale();
  args.output_zero_point = params.output_zero_point();
  return QPLAN_OK;
}

// A row is written only after its first pass has read all of it, and element by element.
bool in_place(const StepView&, uint32_t, uint32_t input) { return input == kInput; }

uint64_t work(const SoftmaxArgs& args) {
  constexpr uint64_t kPasses = 3;  // the maximum, the sum, the quotients
  return saturating_product(kPasses, args.rows, args.depth);
}

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(SoftmaxArgs, name, isa),
    QPLAN_SOFTMAX_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(SoftmaxArgs, softmax_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kSoftmaxFamily =
    make_family<SoftmaxArgs, bind, in_place, work>(kKernel_softmax, "softmax", kVariants);
constexpr KernelFamily kSoftmaxFamilyReference =
    make_family<SoftmaxArgs, bind, in_place, work>(kKernel_softmax, "softmax", kReference);

}  // namespace qplan
