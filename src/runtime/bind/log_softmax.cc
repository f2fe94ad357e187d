
#include "kernels/softmax/softmax.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  Shape input, output;
  if (!check.arity(1, 1) || !check.params(format::KernelParams_LogSoftmaxParams) ||
      !check.input(0, "input", kDtypesU8S8, kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(step.input(0).dtype), kAnyRank, &output)) {
    return false;
  }
  if (input.rank == 0) return check.fail_input(0, "input") << "is a scalar, expected at least one axis";
  if (input != output) return check.fail_output(0, "output") << "has another shape than the input";
  const auto& p = check.params_as<format::LogSoftmaxParams>();
  const uint64_t rows = input.elements() / input[input.rank - 1];
  return check.range("number of rows", static_cast<int64_t>(rows), 1, INT32_MAX) &&
         check.range("input_multiplier", p.input_multiplier(), 0, INT32_MAX) &&
         check.range("input_left_shift", p.input_left_shift(), 0, 31) &&
         check.range("diff_min", p.diff_min(), -(SoftmaxArgs::kMaxShifted >> p.input_left_shift()), 0) &&
         check.range("reverse_multiplier", p.reverse_multiplier(), 0, INT32_MAX) &&
         check.range("reverse_shift", p.reverse_shift(), -31, 0);
}

qplan_status bind(const StepView& step, bool checked, LogSoftmaxArgs& args, Error* error) {
  const StepCheck check(step, "log_softmax", error);
  if (checked && !check_step(check, step)) return check.status();
  const auto& p = check.params_as<format::LogSoftmaxParams>();
  const Shape shape = shape_of(step.input(0));
  args.dtype = step.input(0).dtype;
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.depth = shape[shape.rank - 1];
  args.rows = static_cast<uint32_t>(shape.elements() / args.depth);
  args.input_multiplier = p.input_multiplier();
  args.input_left_shift = p.input_left_shift();
  args.diff_min = p.diff_min();
  args.reverse_multiplier = p.reverse_multiplier();
  args.reverse_shift = p.reverse_shift();
  return QPLAN_OK;
}

// A row is read whole before its first output is written, and again element by element.
bool in_place(const StepView&, uint32_t, uint32_t input) { return input == 0; }

uint64_t work(const LogSoftmaxArgs& args) {
  constexpr uint64_t kPasses = 3;  // the maximum, the sum, the differences
  return saturating_product(kPasses, args.rows, args.depth);
}

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(LogSoftmaxArgs, name, isa),
    QPLAN_LOG_SOFTMAX_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kLogSoftmaxFamily =
    make_family<LogSoftmaxArgs, bind, in_place, work>(kKernel_log_softmax, "log_softmax", kVariants);
constexpr KernelFamily kLogSoftmaxFamilyReference = kLogSoftmaxFamily;

}  // namespace qplan
