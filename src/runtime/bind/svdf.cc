#include "kernels/svdf/svdf.h"

#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

enum Input : uint32_t { kInput, kFeatureWeights, kTimeWeights, kFeatureBias, kBias, kFirstState, kNumInputs };
enum Output : uint32_t { kOutput, kLastState, kNumOutputs };

bool check_step(const StepCheck& check, const StepView& step) {
  Shape input, output, first, last;
  const uint32_t state_dtypes = dtype_bit(Dtype::kS8) | dtype_bit(Dtype::kS16);
  if (!check.arity(kNumInputs, kNumOutputs) || !check.params(format::KernelParams_SvdfParams) ||
      !check.input(kInput, "input", dtype_bit(Dtype::kS8), 2, &input) ||
      !check.output(kOutput, "output", dtype_bit(Dtype::kS8), 2, &output) ||
      !check.input(kFirstState, "first state", state_dtypes, 3, &first)) {
    return false;
  }
  const Dtype dtype = step.input(kFirstState).dtype;
  if (!check.output(kLastState, "last state", dtype_bit(dtype), 3, &last)) return false;
  const auto& p = check.params_as<format::SvdfParams>();
  if (first != last) return check.fail_output(kLastState, "last state") << "has another shape than the first";
  const uint64_t filters = first[1], memory = first[2];
  if (first[0] != input[0] || output[0] != input[0])
    return check.fail() << "input, state and output are not of as many samples";
  if (p.rank() == 0 || filters % p.rank() != 0 || output[1] != filters / p.rank()) {
    return check.fail() << filters << " filters of rank " << p.rank() << " do not make " << output[1]
                        << " units";
  }
  return check.range("filters of all samples", static_cast<int64_t>(input[0] * filters), 1, INT32_MAX) &&
         check.constant(kFeatureWeights, "feature weights", Dtype::kS8, filters * input[1]) &&
         check.constant(kTimeWeights, "time weights", dtype, filters * memory) &&
         check.constant(kFeatureBias, "feature bias", Dtype::kS32, filters) &&
         check.constant(kBias, "bias", Dtype::kS32, output[1]) &&
         check.multiplier("feature", p.feature_multiplier(), p.feature_shift()) &&
         check.multiplier("output", p.output_multiplier(), p.output_shift()) &&
         check.in_dtype("output zero point", p.output_zero_point(), Dtype::kS8);
}

qplan_status bind(const StepView& step, bool checked, SvdfArgs& args, Error* error) {
  const StepCheck check(step, "svdf", error);
  if (checked && !check_step(check, step)) return check.status();
  const auto& p = check.params_as<format::SvdfParams>();
  const Shape input = shape_of(step.input(kInput)), state = shape_of(step.input(kFirstState));
  args.input = static_cast<const int8_t*>(step.input_data(kInput));
  args.feature_weights = static_cast<const int8_t*>(step.input_data(kFeatureWeights));
  args.time_weights = step.input_data(kTimeWeights);
  args.feature_bias = static_cast<const int32_t*>(step.input_data(kFeatureBias));
  args.bias = static_cast<const int32_t*>(step.input_data(kBias));
  args.first_state = step.input_data(kFirstState);
  args.output = static_cast<int8_t*>(step.output_data(kOutput));
  args.last_state = step.output_data(kLastState);
  args.batch = input[0];
  args.input_c = input[1];
  args.filters = state[1];
  args.rank = p.rank();
  args.memory = state[2];
  args.feature_multiplier = p.feature_multiplier();
  args.feature_shift = p.feature_shift();
  args.output_multiplier = p.output_multiplier();
  args.output_shift = p.output_shift();
  args.output_zero_point = p.output_zero_point();
  args.state_dtype = step.input(kFirstState).dtype;
  return QPLAN_OK;
}

uint64_t work(const SvdfArgs& args) {
  return saturating_product(args.batch, args.filters, uint64_t{args.input_c} + args.memory + 1);
}

bool in_place(const StepView&, uint32_t output, uint32_t input) {
  return output == kLastState && input == kFirstState;
}

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(SvdfArgs, name, isa),
    QPLAN_SVDF_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kSvdfFamily =
    make_family<SvdfArgs, bind, in_place, work>(kKernel_svdf, "svdf", kVariants);
constexpr KernelFamily kSvdfFamilyReference = kSvdfFamily;

}  // namespace qplan
