// Kernel argument binding of float_pool2d, float_mean and float_softmax.
#include "kernels/float_reduce/float_reduce.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

constexpr uint32_t kF32 = dtype_bit(Dtype::kF32);
static_assert(static_cast<int>(FloatReduction::kProduct) == format::FloatReduction_MAX, "the plan's numbers");

// ---- float_pool2d ----

bool check_pool(const StepCheck& check) {
  Shape input, output;
  if (!check.arity(1, 1) || !check.params(format::KernelParams_FloatWindowParams) ||
      !check.input(0, "input", kF32, 4, &input) || !check.output(0, "output", kF32, 4, &output)) {
    return false;
  }
  if (output[0] != input[0] || output[3] != input[3]) {
    return check.fail_output(0, "output") << "has batch " << output[0] << " and " << output[3]
                                          << " channels, expected " << input[0] << " and " << input[3];
  }
  const auto& p = check.params_as<format::FloatWindowParams>();
  if (p.pool() < format::FloatPool_MAXIMUM || p.pool() > format::FloatPool_MAX) {
    return check.fail(QPLAN_KERNEL_MISSING)
           << "pool " << static_cast<uint32_t>(p.pool()) << " is unknown to this runtime; update it";
  }
  if (p.dilation_h() != 1 || p.dilation_w() != 1) return check.fail() << "windows of pools have no dilation";
  return check.window_touches_input(
             {"height", input[1], output[1], p.kernel_h(), p.stride_h(), 1, p.pad_top()}) &&
         check.window_touches_input(
             {"width", input[2], output[2], p.kernel_w(), p.stride_w(), 1, p.pad_left()}) &&
         check.range("batch * output height", int64_t{output[0]} * output[1], 1, INT32_MAX) &&
         check.float_clamp(p.clamp_min(), p.clamp_max());
}

qplan_status bind_pool(const StepView& step, bool checked, FloatPool2dArgs& args, Error* error) {
  const StepCheck check(step, "float_pool2d", error);
  if (checked && !check_pool(check)) return check.status();
  const auto& p = check.params_as<format::FloatWindowParams>();
  const Shape input = shape_of(step.input(0)), output = shape_of(step.output(0));
  args.input = static_cast<const float*>(step.input_data(0));
  args.output = static_cast<float*>(step.output_data(0));
  args.batch = input[0];
  args.input_h = input[1];
  args.input_w = input[2];
  args.channels = input[3];
  args.output_h = output[1];
  args.output_w = output[2];
  args.pool_h = p.kernel_h();
  args.pool_w = p.kernel_w();
  args.stride_h = p.stride_h();
  args.stride_w = p.stride_w();
  args.pad_top = p.pad_top();
  args.pad_left = p.pad_left();
  args.clamp_min = p.clamp_min();
  args.clamp_max = p.clamp_max();
  args.is_max = p.pool() == format::FloatPool_MAXIMUM;
  args.counts_padding = p.pool() == format::FloatPool_AVERAGE_WITH_PADDING;
  return QPLAN_OK;
}

uint64_t pool_work(const FloatPool2dArgs& args) {
  const uint32_t pool_h = args.pool_h < args.input_h ? args.pool_h : args.input_h;
  const uint32_t pool_w = args.pool_w < args.input_w ? args.pool_w : args.input_w;
  return saturating_product(args.batch, args.output_h, args.output_w, args.channels, pool_h, pool_w);
}

// ---- float_mean ----

bool check_axes(const StepCheck& check, uint32_t axes, const Shape& input) {
  if (axes != 0 && axes >> input.rank == 0) return true;
  return check.fail() << "axes " << axes << " names no axis or one beyond the input's rank " << input.rank;
}

bool check_mean(const StepCheck& check) {
  Shape input, output;
  if (!check.arity(1, 1) || !check.params(format::KernelParams_FloatReduceParams) ||
      !check.input(0, "input", kF32, kAnyRank, &input) ||
      !check.output(0, "output", kF32, kAnyRank, &output)) {
    return false;
  }
  const auto& params = check.params_as<format::FloatReduceParams>();
  const uint32_t axes = params.axes();
  if (params.reduction() > format::FloatReduction_MAX) {
    return check.fail(QPLAN_KERNEL_MISSING) << "reduction " << static_cast<uint32_t>(params.reduction())
                                            << " is unknown to this runtime; update it";
  }
  if (!check_axes(check, axes, input)) return false;
  if (is_reduced_shape(input, axes, output)) return true;
  return check.fail_output(0, "output") << "is not the input's shape reduced along axes " << axes;
}

