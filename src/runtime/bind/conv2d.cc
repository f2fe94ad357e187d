// Glue of conv2d, conv2d_transpose and depthwise_conv2d, which have the same parameters.
#include <stddef.h>

#include "format/plan_view.h"
#include "kernels/cpu.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/layout.h"
#include "src/base/checked.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/layer.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

using layer::kBias;
using layer::kInput;
using layer::kWeights;
using layer::num_inputs;
using layer::output_dtypes;

const format::Conv2dParams& params_of(const StepView& step) { return *step.step->params_as_Conv2dParams(); }

// Entries of the bias that the rest of a weight takes (kernels/conv2d/conv2d.h). Plans for processors of 32
// bits have none.
constexpr uint32_t kRestWords = 3;
constexpr bool kMayHaveRests = sizeof(void*) > 4;

LayoutWindow window_of(const Conv2dArgs& a) {
  return {a.kernel_h, a.kernel_w, a.input_c / a.groups, a.stride_h, a.stride_w};
}

// The last input, after the constants.
uint32_t residual_input(const StepView& step) { return num_inputs(params_of(step).contract()); }

__attribute__((noinline)) bool check_residual(const StepCheck& check, const StepView& step) {
  const format::AddParams& sum = *step.step->residual();
  const Dtype dtype = step.output_dtype(0);
  Shape residual;
  if (params_of(step).contract() == format::Contract_ACC32) {
    return check.fail() << "a residual is added to outputs of 8 bits, not to accumulators";
  }
  if (dtype == Dtype::kS16) return check.fail() << "a residual is added to outputs of 8 bits, not to int16";
  if (!check.input(residual_input(step), "residual", dtype_bit(dtype), 4, &residual) ||
      !check_add_formula(check, sum, dtype)) {
    return false;
  }
  if (residual == shape_of(step.output(0))) return true;
  return check.fail_input(residual_input(step), "residual") << "is not of the output's shape";
}

bool check_windows(const StepCheck& check, const Conv2dArgs& a) {
  return check.window({"height", a.input_h, a.output_h, a.kernel_h, a.stride_h, a.dilation_h, a.pad_top}) &&
         check.window({"width", a.input_w, a.output_w, a.kernel_w, a.stride_w, a.dilation_w, a.pad_left});
}

bool check_batch(const StepCheck& check, const StepView& step, const Conv2dArgs& a) {
  const int64_t batch = step.output_extents(0)[0];
  if (int64_t{a.batch} != batch) {
    return check.fail() << "input batch " << a.batch << " is not the output's " << batch;
  }
  return check.range("output rows", batch * a.output_h, 1, INT32_MAX);
}

}  // namespace

bool check_conv2d_operands(const StepCheck& check, const StepView& step, bool may_have_residual) {
  if (!check.params(format::KernelParams_Conv2dParams)) return false;
  const auto contract =
      static_cast<format::Contract>(check.params_fields().scalar<uint8_t>(format::Conv2dParams::VT_CONTRACT));
  return check.contract(contract, kContractsLayer) &&
         check.arity(num_inputs(contract) + (may_have_residual && check.has_residual() ? 1 : 0), 1) &&
         check.input(kInput, "input", kDtypesQuantized, 4, nullptr) &&
         check.output(0, "output", output_dtypes(contract, step.input_dtype(kInput)), 4, nullptr);
}

bool check_conv2d_values(const StepCheck& check, const StepView& step, const Conv2dArgs& a, bool transposed) {
  const format::Contract contract = contract_of(a.contract);
  if (a.input_dtype == Dtype::kS16 &&
      (!check.contract_of_dtype(contract, a.input_dtype) ||
       !check.range("weights layout of int16", a.weights_layout, kLayout_ohwi, kLayout_ohwi))) {
    return false;
  }
  return check.in_dtype("input zero point", a.input_zero_point, a.input_dtype) &&
         check.in_dtype("pad value", a.pad_value, a.input_dtype) &&
         check.in_dtype("weights zero point", a.weights_zero_point, Dtype::kS8) &&
         check.layer_output(contract, a.output_dtype, a.output_zero_point, a.clamp_min, a.clamp_max) &&
         (transposed || check_windows(check, a)) && check_batch(check, step, a);
}

