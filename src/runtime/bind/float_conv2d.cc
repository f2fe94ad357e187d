#include "kernels/float_conv2d/float_conv2d.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

enum Input : uint32_t { kInput, kWeights, kBias, kNumInputs };

uint64_t round_up_to_block(uint64_t channels) {
  return (channels + kFloatBlock - 1) / kFloatBlock * kFloatBlock;
}

// Layers of other ranks than 4 are fully connected: rows of input channels become rows of output channels.
struct Extents {
  uint32_t batch, input_h, input_w, input_c, output_h, output_w, output_c;
};

Extents extents_of(const Shape& input, const Shape& output) {
  if (input.rank == 4) return {input[0], input[1], input[2], input[3], output[1], output[2], output[3]};
  const uint32_t last = input.rank - 1;
  return {static_cast<uint32_t>(axis_rows(input, last)), 1, 1, input[last], 1, 1, output[output.rank - 1]};
}

bool check_shapes(const StepCheck& check, const format::FloatWindowParams& p, const Shape& input,
                  const Shape& output) {
  if (input.rank == 0 || output.rank != input.rank) {
    return check.fail_output(0, "output")
           << "has rank " << output.rank << ", the input " << input.rank << ", expected the same from 1 on";
  }
  const uint32_t last = input.rank - 1;
  if (input.rank == 4) {
    if (input[0] != output[0]) {
      return check.fail() << "input batch " << input[0] << " is not the output's " << output[0];
    }
    return check.range("output rows", int64_t{output[0]} * output[1], 1, INT32_MAX);
  }
  if (p.kernel_h() != 1 || p.kernel_w() != 1 || p.stride_h() != 1 || p.stride_w() != 1 || p.pad_top() != 0 ||
      p.pad_left() != 0) {
    return check.fail() << "a window over height and width asks for an input of rank 4, not " << input.rank;
  }
  if (!equal_but_for_axis(input, output, last)) {
    return check.fail_output(0, "output") << "differs from the input in another axis than the last";
  }
  return check.range("output rows", static_cast<int64_t>(axis_rows(input, last)), 1, INT32_MAX);
}

bool check_step(const StepCheck& check) {
  Shape input, output;
  if (!check.arity(kNumInputs, 1) || !check.params(format::KernelParams_FloatWindowParams) ||
      !check.input(kInput, "input", dtype_bit(Dtype::kF32), kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(Dtype::kF32), kAnyRank, &output)) {
    return false;
  }
  const auto& p = check.params_as<format::FloatWindowParams>();
  if (!check_shapes(check, p, input, output)) return false;
  const Extents e = extents_of(input, output);
  if (!check.window(
          {"height", e.input_h, e.output_h, p.kernel_h(), p.stride_h(), p.dilation_h(), p.pad_top()}) ||
      !check.window(
          {"width", e.input_w, e.output_w, p.kernel_w(), p.stride_w(), p.dilation_w(), p.pad_left()}) ||
      !check.float_clamp(p.clamp_min(), p.clamp_max())) {
    return false;
  }
  if (p.groups() < 1 || e.input_c % p.groups() != 0 || e.output_c % p.groups() != 0) {
    return check.fail() << "input channels " << e.input_c << " or output channels " << e.output_c
                        << " are not divisible by groups " << p.groups();
  }
  uint64_t num_k = uint64_t{p.kernel_h()} * p.kernel_w();
  if (!checked_mul(num_k, uint64_t{e.input_c / p.groups()}, &num_k) || num_k > INT32_MAX) {
    return check.fail() << "kernel " << p.kernel_h() << " x " << p.kernel_w() << " over "
                        << e.input_c / p.groups() << " channels is too large";
  }
  const uint64_t channels = round_up_to_block(e.output_c);
  return check.constant(kWeights, "weights", Dtype::kF32, num_k * channels) &&
         check.constant(kBias, "bias", Dtype::kF32, channels);
}

qplan_status bind(const StepView& step, bool checked, FloatConv2dArgs& args, Error* error) {
  const StepCheck check(step, "float_conv2d", error);
  if (checked && !check_step(check)) return check.status();
  const auto& p = check.params_as<format::FloatWindowParams>();
  const Extents e = extents_of(shape_of(step.input(kInput)), shape_of(step.output(0)));
  args.input = static_cast<const float*>(step.input_data(kInput));
  args.weights = static_cast<const float*>(step.input_data(kWeights));
  args.bias = static_cast<const float*>(step.input_data(kBias));
  args.output = static_cast<float*>(step.output_data(0));
  args.batch = e.batch;
  args.input_h = e.input_h;
  args.input_w = e.input_w;
  args.input_c = e.input_c;
  args.output_h = e.output_h;
  args.output_w = e.output_w;
  args.output_c = e.output_c;
  args.kernel_h = p.kernel_h();
  args.kernel_w = p.kernel_w();
  args.stride_h = p.stride_h();
  args.stride_w = p.stride_w();
  args.dilation_h = p.dilation_h();
  args.dilation_w = p.dilation_w();
  args.pad_top = p.pad_top();
  args.pad_left = p.pad_left();
  args.groups = p.groups();
  args.clamp_min = p.clamp_min();
  args.clamp_max = p.clamp_max();
  return QPLAN_OK;
}

uint64_t work(const FloatConv2dArgs& args) {
  const uint64_t macs = saturating_product(args.kernel_h, args.kernel_w, args.input_c / args.groups);
  return saturating_product(args.batch, args.output_h, args.output_w, args.output_c, saturating_sum(macs, 1));
}

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(FloatConv2dArgs, name, isa),
    QPLAN_FLOAT_CONV2D_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {
    QPLAN_VARIANT_ROW(FloatConv2dArgs, float_conv2d_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kFloatConv2dFamily =
    make_family<FloatConv2dArgs, bind, never_in_place, work>(kKernel_float_conv2d, "float_conv2d", kVariants);
constexpr KernelFamily kFloatConv2dFamilyReference = make_family<FloatConv2dArgs, bind, never_in_place, work>(
    kKernel_float_conv2d, "float_conv2d", kReference);

}  // namespace qplan
