// Kernel argument binding of softmax, log_softmax and softmax16.
#include "kernels/softmax/softmax.h"

#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {

// ---- softmax ----

namespace {

// softmax has a table under F32E, softmax16 both where the input is int16.
enum Input : uint32_t { kInput, kExpTable, kReciprocalTable, kNumSoftmax16Inputs };

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
      !check.constant(kExpTable, "table", Dtype::kF32, SoftmaxArgs::kTableEntries)) {
    return false;
  }
  const auto* table = static_cast<const float*>(step.input_data(kExpTable));
  if (table[0] != 1.0f) return check.fail_input(kExpTable, "table") << "does not begin with 1";
  for (uint32_t d = 0; d < SoftmaxArgs::kTableEntries; ++d) {
    if (table[d] >= 0.0f && table[d] <= 1.0f) continue;
    return check.fail_input(kExpTable, "table") << "entry " << d << " is not in 0 .. 1";
  }
  return true;
}

bool check_softmax(const StepCheck& check, const StepView& step) {
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

qplan_status bind_softmax(const StepView& step, bool checked, SoftmaxArgs& args, Error* error) {
  const StepCheck check(step, "softmax", error);
  if (checked && !check_softmax(check, step)) return check.status();
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
  if (args.contract == Contract::kF32e) args.table = static_cast<const float*>(step.input_data(kExpTable));
  args.output_scale = params.output_scale();
  args.output_zero_point = params.output_zero_point();
  return QPLAN_OK;
}

// A row is written only after its first pass has read all of it, and element by element.
bool softmax_in_place(const StepView&, uint32_t, uint32_t input) { return input == kInput; }

uint64_t softmax_work(const SoftmaxArgs& args) {
  constexpr uint64_t kPasses = 3;  // the maximum, the sum, the quotients
  return saturating_product(kPasses, args.rows, args.depth);
}

constexpr KernelVariant kSoftmaxVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(SoftmaxArgs, name, isa),
    QPLAN_SOFTMAX_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kSoftmaxReference[] = {
    QPLAN_VARIANT_ROW(SoftmaxArgs, softmax_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kSoftmaxFamily =
    make_family<SoftmaxArgs, bind_softmax, softmax_in_place, softmax_work>(kKernel_softmax, "softmax",
                                                                           kSoftmaxVariants);
constexpr KernelFamily kSoftmaxFamilyReference =
    make_family<SoftmaxArgs, bind_softmax, softmax_in_place, softmax_work>(kKernel_softmax, "softmax",
                                                                           kSoftmaxReference);

// ---- log_softmax ----

namespace {

bool check_log_softmax(const StepCheck& check, const StepView& step) {
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

qplan_status bind_log_softmax(const StepView& step, bool checked, LogSoftmaxArgs& args, Error* error) {
  const StepCheck check(step, "log_softmax", error);
  if (checked && !check_log_softmax(check, step)) return check.status();
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
bool log_softmax_in_place(const StepView&, uint32_t, uint32_t input) { return input == 0; }

uint64_t log_softmax_work(const LogSoftmaxArgs& args) {
  constexpr uint64_t kPasses = 3;  // the maximum, the sum, the differences
  return saturating_product(kPasses, args.rows, args.depth);
}

constexpr KernelVariant kLogSoftmaxVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(LogSoftmaxArgs, name, isa),
    QPLAN_LOG_SOFTMAX_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kLogSoftmaxFamily =
    make_family<LogSoftmaxArgs, bind_log_softmax, log_softmax_in_place, log_softmax_work>(
        kKernel_log_softmax, "log_softmax", kLogSoftmaxVariants);
constexpr KernelFamily kLogSoftmaxFamilyReference = kLogSoftmaxFamily;

// ---- softmax16 ----

namespace {

// Not negative, so that sums are not, and two at the end of the first, so that no sum is 0.
bool check_softmax16_table(const StepCheck& check, const StepView& step, uint32_t input, const char* role) {
  if (!check.constant(input, role, Dtype::kS16, Softmax16Args::kTableEntries)) return false;
  const auto* table = static_cast<const int16_t*>(step.input_data(input));
  for (uint32_t i = 0; i < Softmax16Args::kTableEntries; ++i) {
    const int32_t least = input == kExpTable && i + 2 >= Softmax16Args::kTableEntries ? 2 : 0;
    if (table[i] < least)
      return check.fail_input(input, role) << "entry " << i << " is " << int32_t{table[i]};
  }
  return true;
}

bool check_softmax16(const StepCheck& check, const StepView& step) {
  Shape input, output;
  if (!check.params(format::KernelParams_Softmax16Params) ||
      !check.arity(step.num_inputs() == 1 ? 1u : uint32_t{kNumSoftmax16Inputs}, 1) ||
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
         check_softmax16_table(check, step, kExpTable, "table of exponentials") &&
         check_softmax16_table(check, step, kReciprocalTable, "table of reciprocals");
}

qplan_status bind_softmax16(const StepView& step, bool checked, Softmax16Args& args, Error* error) {
  const StepCheck check(step, "softmax16", error);
  if (checked && !check_softmax16(check, step)) return check.status();
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

uint64_t softmax16_work(const Softmax16Args& args) {
  constexpr uint64_t kPasses = 3;  // the maximum, the sum, the quotients
  return saturating_product(kPasses, args.rows, args.depth);
}

constexpr KernelVariant kSoftmax16Variants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(Softmax16Args, name, isa),
    QPLAN_SOFTMAX16_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kSoftmax16Family =
    make_family<Softmax16Args, bind_softmax16, never_in_place, softmax16_work>(kKernel_softmax16, "softmax16",
                                                                               kSoftmax16Variants);
constexpr KernelFamily kSoftmax16FamilyReference = kSoftmax16Family;

}  // namespace qplan
