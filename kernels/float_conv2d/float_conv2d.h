// float_conv2d: convolutions, depthwise convolutions and fully connected layers (a window of one pixel) on
// float32:
//
//   out[n,y,x,o] = clamp(sum[n,y,x,o] + bias[o])
//   clamp(v)     = v < clamp_min ? clamp_min : v > clamp_max ? clamp_max : v
//   in_y         = y * stride_h + ky * dilation_h - pad_top
//   in_x         = x * stride_w + kx * dilation_w - pad_left
//
// sum begins as +0. For each ky, for each kx, for each i (i runs fastest), where (in_y, in_x) is inside the
// input, it becomes sum + in[n, in_y, in_x, g * I + i] * weights[o, ky, kx, i]. The product and the sum are
// each rounded to float32; taps outside the input are left out. I = input_c / groups input channels a group,
// g = o / (output_c / groups). No variant may add in another order or fuse a product with its sum:
// docs/numerics/float32.md.
//
// Weights and bias are in blocks of 16 outputs: weight (o, k) with k = (ky * kernel_w + kx) * I + i is
// weights[(o / 16 * K + k) * 16 + o % 16], K = kernel_h * kernel_w * I. What follows the last output
// reaches none.
#ifndef QPLAN_KERNELS_FLOAT_CONV2D_FLOAT_CONV2D_H_
#define QPLAN_KERNELS_FLOAT_CONV2D_FLOAT_CONV2D_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/variant.h"

namespace qplan {

// Outputs of a block of weights.
constexpr uint32_t kFloatBlock = 16;

// Ranges that bind has checked: those of Conv2dArgs (kernels/conv2d/conv2d.h), K is below 2^31, and clamp_min
// and clamp_max are numbers, clamp_min <= clamp_max.
struct FloatConv2dArgs {
  const float* input = nullptr;    // [batch, input_h, input_w, input_c]
  const float* weights = nullptr;  // [output_c / 16, K, 16], rounded up
  const float* bias = nullptr;     // [output_c], rounded up to 16
  float* output = nullptr;         // [batch, output_h, output_w, output_c]
  uint32_t batch = 0;
  uint32_t input_h = 0;
  uint32_t input_w = 0;
  uint32_t input_c = 0;
  uint32_t output_h = 0;
  uint32_t output_w = 0;
  uint32_t output_c = 0;
  uint32_t kernel_h = 0;
  uint32_t kernel_w = 0;
  uint32_t stride_h = 0;
  uint32_t stride_w = 0;
  uint32_t dilation_h = 0;
  uint32_t dilation_w = 0;
  uint32_t pad_top = 0;
  uint32_t pad_left = 0;
  uint32_t groups = 0;
  float clamp_min = 0.0f;
  float clamp_max = 0.0f;
};

// Best first; the reference, whose work items are output rows, n * output_h + y, is the last.
#define QPLAN_FLOAT_CONV2D_VARIANTS \
  QPLAN_SIMD_VARIANTS(float_conv2d) \
  QPLAN_VARIANT(float_conv2d_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FloatConv2dArgs)
QPLAN_FLOAT_CONV2D_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_FLOAT_CONV2D_FLOAT_CONV2D_H_
