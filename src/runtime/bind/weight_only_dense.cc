#include "kernels/float/weight_only_dense.h"

#include "src/base/checked.h"
#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

enum Input : uint32_t { kInput, kWeights, kScales, kZeros, kBias, kNumInputs };

bool check_dense(const StepCheck& check) {
  Shape input, output;
  if (!check.arity(kNumInputs, 1) || !check.params(format::KernelParams_WeightOnlyDenseParams) ||
      !check.input(kInput, "input", dtype_bit(Dtype::kF32), kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(Dtype::kF32), kAnyRank, &output)) {
    return false;
  }
  if (input.rank == 0 || output.rank != input.rank) {
    return check.fail_output(0, "output")
           << "has rank " << output.rank << ", the input " << input.rank << ", expected the same from 1 on";
  }
  const uint32_t last = input.rank - 1;
  if (!equal_but_for_axis(input, output, last))
    return check.fail_output(0, "output") << "differs from the input in another axis than the last";
  if (!check.range("output rows", static_cast<int64_t>(axis_rows(input, last)), 1, INT32_MAX)) return false;
  const auto& p = check.params_as<format::WeightOnlyDenseParams>();
  if (p.bits() != 4 && p.bits() != 8)
    return check.fail() << "weights have " << uint32_t{p.bits()} << " bits, expected 4 or 8";
  if (p.block() == 0 || (p.bits() == 4 && p.block() % 2 != 0))
    return check.fail() << "blocks of " << p.block()
                        << " weights, expected at least 1, and an even number of 4 bits";
  if (!check.float_clamp(p.clamp_min(), p.clamp_max())) return false;
  const uint64_t channels = (uint64_t{output[last]} + kFloatBlock - 1) / kFloatBlock * kFloatBlock;
  const uint64_t steps = p.bits() == 8 ? input[last] : (uint64_t{input[last]} + 1) / 2;
  const uint64_t num_scales = (input[last] - 1) / p.block() + 1;
  return check.constant(kWeights, "weights", Dtype::kU8, steps * channels) &&
         check.constant(kScales, "scales", Dtype::kF32, num_scales * channels) &&
         check.constant(kZeros, "zero points", Dtype::kU8, num_scales * channels) &&
         check.constant(kBias, "bias", Dtype::kF32, channels);
}

qplan_status bind_dense(const StepView& step, bool checked, WeightOnlyDenseArgs& args, Error* error) {
  const StepCheck check(step, "weight_only_dense", error);
  if (checked && !check_dense(check)) return check.status();
  const auto& p = check.params_as<format::WeightOnlyDenseParams>();
  const Shape input = shape_of(step.input(kInput)), output = shape_of(step.output(0));
  args.input = static_cast<const float*>(step.input_data(kInput));
  args.weights = static_cast<const uint8_t*>(step.input_data(kWeights));
  args.scales = static_cast<const float*>(step.input_data(kScales));
  args.zeros = static_cast<const uint8_t*>(step.input_data(kZeros));
  args.bias = static_cast<const float*>(step.input_data(kBias));
  args.output = static_cast<float*>(step.output_data(0));
  args.rows = static_cast<uint32_t>(axis_rows(input, input.rank - 1));
  args.input_c = input[input.rank - 1];
  args.output_c = output[output.rank - 1];
  args.bits = p.bits();
  args.block = p.block();
  args.clamp_min = p.clamp_min();
  args.clamp_max = p.clamp_max();
  return QPLAN_OK;
}

uint64_t dense_work(const WeightOnlyDenseArgs& args) {
  return saturating_product(args.rows, args.output_c, saturating_sum(args.input_c, 1));
}

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(WeightOnlyDenseArgs, name, isa),
    QPLAN_WEIGHT_ONLY_DENSE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {
    QPLAN_VARIANT_ROW(WeightOnlyDenseArgs, weight_only_dense_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kWeightOnlyDenseFamily =
    make_family<WeightOnlyDenseArgs, bind_dense, never_in_place, dense_work>(kKernel_weight_only_dense,
                                                                             "weight_only_dense", kVariants);
constexpr KernelFamily kWeightOnlyDenseFamilyReference =
    make_family<WeightOnlyDenseArgs, bind_dense, never_in_place, dense_work>(kKernel_weight_only_dense,
                                                                             "weight_only_dense", kReference);

}  // namespace qplan
