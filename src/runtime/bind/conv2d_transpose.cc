#include "kernels/conv2d_transpose/conv2d_transpose.h"

#include "kernels/layout.h"
#include "src/runtime/bind/conv2d.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step, const Conv2dTransposeArgs& a) {
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

qplan_status bind(const StepView& step, bool check, Conv2dTransposeArgs& args, Error* error) {
  const StepCheck checker(step, "conv2d_transpose", error);
  if (check && checker.has_residual()) {
    checker.fail() << "a residual is not added here";
    return checker.status();
  }
  if (check && !check_conv2d_operands(checker, step)) return checker.status();
  fill_conv2d_args(step, args);
  return check && !check_step(checker, step, args) ? checker.status() : qplan_status{QPLAN_OK};
}

constexpr KernelVariant kVariants[] = {
// Each call sums up the weights.
#define QPLAN_VARIANT(name, isa) with_packed_weights(QPLAN_VARIANT_ROW(Conv2dTransposeArgs, name, isa)),
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
