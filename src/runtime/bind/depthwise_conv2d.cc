#include "kernels/depthwise_conv2d/depthwise_conv2d.h"

#include "kernels/layout.h"
#include "src/runtime/bind/conv2d.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check_conv2d_operands(check, step)) return false;
  const format::Conv2dParams& p = check.params_as<format::Conv2dParams>();
  const int64_t input_c = step.input(0).extents[3], output_c = step.output(0).extents[3];
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

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) \
  with_knobs(QPLAN_VARIANT_ROW(DepthwiseConv2dArgs, name, isa), kDepthwiseKnobs),
    QPLAN_DEPTHWISE_CONV2D_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {
    QPLAN_VARIANT_ROW(DepthwiseConv2dArgs, depthwise_conv2d_ref, QPLAN_ISA_REFERENCE)};
#define QPLAN_VARIANT(name, isa) \
  with_knobs(QPLAN_VARIANT_ROW(DepthwiseConv2dArgs, name, isa), kDepthwiseKnobs),
constexpr KernelVariant kOptimized[] = {QPLAN_SIMD_VARIANTS(depthwise_conv2d)
                                            QPLAN_SCALAR_VARIANTS(depthwise_conv2d)};
#undef QPLAN_VARIANT

}  // namespace

constexpr KernelFamily kDepthwiseConv2dFamily =
    make_family<DepthwiseConv2dArgs, bind, never_in_place, conv2d_work>(
        kKernel_depthwise_conv2d, "depthwise_conv2d", kVariants, &kConv2dRowCut);
constexpr KernelFamily kDepthwiseConv2dFamilyReference =
    make_family<DepthwiseConv2dArgs, bind, never_in_place, conv2d_work>(
        kKernel_depthwise_conv2d, "depthwise_conv2d", kReference, &kConv2dRowCut);
constexpr KernelFamily kDepthwiseConv2dFamilyOptimized =
    make_family<DepthwiseConv2dArgs, bind, never_in_place, conv2d_work>(
        kKernel_depthwise_conv2d, "depthwise_conv2d", kOptimized, &kConv2dRowCut);

}  // namespace qplan
