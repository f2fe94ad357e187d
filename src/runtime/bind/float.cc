// Kernel argument binding of operators on float32 (kernels/float/).
#include "kernels/float/float.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {

namespace {

static_assert(static_cast<int>(FloatBinary::kPower) == format::FloatBinary_MAX &&
                  static_cast<int>(FloatUnary::kElu) == format::FloatUnary_MAX &&
                  static_cast<int>(FloatReduction::kProduct) == format::FloatReduction_MAX,
              "the plan's numbers");

constexpr uint32_t kF32 = dtype_bit(Dtype::kF32);

// ---- float_binary, float_unary ----

bool check_binary(const StepCheck& check) {
  if (!check.arity(2, 1) || !check.params(format::KernelParams_FloatBinaryParams) ||
      !check.input(0, "input 1", kF32, kAnyRank, nullptr) ||
      !check.input(1, "input 2", kF32, kAnyRank, nullptr) ||
      !check.output(0, "output", kF32, kAnyRank, nullptr)) {
    return false;
  }
  const auto& params = check.params_as<format::FloatBinaryParams>();
  if (params.op() > format::FloatBinary_MAX) {
    return check.fail(QPLAN_KERNEL_MISSING)
           << "operation " << static_cast<uint32_t>(params.op()) << " is unknown to this runtime; update it";
  }
  return check.float_clamp(params.clamp_min(), params.clamp_max());
}

qplan_status bind_binary(const StepView& step, bool checked, FloatBinaryArgs& args, Error* error) {
  const StepCheck check(step, "float_binary", error);
  if (checked && !check_binary(check)) return check.status();
  if (!make_broadcast(step, &args.broadcast)) {
    check.fail_output(0, "output") << "is not the shape that the inputs broadcast to";
    return check.status();
  }
  const auto& params = check.params_as<format::FloatBinaryParams>();
  args.op = static_cast<FloatBinary>(params.op());
  args.a = static_cast<const float*>(step.input_data(0));
  args.b = static_cast<const float*>(step.input_data(1));
  args.output = static_cast<float*>(step.output_data(0));
  args.clamp_min = params.clamp_min();
  args.clamp_max = params.clamp_max();
  return QPLAN_OK;
}

bool check_unary(const StepCheck& check) {
  Shape input, output;
  if (!check.arity(1, 1) || !check.params(format::KernelParams_FloatUnaryParams) ||
      !check.input(0, "input", kF32, kAnyRank, &input) ||
      !check.output(0, "output", kF32, kAnyRank, &output)) {
    return false;
  }
  if (input != output) return check.fail_output(0, "output") << "has another shape than the input";
  const auto& params = check.params_as<format::FloatUnaryParams>();
  if (params.function() > format::FloatUnary_MAX) {
    return check.fail(QPLAN_KERNEL_MISSING) << "function " << static_cast<uint32_t>(params.function())
                                            << " is unknown to this runtime; update it";
  }
  return params.function() != format::FloatUnary_CLAMP || check.float_clamp(params.p(), params.q());
}

qplan_status bind_unary(const StepView& step, bool checked, FloatUnaryArgs& args, Error* error) {
  const StepCheck check(step, "float_unary", error);
  if (checked && !check_unary(check)) return check.status();
  const auto& params = check.params_as<format::FloatUnaryParams>();
  args.function = static_cast<FloatUnary>(params.function());
  args.input = static_cast<const float*>(step.input_data(0));
  args.output = static_cast<float*>(step.output_data(0));
  args.elements = shape_of(step.input(0)).elements();
  args.p = params.p();
  args.q = params.q();
  return QPLAN_OK;
}

bool unary_in_place(const StepView&, uint32_t, uint32_t) { return true; }

uint64_t binary_work(const FloatBinaryArgs& args) { return args.broadcast.elements; }
uint64_t unary_work(const FloatUnaryArgs& args) { return args.elements; }

constexpr KernelVariant kBinaryVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(FloatBinaryArgs, name, isa),
    QPLAN_FLOAT_BINARY_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kBinaryReference[] = {
    QPLAN_VARIANT_ROW(FloatBinaryArgs, float_binary_ref, QPLAN_ISA_REFERENCE)};
constexpr KernelVariant kUnaryVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(FloatUnaryArgs, name, isa),
    QPLAN_FLOAT_UNARY_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kUnaryReference[] = {
    QPLAN_VARIANT_ROW(FloatUnaryArgs, float_unary_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kFloatBinaryFamily =
    make_family<FloatBinaryArgs, bind_binary, binary_in_place, binary_work>(kKernel_float_binary,
                                                                            "float_binary", kBinaryVariants);
constexpr KernelFamily kFloatBinaryFamilyReference =
    make_family<FloatBinaryArgs, bind_binary, binary_in_place, binary_work>(kKernel_float_binary,
                                                                            "float_binary", kBinaryReference);
constexpr KernelFamily kFloatUnaryFamily =
    make_family<FloatUnaryArgs, bind_unary, unary_in_place, unary_work>(kKernel_float_unary, "float_unary",
                                                                        kUnaryVariants);
constexpr KernelFamily kFloatUnaryFamilyReference =
    make_family<FloatUnaryArgs, bind_unary, unary_in_place, unary_work>(kKernel_float_unary, "float_unary",
                                                                        kUnaryReference);

namespace {

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

qplan_status bind_mean(const StepView& step, bool checked, FloatMeanArgs& args, Error* error) {
  const StepCheck check(step, "float_mean", error);
  if (checked && !check_reduced(check, step, kF32)) return check.status();
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

// ---- float_conv2d ----

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

bool check_conv2d_shapes(const StepCheck& check, const format::FloatWindowParams& p, const Shape& input,
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

bool check_conv2d(const StepCheck& check) {
  Shape input, output;
  if (!check.arity(kNumInputs, 1) || !check.params(format::KernelParams_FloatWindowParams) ||
      !check.input(kInput, "input", dtype_bit(Dtype::kF32), kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(Dtype::kF32), kAnyRank, &output)) {
    return false;
  }
  const auto& p = check.params_as<format::FloatWindowParams>();
  if (!check_conv2d_shapes(check, p, input, output)) return false;
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

qplan_status bind_conv2d(const StepView& step, bool checked, FloatConv2dArgs& args, Error* error) {
  const StepCheck check(step, "float_conv2d", error);
  if (checked && !check_conv2d(check)) return check.status();
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

uint64_t conv2d_work(const FloatConv2dArgs& args) {
  const uint64_t macs = saturating_product(args.kernel_h, args.kernel_w, args.input_c / args.groups);
  return saturating_product(args.batch, args.output_h, args.output_w, args.output_c, saturating_sum(macs, 1));
}

constexpr KernelVariant kConv2dVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(FloatConv2dArgs, name, isa),
    QPLAN_FLOAT_CONV2D_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kConv2dReference[] = {
    QPLAN_VARIANT_ROW(FloatConv2dArgs, float_conv2d_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kFloatConv2dFamily =
    make_family<FloatConv2dArgs, bind_conv2d, never_in_place, conv2d_work>(kKernel_float_conv2d,
                                                                           "float_conv2d", kConv2dVariants);
constexpr KernelFamily kFloatConv2dFamilyReference =
    make_family<FloatConv2dArgs, bind_conv2d, never_in_place, conv2d_work>(kKernel_float_conv2d,
                                                                           "float_conv2d", kConv2dReference);

}  // namespace qplan
