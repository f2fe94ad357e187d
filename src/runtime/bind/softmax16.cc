
#include "kernels/softmax/softmax.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

// The tables are there where the input is int16.
enum Input : uint32_t { kInput, kExpTable, kReciprocalTable, kNumInputs };

// Not negative, so that sums are not, and two at the end of the first, so that no sum is 0.
bool check_table(const StepCheck& check, const StepView& step, uint32_t input, const char* role) {
  if (!check.constant(input, role, Dtype::kS16, Softmax16Args::kTableEntries)) return false;
  const auto* table = static_cast<const int16_t*>(step.input_data(input));
  for (uint32_t i = 0; i < Softmax16Args::kTableEntries; ++i) {
    const int32_t least = input == kExpTable && i + 2 >= Softmax16Args::kTableEntries ? 2 : 0;
    if (table[i] < least)
      return check.fail_input(input, role) << "entry " << i << " is " << int32_t{table[i]};
  }
  return true;
}

bool check_step(const StepCheck& check, const StepView& step) {
  Shape input, output;
  if (!check.params(format::KernelParams_Softmax16Params) ||
      !check.arity(step.num_inputs() == 1 ? 1u : uint32_t{kNumInputs}, 1) ||
      !check.input(kInput, "input", dtype_bit(step.num_inputs() == 1 ? Dtype::kS8 : Dtype::kS16), kAnyRank,
                   &input) ||
      !check.output(0, "output", dtype_bit(Dtype::kS16), kAnyRank, &output)) {
    return false;
  }
  const auto& p = check.params_as<format::Softmax16Params>();
  if (input.rank == 0) return check.fail_input(kInput, "input") << "is a scalar, expected at least one axis";
  if (input != output) return check.fail_output(0, "output") << "has another shape than the input";
  const uint64_t depth = input[input.rank - 1];
  if (!check.range("number of rows", static_cast<int64_t>(input.elements() / depth), 1, INT32_MAX))
    return false;
  if (step.num_inputs() == 1) {
    return check.range("input_multiplier", p.input_multiplier(), 0, INT32_MAX) &&
           check.range("input_shift", p.input_shift(), 0, 31) &&
           check.range("diff_min", p.diff_min(), -(SoftmaxArgs::kMaxShifted >> p.input_shift()), 0);
  }
  return check.range("depth", static_cast<int64_t>(depth), 1, UINT16_MAX) &&
         check.multiplier("input", p.input_multiplier(), p.input_shift()) &&
         check_table(check, step, kExpTable, "table of exponentials") &&
         check_table(check, step, kReciprocalTable, "table of reciprocals");
}

qplan_status bind(const StepView& step, bool checked, Softmax16Args& args, Error* error) {
  const StepCheck check(step, "softmax16", error);
  if (checked && !check_step(check, step)) return check.status();
  const auto& p = check.params_as<format::Softmax16Params>();
  const Shape shape = shape_of(step.input(kInput));
  args.dtype = step.input(kInput).dtype;
  args.input = step.input_data(kInput);
  args.output = static_cast<int16_t*>(step.output_data(0));
  args.depth = shape[shape.rank - 1];
  args.rows = static_cast<uint32_t>(shape.elements() / args.depth);
  args.input_multiplier = p.input_multiplier();
  args.input_shift = p.input_shift();
  args.diff_min = p.diff_min();
  if (args.dtype == Dtype::kS16) {
    args.exp_table = static_cast<const int16_t*>(step.input_data(kExpTable));
    args.reciprocal_table = static_cast<const int16_t*>(step.input_data(kReciprocalTable));
  }
  return QPLAN_OK;
}

uint64_t work(const Softmax16Args& args) {
  constexpr uint64_t kPasses = 3;  // the maximum, the sum, the quotients
  return saturating_product(kPasses, args.rows, args.depth);
}

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(Softmax16Args, name, isa),
    QPLAN_SOFTMAX16_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kSoftmax16Family =
    make_family<Softmax16Args, bind, never_in_place, work>(kKernel_softmax16, "softmax16", kVariants);
constexpr KernelFamily kSoftmax16FamilyReference = kSoftmax16Family;

}  // namespace qplan
