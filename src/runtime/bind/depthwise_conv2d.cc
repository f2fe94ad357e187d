#include "kernels/depthwise_conv2d/depthwise_conv2d.h"

#include "kernels/cpu.h"
#include "kernels/layout.h"
#include "src/runtime/bind/conv2d.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

__attribute__((noinline)) bool check_step(const StepCheck& check, const StepView& step) {
  if (!check_conv2d_operands(check, step)) return false;
  const format::Conv2dParams& p = check.params_as<format::Conv2dParams>();
  const auto input_c = static_cast<uint32_t>(step.input_extents(0)[3]);  // below 2^31
  const auto output_c = static_cast<uint32_t>(step.output_extents(0)[3]);
  if (p.groups() != input_c) {
    return check.fail() << "groups " << p.groups() << " are not the input channels " << input_c;
  }
  if (output_c % input_c != 0) {
    return check.fail() << "output channels " << output_c << " are not a multiple of the input channels "
                        << input_c;
  }
  return check.layout(p.weights_layout(), kLayout_ohwi, kLayout_hwo16) && check_conv2d_constants(check, step);
}

qplan_status bind(const StepView& step, bool check, DepthwiseConv2dArgs& args, Error* error) {
  if (check) {
    const StepCheck checker(step, "depthwise_conv2d", error);
    if (!check_step(checker, step)) return checker.status();
  }
  fill_conv2d_args(step, args);
  return QPLAN_OK;
}

// The reference and kernels in general registers keep what they have yet to read of the input.
bool in_place(const StepView& step, uint32_t, uint32_t input) {
  const format::Conv2dParams& p = *step.step->params_as_Conv2dParams();
  return input == 0 && p.weights_layout() == kLayout_hwo16 && p.contract() != format::Contract_ACC32 &&
         p.kernel_h() == 3 && p.kernel_w() == 3 && p.stride_h() == 1 && p.stride_w() == 1 &&
         p.dilation_h() == 1 && p.dilation_w() == 1 && shape_of(step.input(0)) == shape_of(step.output(0));
}

// Vectors read rows that they have written then.
template <Refusal (*kAccepts)(const DepthwiseConv2dArgs&), uint32_t kIsa>
Refusal accepts(const DepthwiseConv2dArgs& args) {
  if (args.input != nullptr && args.input == args.output && isa_has_vectors(kIsa)) return Refusal::kWindow;
  return kAccepts(args);
}
#define QPLAN_DEPTHWISE_ROW(name, isa)                                                                    \
  with_knobs(::qplan::make_variant<DepthwiseConv2dArgs, accepts<name::accepts, isa>, name::scratch_bytes, \
                                   name::work_items, name::run>(#name, isa),                              \
             kDepthwiseKnobs),

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_DEPTHWISE_ROW(name, isa)
    QPLAN_DEPTHWISE_CONV2D_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {
    QPLAN_VARIANT_ROW(DepthwiseConv2dArgs, depthwise_conv2d_ref, QPLAN_ISA_REFERENCE)};
#define QPLAN_VARIANT(name, isa) QPLAN_DEPTHWISE_ROW(name, isa)
constexpr KernelVariant kOptimized[] = {QPLAN_SIMD_VARIANTS(depthwise_conv2d)
                                            QPLAN_SCALAR_VARIANTS(depthwise_conv2d)};
#undef QPLAN_VARIANT
constexpr KernelVariant kForm[] = {QPLAN_DEPTHWISE_ROW(depthwise_conv2d_dsp_form, QPLAN_ISA_DSP)};

}  // namespace

constexpr KernelFamily kDepthwiseConv2dFamily = make_family<DepthwiseConv2dArgs, bind, in_place, conv2d_work>(
    kKernel_depthwise_conv2d, "depthwise_conv2d", kVariants, &kConv2dRowCut);
constexpr KernelFamily kDepthwiseConv2dFamilyReference =
    make_family<DepthwiseConv2dArgs, bind, in_place, conv2d_work>(
        kKernel_depthwise_conv2d, "depthwise_conv2d", kReference, &kConv2dRowCut);
constexpr KernelFamily kDepthwiseConv2dFamilyOptimized =
    make_family<DepthwiseConv2dArgs, bind, in_place, conv2d_work>(
        kKernel_depthwise_conv2d, "depthwise_conv2d", kOptimized, &kConv2dRowCut);
// Cascades have none of these as layers.
constexpr KernelFamily kDepthwiseConv2dFamilyForm =
    make_family<DepthwiseConv2dArgs, bind, in_place, conv2d_work>(kKernel_depthwise_conv2d,
                                                                  "depthwise_conv2d", kForm);

}  // namespace qplan
