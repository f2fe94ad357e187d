// depthwise_conv2d: conv2d (kernels/conv2d/conv2d.h) with groups == input_c, so that output channel o = c * m
// + j reads input channel c alone, m = output_c / input_c:
//
//   out[n,y,x,o] = clamp(output_zero_point + requant(acc[n,y,x,o], o), clamp_min, clamp_max)
//   acc[n,y,x,o] = bias[o] + sum over ky, kx of
//                  (in[n, in_y, in_x, o / m] - input_zero_point)
//                  * (weights[o, ky, kx] - weights_zero_point)
//   in_y         = y * stride_h + ky * dilation_h - pad_top
//   in_x         = x * stride_w + kx * dilation_w - pad_left
//
// Weights [output_c, kernel_h, kernel_w, 1] are in the layout ohwi or hwo16; the rest is as in conv2d.
#ifndef QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_CONV2D_H_
#define QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_CONV2D_H_

#include "kernels/conv2d/conv2d.h"
#include "kernels/variant.h"

namespace qplan {

// groups == input_c, which divides output_c.
using DepthwiseConv2dArgs = Conv2dArgs;

// Output rows of which all channels are made before the next ones; variants that go row by row ignore it.
enum DepthwiseKnob : uint32_t { kDepthwiseRowBlockRows };
constexpr Knob kDepthwiseKnobs[] = {{"band_rows", KnobKind::kTile, 5, {8, 16, 32, 64, 128}}};

// Best first; the reference, which computes all that is bound, is the last.
// Work items of the reference: output rows, n * output_h + y.
#define QPLAN_DEPTHWISE_CONV2D_VARIANTS                          \
  QPLAN_FILE_VARIANTS(depthwise_dots)                            \
  QPLAN_SIMD_VARIANTS_AFTER(depthwise_conv2d, depthwise_columns) \
  QPLAN_SCALAR_VARIANTS(depthwise_conv2d)                        \
  QPLAN_VARIANT(depthwise_conv2d_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, DepthwiseConv2dArgs)
QPLAN_DEPTHWISE_CONV2D_VARIANTS
#undef QPLAN_VARIANT

// depthwise_conv2d_dsp without what layers of most networks do without (has_form_alone,
// kernels/scalar/outputs.h): what C that `qplan emit-c` writes links where it is enough for all layers.
QPLAN_DECLARE_VARIANT(depthwise_conv2d_dsp_form, DepthwiseConv2dArgs)

}  // namespace qplan

#endif  // QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_CONV2D_H_
