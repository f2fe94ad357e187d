// Kernel argument binding of float_gru.
#include "kernels/gru/gru.h"

#include "kernels/float_conv2d/float_conv2d.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

enum Input : uint32_t {
  kInput,
  kInputWeights,
  kRecurrentWeights,
  kInputBias,
  kRecurrentBias,
  kFirstState,
  kNumInputs
};
enum Output : uint32_t { kOutput, kLastState, kNumOutputs };

bool check_step(const StepCheck& check) {
  if (!check.arity(kNumInputs, kNumOutputs) || !check.params(format::KernelParams_FloatGruParams))
    return false;
  constexpr auto kFloats = dtype_bit(Dtype::kF32);
  Shape input, output, first, last;
  if (!check.input(kInput, "input", kFloats, 3, &input) ||
      !check.output(kOutput, "output", kFloats, 3, &output) ||
      !check.input(kFirstState, "first state", kFloats, 2, &first) ||
      !check.output(kLastState, "last state", kFloats, 2, &last)) {
    return false;
  }
  const bool time_major = check.params_as<format::FloatGruParams>().time_major();
  const uint32_t batch = input[time_major ? 1 : 0], cells = first[1];
  for (const Shape& state : {first, last}) {
    if (state[0] == batch && state[1] == cells) continue;
    return check.fail() << "a state of " << state[0] << " x " << state[1] << " is not of " << batch
                        << " samples and " << cells << " cells";
  }
  if (output[0] != input[0] || output[1] != input[1] || output[2] != cells) {
    return check.fail_output(kOutput, "output")
           << "is not the input's sequence with " << cells << " channels";
  }
  const uint64_t rows = uint64_t{kGruGates} * cells;
  const uint64_t padded = (rows + kFloatBlock - 1) / kFloatBlock * kFloatBlock;
  return check.range("rows of the gates", static_cast<int64_t>(rows), 1, INT32_MAX) &&
         check.range("input channels", input[2], 1, INT32_MAX) &&
         check.constant(kInputWeights, "input weights", Dtype::kF32, padded * input[2]) &&
         check.constant(kRecurrentWeights, "recurrent weights", Dtype::kF32, padded * cells) &&
         check.constant(kInputBias, "input bias", Dtype::kF32, padded) &&
         check.constant(kRecurrentBias, "recurrent bias", Dtype::kF32, padded);
}

qplan_status bind(const StepView& step, bool checked, FloatGruArgs& args, Error* error) {
  const StepCheck check(step, "float_gru", error);
  if (checked && !check_step(check)) return check.status();
  const auto& p = check.params_as<format::FloatGruParams>();
  const Shape input = shape_of(step.input(kInput));
  args.time_major = p.time_major();
  args.reset_after = p.reset_after();
  args.batch = input[args.time_major ? 1 : 0];
  args.steps = input[args.time_major ? 0 : 1];
  args.input_c = input[2];
  args.cells = shape_of(step.input(kFirstState))[1];
  args.input = static_cast<const float*>(step.input_data(kInput));
  args.input_weights = static_cast<const float*>(step.input_data(kInputWeights));
  args.recurrent_weights = static_cast<const float*>(step.input_data(kRecurrentWeights));
  args.input_bias = static_cast<const float*>(step.input_data(kInputBias));
  args.recurrent_bias = static_cast<const float*>(step.input_data(kRecurrentBias));
  args.first_state = static_cast<const float*>(step.input_data(kFirstState));
  args.output = static_cast<float*>(step.output_data(kOutput));
  args.last_state = static_cast<float*>(step.output_data(kLastState));
  return QPLAN_OK;
}

uint64_t work(const FloatGruArgs& args) {
  return saturating_product(args.batch, args.steps, gru_rows(args), uint64_t{args.input_c} + args.cells + 1);
}

// A sample's state is read before its first step, element by element.
bool in_place(const StepView&, uint32_t output, uint32_t input) {
  return output == kLastState && input == kFirstState;
}

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(FloatGruArgs, name, isa),
    QPLAN_FLOAT_GRU_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(FloatGruArgs, float_gru_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kFloatGruFamily =
    make_family<FloatGruArgs, bind, in_place, work>(kKernel_float_gru, "float_gru", kVariants);
constexpr KernelFamily kFloatGruFamilyReference =
    make_family<FloatGruArgs, bind, in_place, work>(kKernel_float_gru, "float_gru", kReference);

}  // namespace qplan
