#include "kernels/conv2d_transpose/conv2d_transpose.h"

#include "kernels/layout.h"
#include "src/runtime/bind/conv2d.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  if (step.step->residual() != nullptr) return check.fail() << "a residual is not added here";
  if (!check_conv2d_operands(check, step, true)) return false;
  const format::Conv2dParams& p = check.params_as<format::Conv2dParams>();
  return check.range("kernel height", p.kernel_h(), 1, INT32_MAX) &&
         check.range("kernel width", p.kernel_w(), 1, INT32_MAX) &&
         check.range("stride height", p.stride_h(), 1, INT32_MAX) &&
         check.range("stride width", p.stride_w(), 1, INT32_MAX) &&
         check.range("dilation height", p.dilation_h(), 1, 1) &&
         check.range("dilation width", p.dilation_w(), 1, 1) &&
         check.range("pad top", p.pad_top(), 0, INT32_MAX) &&
         check.range("pad left", p.pad_left(), 0, INT32_MAX) && check.range("groups", p.groups(), 1, 1) &&
         check.layout(p.weights_layout(), kLayout_ohwi, kLayout_o16p4) &&
         check_conv2d_constants(check, step) && check_conv2d_zeros(check, step);
}

qplan_status bind(const StepView& step, bool check, Conv2dTransposeArgs& args, Error* error) {
  if (check) {
    const StepCheck checker(step, "conv2d_transpose", error);
    if (!check_step(checker, step)) return checker.status();
  }
  fill_conv2d_args(step, args);
  return QPLAN_OK;
}

constexpr KernelVariant kVariants[] = {
// Each call sums up the weights.
#define QPLAN_VARIANT(name, isa) with_repeated_work(QPLAN_VARIANT_ROW(Conv2dTransposeArgs, name, isa)),
    QPLAN_CONV2D_TRANSPOSE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {
    QPLAN_VARIANT_ROW(Conv2dTransposeArgs, conv2d_transpose_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kConv2dTransposeFamily =
    make_family<Conv2dTransposeArgs, bind, never_in_place, conv2d_work>(kKernel_conv2d_transpose,
                                                                        "conv2d_transpose", kVariants);
constexpr KernelFamily kConv2dTransposeFamilyReference =
    make_family<Conv2dTransposeArgs, bind, never_in_place, conv2d_work>(kKernel_conv2d_transpose,
                                                                        "conv2d_transpose", kReference);

}  // namespace qplan