namespace {

__attribute__((noinline)) bool check_weights(const StepCheck& check, const Conv2dArgs& a) {
  // Kernel extents are at most 2^31, so that their product fits and times the channels may not. With num_k
  // below 2^31 the layout's sizes fit 64 bits.
  const uint32_t channels = a.input_c / a.groups;
  uint64_t num_k = uint64_t{a.kernel_h} * a.kernel_w;
  if (!checked_mul(num_k, uint64_t{channels}, &num_k) || num_k > INT32_MAX) {
    return check.fail() << "kernel " << a.kernel_h << " x " << a.kernel_w << " over " << channels
                        << " channels is too large";
  }
  return check.constant(kWeights, "weights", Dtype::kS8,
                        layout_bytes(a.weights_layout, a.output_c, window_of(a)));
}

// Another step may compute the bias; not on processors of 32 bits.
constexpr bool kMayHaveComputedBias = sizeof(void*) > 4;

bool has_computed_bias(const StepView& step, const Conv2dArgs& a) {
  return kMayHaveComputedBias && a.input_dtype != Dtype::kS16 && a.contract != Contract::kAcc32 &&
         !step.is_constant(step.step->inputs()->Get(kBias));
}

// What check.channel_constants checks, of a layer with rests of weights, and these.
bool check_rests(const StepCheck& check, const Conv2dArgs& a, uint64_t channels) {
  if (!check.constant(kBias, "bias", Dtype::kS32, channels + kRestWords * a.num_weight_rests) ||
      !check.multipliers(contract_of(a.contract), kBias + 1, channels)) {
    return false;
  }
  const int64_t num_k = int64_t{a.kernel_h} * a.kernel_w * (a.input_c / a.groups);  // see check_weights
  for (uint32_t i = 0; i < a.num_weight_rests; ++i) {
    const WeightRest rest = weight_rest(a, i);
    if (!check.range("channel of a rest of a weight", rest.channel, 0, int64_t{a.output_c} - 1) ||
        !check.range("place of a rest of a weight", rest.k, 0, num_k - 1) ||
        !check.range("rest of a weight", rest.rest, INT8_MIN, INT8_MAX)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool check_conv2d_zeros(const StepCheck& check, const Conv2dArgs& a) {
  return check.zeros_after_taps(kWeights, a.weights_layout, window_of(a));
}

bool check_conv2d_constants(const StepCheck& check, const Conv2dArgs& a) {
  if (!check_weights(check, a)) return false;
  const format::Contract contract = contract_of(a.contract);
  const uint64_t channels = layout_channels(a.weights_layout, a.output_c);
  const bool has_rests = kMayHaveRests && a.num_weight_rests != 0;
  return (has_rests ? check_rests(check, a, channels)
                    : check.channel_constants(contract, kBias, channels, a.input_dtype == Dtype::kS16)) &&
         check.float_epilogue<format::Conv2dParams>(check.params_fields(), contract, channels);
}

namespace {

// The same where the bias is computed: it has an element for each entry that the layout wants.
bool check_with_computed_bias(const StepCheck& check, const StepView& step, const Conv2dArgs& a) {
  const format::Contract contract = contract_of(a.contract);
  const uint64_t channels = layout_channels(a.weights_layout, a.output_c);
  if (!check_weights(check, a) || !check.input(kBias, "bias", dtype_bit(Dtype::kS32), 1, nullptr))
    return false;
  const auto entries = static_cast<uint64_t>(step.input_extents(kBias)[0]);
  if (entries != channels) {
    return check.fail_input(kBias, "bias") << "has " << entries << " elements, expected " << channels;
  }
  return check.multipliers(contract, kBias + 1, channels) &&
         check.float_epilogue<format::Conv2dParams>(check.params_fields(), contract, channels);
}

}  // namespace

// Runs before every step, as `bind` of other families does: `args` is nothing of the plan, so that what leads
// to its fields is looked up once.
void fill_conv2d_args(const StepView& step, Conv2dArgs& __restrict args) {
  using Params = format::Conv2dParams;
  const format::TableFields fields(step.step);
  const format::TableFields p(fields.table(format::KernelStep::VT_PARAMS));
  const uint32_t* inputs = fields.vector<uint32_t>(format::KernelStep::VT_INPUTS)->data();
  const uint32_t input = inputs[kInput];
  const uint32_t output = fields.vector<uint32_t>(format::KernelStep::VT_OUTPUTS)->Get(0);
  const int64_t *from = step.extents(input), *to = step.extents(output);
  args.input = step.address(input);
  layer::fill_constants<Params>(step, inputs, p, args);
  args.output = step.address(output);
  args.batch = static_cast<uint32_t>(from[0]);
  args.input_h = static_cast<uint32_t>(from[1]);
  args.input_w = static_cast<uint32_t>(from[2]);
  args.input_c = static_cast<uint32_t>(from[3]);
  args.output_h = static_cast<uint32_t>(to[1]);
  args.output_w = static_cast<uint32_t>(to[2]);
  args.output_c = static_cast<uint32_t>(to[3]);
  fill_words<Params::VT_KERNEL_H, Params::VT_CLAMP_MAX, offsetof(Conv2dArgs, kernel_h),
             offsetof(Conv2dArgs, clamp_max)>(p, args);
  args.input_dtype = step.dtype(input);
  args.output_dtype = step.dtype(output);
  args.has_wide_bias = step.dtype(inputs[kBias]) == Dtype::kS64;
  args.weights_layout = p.scalar<uint16_t>(Params::VT_WEIGHTS_LAYOUT);
  // Kernels of 64-bit Arm alone read it.
  if constexpr (sizeof(void*) > 4) args.int16_groups = p.scalar<uint8_t>(Params::VT_INT16_GROUPS);
  args.schedule = fields.scalar<uint64_t>(format::KernelStep::VT_SCHEDULE);
}

uint64_t conv2d_work(const Conv2dArgs& args) {
  const uint64_t macs = saturating_product(args.kernel_h, args.kernel_w, args.input_c / args.groups);
  const uint64_t per_output = saturating_sum(macs, args.has_residual ? 2 : 1);
  return saturating_product(args.batch, args.output_h, args.output_w, args.output_c, per_output);
}

namespace {

__attribute__((noinline)) void fill_residual(const StepView& step, Conv2dArgs& args) {
  args.has_residual = true;
  args.residual = step.input_data(residual_input(step));
  args.residual_is_a = step.step->residual_is_input1();
  fill_add_formula(*step.step->residual(), args.output_dtype, args.residual_sum);
}

// Functions of their own, whose stack is free where checked steps are bound. kIsForm: of conv2d_dsp_form,
// which adds no residual.
template <bool kIsForm>
__attribute__((noinline)) bool check_step(const StepCheck& check, const StepView& step, const Conv2dArgs& a) {
  if (!check_conv2d_values(check, step, a)) return false;
  if (check.has_residual()) {
    if (kIsForm) return check.fail(QPLAN_KERNEL_MISSING) << "this family adds no residual";
    if (!check_residual(check, step)) return false;
  }
  // Extents are below 2^31: processors of 32 bits divide such numbers in one instruction.
  if (a.groups < 1 || a.input_c % a.groups != 0) {
    return check.fail() << "input channels " << a.input_c << " are not divisible by groups " << a.groups;
  }
  if (a.output_c % a.groups != 0) {
    return check.fail() << "output channels " << a.output_c << " are not divisible by groups " << a.groups;
  }
  if (!check.layout(a.weights_layout, kLayout_ohwi, kLayout_o16k4, kLayout_o16r4, kLayout_o16i4,
                    kLayout_o16z4, kLayout_o16r8, kLayout_o16i8, kLayout_o16z8, kLayout_o2r4, kLayout_o2h4,
                    kLayout_o4k16)) {
    return false;
  }
  const bool computes_bias = !kIsForm && has_computed_bias(step, a);
  return (computes_bias ? check_with_computed_bias(check, step, a) : check_conv2d_constants(check, a)) &&
         check_conv2d_zeros(check, a);
}

// Rests of weights follow the entries of the bias. What else a bias may have too much, the check of its size
// finds.
void find_rests(const StepView& step, Conv2dArgs& args) {
  if (has_computed_bias(step, args) || args.input_dtype == Dtype::kS16 || args.contract == Contract::kAcc32 ||
      layout_block(args.weights_layout) != 16) {
    return;
  }
  const uint64_t entries = step.size_bytes(step.step->inputs()->Get(kBias)) / sizeof(int32_t);
  const uint64_t channels = layout_channels(args.weights_layout, args.output_c);
  if (entries <= channels) return;
  const uint64_t rests = (entries - channels) / kRestWords;
  args.num_weight_rests = static_cast<uint8_t>(rests < kMaxWeightRests ? rests : kMaxWeightRests);
}

template <bool kIsForm>
qplan_status bind(const StepView& step, bool check, Conv2dArgs& args, Error* error) {
  const StepCheck checker(step, "conv2d", error);
  if (check && !check_conv2d_operands(checker, step, !kIsForm)) return checker.status();
  fill_conv2d_args(step, args);
  if (kMayHaveRests && !kIsForm) find_rests(step, args);
  if (check && !check_step<kIsForm>(checker, step, args)) return checker.status();
  if (!kIsForm && checker.has_residual()) fill_residual(step, args);
  return QPLAN_OK;
}

// Kernels of microcontrollers copy a window, or a tile of the residual, before they write its outputs.
// Weights in their layouts are read by no other variant but the reference, which does the same.
bool in_place(const StepView& step, uint32_t, uint32_t input) {
  using Params = format::Conv2dParams;
  const format::TableFields fields(step.step);
  const format::TableFields p(fields.table(format::KernelStep::VT_PARAMS));
  const bool has_residual = fields.has(format::KernelStep::VT_RESIDUAL);
  const auto layout = p.scalar<uint16_t>(Params::VT_WEIGHTS_LAYOUT);
  if (layout != kLayout_o2r4 && layout != kLayout_o2h4 && layout != kLayout_o4k16) return false;
  if (has_residual && input == residual_input(step)) return true;
  uint32_t window[9];  // kernel, stride, dilation, pad: height, width of each; groups
  p.words(Params::VT_KERNEL_H, 9, window);
  return input == kInput && !has_residual &&
         p.scalar<uint8_t>(Params::VT_CONTRACT) != format::Contract_ACC32 && window[0] == 1 &&
         window[1] == 1 && window[2] == 1 && window[3] == 1 && window[6] == 0 && window[7] == 0 &&
         window[8] == 1 &&
         have_same_shape(step, step.step->inputs()->Get(kInput), step.step->outputs()->Get(0));
}

// The output at the beginning of a larger input: where the window of each pixel begins at the byte of its
// first output or later, no output is written over what a later window reads. Pixels are written in order.
bool part(const StepView& step, uint32_t, uint32_t input, uint64_t* offset) {
  using Params = format::Conv2dParams;
  const format::TableFields fields(step.step);
  const format::TableFields p(fields.table(format::KernelStep::VT_PARAMS));
  const auto layout = p.scalar<uint16_t>(Params::VT_WEIGHTS_LAYOUT);
  uint32_t window[7];  // stride, dilation, pad: height, width of each; groups
  p.words(Params::VT_STRIDE_H, 7, window);
  const bool is_read_before = layout == kLayout_o2r4 || layout == kLayout_o2h4 || layout == kLayout_o4k16;
  if (!is_read_before || input != kInput || fields.has(format::KernelStep::VT_RESIDUAL) ||
      p.scalar<uint8_t>(Params::VT_CONTRACT) == format::Contract_ACC32 || window[4] != 0 || window[5] != 0 ||
      window[6] != 1) {
    return false;
  }
  const uint32_t i = step.step->inputs()->Get(kInput), o = step.step->outputs()->Get(0);
  const int64_t *from = step.extents(i), *to = step.extents(o);
  // Elements are bytes; a tensor has fewer than 2^31.
  const auto pixel = static_cast<uint32_t>(from[3]), row = static_cast<uint32_t>(from[2] * from[3]);
  *offset = 0;
  return step.size_bytes(o) < step.size_bytes(i) &&
         uint64_t{window[1]} * pixel >= static_cast<uint64_t>(to[3]) &&
         uint64_t{window[0]} * row >= static_cast<uint64_t>(to[2] * to[3]);
}

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) with_knobs(QPLAN_VARIANT_ROW(Conv2dArgs, name, isa), kConv2dKnobs),
    QPLAN_CONV2D_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(Conv2dArgs, conv2d_ref, QPLAN_ISA_REFERENCE)};
#define QPLAN_VARIANT(name, isa) with_knobs(QPLAN_VARIANT_ROW(Conv2dArgs, name, isa), kConv2dKnobs),
constexpr KernelVariant kOptimized[] = {QPLAN_DOT_VARIANTS(conv2d) QPLAN_SCALAR_VARIANTS(conv2d)};
#undef QPLAN_VARIANT
constexpr KernelVariant kForm[] = {QPLAN_VARIANT_ROW(Conv2dArgs, conv2d_dsp_form, QPLAN_ISA_DSP)};

}  // namespace

constexpr KernelFamily kConv2dFamily = make_family<Conv2dArgs, bind<false>, in_place, conv2d_work>(
    kKernel_conv2d, "conv2d", kVariants, &kConv2dRowCut, part);
constexpr KernelFamily kConv2dFamilyReference = make_family<Conv2dArgs, bind<false>, in_place, conv2d_work>(
    kKernel_conv2d, "conv2d", kReference, &kConv2dRowCut, part);
constexpr KernelFamily kConv2dFamilyOptimized = make_family<Conv2dArgs, bind<false>, in_place, conv2d_work>(
    kKernel_conv2d, "conv2d", kOptimized, &kConv2dRowCut, part);
// Cascades have none of these as layers. No output is written over a larger input.
constexpr KernelFamily kConv2dFamilyForm =
    make_family<Conv2dArgs, bind<true>, in_place, conv2d_work>(kKernel_conv2d, "conv2d", kForm);

// Convolutions cut into rows, for cascades.
namespace {

uint64_t window_rows(uint64_t kernel_h, uint64_t dilation_h) { return (kernel_h - 1) * dilation_h + 1; }

// Where no row of the output has its window outside of the input; rows are cut in elements of a byte.
bool accepts(const StepView& step, uint32_t input) {
  const uint32_t from = step.inputs()->Get(0), to = step.outputs()->Get(0);
  if (input != 0 || step.dtype(from) == Dtype::kS16) return false;
  using Params = format::Conv2dParams;
  const format::TableFields p(format::TableFields(step.step).table(format::KernelStep::VT_PARAMS));
  const auto pad_top = p.scalar<uint32_t>(Params::VT_PAD_TOP);
  const auto from_h = static_cast<uint32_t>(step.extents(from)[1]);
  const auto to_h = static_cast<uint32_t>(step.extents(to)[1]);
  return pad_top < window_rows(p.scalar<uint32_t>(Params::VT_KERNEL_H),
                               p.scalar<uint32_t>(Params::VT_DILATION_H)) &&
         uint64_t{to_h - 1} * p.scalar<uint32_t>(Params::VT_STRIDE_H) < uint64_t{from_h} + pad_top;
}

RowWindow window(const void* storage) {
  const Conv2dArgs& a = *static_cast<const Conv2dArgs*>(storage);
  // bind has checked that a window's reach is below 2^31.
  const auto rows = static_cast<uint32_t>(window_rows(a.kernel_h, a.dilation_h));
  return {a.stride_h, a.pad_top, rows, a.input_h};
}

void cut(const StepView& step, const CutRows& rows, void* storage) {
  Conv2dArgs& a = *static_cast<Conv2dArgs*>(storage);
  const Rows input = rows.window.reads(rows.output);
  // Not negative: where the rows do not begin with the image, the first window does not reach beyond them.
  a.pad_top = static_cast<uint32_t>(int64_t{input.begin} + rows.window.pad_top -
                                    int64_t{rows.output.begin} * a.stride_h);
  if (a.residual != nullptr) {  // which has no address while scratch is asked for
    const auto output_h = static_cast<uint32_t>(step.output_extents(0)[1]);
    const uint64_t row = uint64_t{rows.image} * output_h + rows.output.begin;
    a.residual =
        static_cast<const uint8_t*>(step.input_data(residual_input(step))) + row * a.output_w * a.output_c;
  }
  a.batch = 1;
  a.input = rows.from;
  a.input_h = input.end - input.begin;
  a.output = rows.to;
  a.output_h = rows.output.end - rows.output.begin;
}

}  // namespace

constexpr RowCut kConv2dRowCut = {accepts, window, cut};

// Transposed convolutions, which have the same operands.
namespace {

bool check_transpose(const StepCheck& check, const StepView& step, const Conv2dTransposeArgs& a) {
  return check_conv2d_values(check, step, a, true) &&
         check.range("kernel height", a.kernel_h, 1, INT32_MAX) &&
         check.range("kernel width", a.kernel_w, 1, INT32_MAX) &&
         check.range("stride height", a.stride_h, 1, INT32_MAX) &&
         check.range("stride width", a.stride_w, 1, INT32_MAX) &&
         check.range("dilation height", a.dilation_h, 1, 1) &&
         check.range("dilation width", a.dilation_w, 1, 1) &&
         check.range("pad top", a.pad_top, 0, INT32_MAX) &&
         check.range("pad left", a.pad_left, 0, INT32_MAX) && check.range("groups", a.groups, 1, 1) &&
         check.layout(a.weights_layout, kLayout_ohwi, kLayout_o16p4) && check_conv2d_constants(check, a) &&
         check_conv2d_zeros(check, a);
}

qplan_status bind_transpose(const StepView& step, bool check, Conv2dTransposeArgs& args, Error* error) {
  const StepCheck checker(step, "conv2d_transpose", error);
  if (check && checker.has_residual()) {
    checker.fail() << "a residual is not added here";
    return checker.status();
  }
  if (check && !check_conv2d_operands(checker, step)) return checker.status();
  fill_conv2d_args(step, args);
  return check && !check_transpose(checker, step, args) ? checker.status() : qplan_status{QPLAN_OK};
}

constexpr KernelVariant kTransposeVariants[] = {
// Each call sums up the weights.
#define QPLAN_VARIANT(name, isa) with_packed_weights(QPLAN_VARIANT_ROW(Conv2dTransposeArgs, name, isa)),
    QPLAN_CONV2D_TRANSPOSE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kTransposeReference[] = {
    QPLAN_VARIANT_ROW(Conv2dTransposeArgs, conv2d_transpose_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kConv2dTransposeFamily =
    make_family<Conv2dTransposeArgs, bind_transpose, never_in_place, conv2d_work>(
        kKernel_conv2d_transpose, "conv2d_transpose", kTransposeVariants);
constexpr KernelFamily kConv2dTransposeFamilyReference =
    make_family<Conv2dTransposeArgs, bind_transpose, never_in_place, conv2d_work>(
        kKernel_conv2d_transpose, "conv2d_transpose", kTransposeReference);

namespace {

__attribute__((noinline)) bool check_depthwise(const StepCheck& check, const StepView& step,
                                               const DepthwiseConv2dArgs& a) {
  if (!check_conv2d_values(check, step, a)) return false;
  if (a.groups != a.input_c) {
    return check.fail() << "groups " << a.groups << " are not the input channels " << a.input_c;
  }
  if (a.output_c % a.input_c != 0) {
    return check.fail() << "output channels " << a.output_c << " are not a multiple of the input channels "
                        << a.input_c;
  }
  return check.layout(a.weights_layout, kLayout_ohwi, kLayout_hwo16) && check_conv2d_constants(check, a);
}

qplan_status bind_depthwise(const StepView& step, bool check, DepthwiseConv2dArgs& args, Error* error) {
  const StepCheck checker(step, "depthwise_conv2d", error);
  if (check && !check_conv2d_operands(checker, step)) return checker.status();
  fill_conv2d_args(step, args);
  return check && !check_depthwise(checker, step, args) ? checker.status() : qplan_status{QPLAN_OK};
}

// The reference and kernels in general registers keep what they have yet to read of the input.
bool depthwise_in_place(const StepView& step, uint32_t, uint32_t input) {
  using Params = format::Conv2dParams;
  const format::TableFields p(step.step->params());
  uint32_t window[6];  // kernel, stride, dilation: height, width of each
  p.words(Params::VT_KERNEL_H, 6, window);
  return input == 0 && p.scalar<uint16_t>(Params::VT_WEIGHTS_LAYOUT) == kLayout_hwo16 &&
         p.scalar<uint8_t>(Params::VT_CONTRACT) != format::Contract_ACC32 && window[0] == 3 &&
         window[1] == 3 && window[2] == 1 && window[3] == 1 && window[4] == 1 && window[5] == 1 &&
         have_same_shape(step, step.step->inputs()->Get(0), step.step->outputs()->Get(0));
}

// Vectors read rows that they have written then.
template <Refusal (*kAccepts)(const DepthwiseConv2dArgs&), uint32_t kIsa>
Refusal accepts_depthwise(const DepthwiseConv2dArgs& args) {
  if (args.input != nullptr && args.input == args.output && isa_has_vectors(kIsa)) return Refusal::kWindow;
  return kAccepts(args);
}
#define QPLAN_DEPTHWISE_ROW(name, isa)                                                            \
  with_knobs(::qplan::make_variant<DepthwiseConv2dArgs, accepts_depthwise<name::accepts, isa>,    \
                                   name::scratch_bytes, name::work_items, name::run>(#name, isa), \
             kDepthwiseKnobs),

constexpr KernelVariant kDepthwiseVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_DEPTHWISE_ROW(name, isa)
    QPLAN_DEPTHWISE_CONV2D_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kDepthwiseReference[] = {
    QPLAN_VARIANT_ROW(DepthwiseConv2dArgs, depthwise_conv2d_ref, QPLAN_ISA_REFERENCE)};
#define QPLAN_VARIANT(name, isa) QPLAN_DEPTHWISE_ROW(name, isa)
constexpr KernelVariant kDepthwiseOptimized[] = {QPLAN_SIMD_VARIANTS(depthwise_conv2d)
                                                     QPLAN_SCALAR_VARIANTS(depthwise_conv2d)};
#undef QPLAN_VARIANT
constexpr KernelVariant kDepthwiseForm[] = {QPLAN_DEPTHWISE_ROW(depthwise_conv2d_dsp_form, QPLAN_ISA_DSP)};

}  // namespace

constexpr KernelFamily kDepthwiseConv2dFamily =
    make_family<DepthwiseConv2dArgs, bind_depthwise, depthwise_in_place, conv2d_work>(
        kKernel_depthwise_conv2d, "depthwise_conv2d", kDepthwiseVariants, &kConv2dRowCut);
constexpr KernelFamily kDepthwiseConv2dFamilyReference =
    make_family<DepthwiseConv2dArgs, bind_depthwise, depthwise_in_place, conv2d_work>(
        kKernel_depthwise_conv2d, "depthwise_conv2d", kDepthwiseReference, &kConv2dRowCut);
constexpr KernelFamily kDepthwiseConv2dFamilyOptimized =
    make_family<DepthwiseConv2dArgs, bind_depthwise, depthwise_in_place, conv2d_work>(
        kKernel_depthwise_conv2d, "depthwise_conv2d", kDepthwiseOptimized, &kConv2dRowCut);
// Cascades have none of these as layers.
constexpr KernelFamily kDepthwiseConv2dFamilyForm =
    make_family<DepthwiseConv2dArgs, bind_depthwise, depthwise_in_place, conv2d_work>(
        kKernel_depthwise_conv2d, "depthwise_conv2d", kDepthwiseForm);

}  // namespace qplan