qplan_status bind_mean(const StepView& step, bool checked, FloatMeanArgs& args, Error* error) {
  const StepCheck check(step, "float_mean", error);
  if (checked && !check_mean(check)) return check.status();
  const auto& params = check.params_as<format::FloatReduceParams>();
  args.reduction = static_cast<FloatReduction>(params.reduction());
  args.input = static_cast<const float*>(step.input_data(0));
  args.output = static_cast<float*>(step.output_data(0));
  split_axes(shape_of(step.input(0)), params.axes(), args);
  return QPLAN_OK;
}

uint64_t mean_work(const FloatMeanArgs& args) {
  return saturating_product(args.num_outputs, args.num_reduced);
}

// ---- float_softmax ----

bool check_softmax(const StepCheck& check) {
  Shape input, output;
  if (!check.arity(1, 1) || !check.params(format::KernelParams_FloatReduceParams) ||
      !check.input(0, "input", kF32, kAnyRank, &input) ||
      !check.output(0, "output", kF32, kAnyRank, &output)) {
    return false;
  }
  if (input != output) return check.fail_output(0, "output") << "has another shape than the input";
  const uint32_t axes = check.params_as<format::FloatReduceParams>().axes();
  if (!check_axes(check, axes, input)) return false;
  if ((axes & (axes - 1)) != 0) return check.fail() << "axes " << axes << " are several, expected one";
  uint32_t axis = 0;
  while (axes >> axis != 1) ++axis;
  return check.range("number of rows", static_cast<int64_t>(axis_rows(input, axis)), 1, INT32_MAX);
}

qplan_status bind_softmax(const StepView& step, bool checked, FloatSoftmaxArgs& args, Error* error) {
  const StepCheck check(step, "float_softmax", error);
  if (checked && !check_softmax(check)) return check.status();
  const auto& params = check.params_as<format::FloatReduceParams>();
  const Shape shape = shape_of(step.input(0));
  args.input = static_cast<const float*>(step.input_data(0));
  args.output = static_cast<float*>(step.output_data(0));
  bool is_inside = false;
  for (uint32_t axis = 0; axis < shape.rank; ++axis) {
    if (reduces(params.axes(), axis)) {
      args.depth = shape[axis];
      is_inside = true;
    } else {
      (is_inside ? args.inner : args.outer) *= shape[axis];
    }
  }
  args.beta = params.beta();
  args.is_log = params.is_log();
  return QPLAN_OK;
}

uint64_t softmax_work(const FloatSoftmaxArgs& args) {
  constexpr uint64_t kPasses = 3;  // the maximum, the sum, the quotients
  return saturating_product(kPasses, args.outer, args.depth, args.inner);
}

// A line is written only after its largest element has been found, and element by element.
bool softmax_in_place(const StepView&, uint32_t, uint32_t) { return true; }

constexpr KernelVariant kPoolVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(FloatPool2dArgs, name, isa),
    QPLAN_FLOAT_POOL2D_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kPoolReference[] = {
    QPLAN_VARIANT_ROW(FloatPool2dArgs, float_pool2d_ref, QPLAN_ISA_REFERENCE)};
constexpr KernelVariant kMeanVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(FloatMeanArgs, name, isa),
    QPLAN_FLOAT_MEAN_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kMeanReference[] = {
    QPLAN_VARIANT_ROW(FloatMeanArgs, float_mean_ref, QPLAN_ISA_REFERENCE)};
constexpr KernelVariant kSoftmaxVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(FloatSoftmaxArgs, name, isa),
    QPLAN_FLOAT_SOFTMAX_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kSoftmaxReference[] = {
    QPLAN_VARIANT_ROW(FloatSoftmaxArgs, float_softmax_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kFloatPool2dFamily =
    make_family<FloatPool2dArgs, bind_pool, never_in_place, pool_work>(kKernel_float_pool2d, "float_pool2d",
                                                                       kPoolVariants);
constexpr KernelFamily kFloatPool2dFamilyReference =
    make_family<FloatPool2dArgs, bind_pool, never_in_place, pool_work>(kKernel_float_pool2d, "float_pool2d",
                                                                       kPoolReference);
constexpr KernelFamily kFloatMeanFamily = make_family<FloatMeanArgs, bind_mean, never_in_place, mean_work>(
    kKernel_float_mean, "float_mean", kMeanVariants);
constexpr KernelFamily kFloatMeanFamilyReference =
    make_family<FloatMeanArgs, bind_mean, never_in_place, mean_work>(kKernel_float_mean, "float_mean",
                                                                     kMeanReference);
constexpr KernelFamily kFloatSoftmaxFamily =
    make_family<FloatSoftmaxArgs, bind_softmax, softmax_in_place, softmax_work>(
        kKernel_float_softmax, "float_softmax", kSoftmaxVariants);
constexpr KernelFamily kFloatSoftmaxFamilyReference =
    make_family<FloatSoftmaxArgs, bind_softmax, softmax_in_place, softmax_work>(
        kKernel_float_softmax, "float_softmax", kSoftmaxReference);

}  // namespace qplan
