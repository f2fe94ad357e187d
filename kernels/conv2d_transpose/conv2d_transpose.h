// conv2d_transpose: each element of the input adds a window of products to the output.
//
//   out[n,y,x,o] = clamp(output_zero_point + requant(acc[n,y,x,o], o), clamp_min, clamp_max)
//   acc[n,y,x,o] = bias[o] + sum over in_y, in_x, i, and over the ky, kx with
//                  y = in_y * stride_h + ky - pad_top and x = in_x * stride_w + kx - pad_left, of
//                  (in[n, in_y, in_x, i] - input_zero_point) * (weights[o, ky, kx, i] - weights_zero_point)
//
// Sums, requant and dtypes are those of conv2d (kernels/conv2d/conv2d.h). Outputs that no element of the
// input reaches are the bias alone. The weights are in the layout ohwi, or in o16p4 (kernels/layouts.def), of
// 8-bit inputs.
#ifndef QPLAN_KERNELS_CONV2D_TRANSPOSE_CONV2D_TRANSPOSE_H_
#define QPLAN_KERNELS_CONV2D_TRANSPOSE_CONV2D_TRANSPOSE_H_

#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"
#include "kernels/variant.h"

namespace qplan {

// Dilations and groups are 1, there is no residual, and pad_value means nothing. pad_top and pad_left are the
// rows and columns that are cut off before the output; extents and pads are below 2^31.
using Conv2dTransposeArgs = Conv2dArgs;

// Best first; the reference, whose work items are output rows, n * output_h + y, is the last.
#define QPLAN_CONV2D_TRANSPOSE_VARIANTS \
  QPLAN_DOT_VARIANTS(conv2d_transpose)  \
  QPLAN_VARIANT(conv2d_transpose_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, Conv2dTransposeArgs)
QPLAN_CONV2D_TRANSPOSE_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_CONV2D_TRANSPOSE_CONV2D_TRANSPOSE_H_
