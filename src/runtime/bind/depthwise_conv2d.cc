#include "kernels/depthwise_conv2d/depthwise_conv2d.h"

#include "format/table_fields.h"
#include "kernels/cpu.h"
#include "kernels/layout.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/layer.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

__attribute__((noinline)) bool check_step(const StepCheck& check, const StepView& step,
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

qplan_status bind(const StepView& step, bool check, DepthwiseConv2dArgs& args, Error* error) {
  const StepCheck checker(step, "depthwise_conv2d", error);
  if (check && !check_conv2d_operands(checker, step)) return checker.status();
  fill_conv2d_args(step, args);
  return check && !check_step(checker, step, args) ? checker.status() : qplan_status{QPLAN_OK};
}

// The reference and kernels in general registers keep what they have yet to read of the input.
bool in_place(const StepView& step, uint32_t, uint32_t input) {
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
