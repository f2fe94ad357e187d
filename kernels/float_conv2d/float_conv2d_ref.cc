// The formula of float_conv2d.h as it stands there.
#include "kernels/float_conv2d/float_conv2d.h"

namespace qplan::float_conv2d_ref {
namespace {

// The sum of output channel o where the window begins at (y0, x0) of the image.
float sum_of_window(const FloatConv2dArgs& a, const float* image, int32_t y0, int32_t x0, uint32_t o) {
  const uint32_t group_c = a.input_c / a.groups;
  const uint32_t first_c = o / (a.output_c / a.groups) * group_c;
  const uint64_t num_k = uint64_t{a.kernel_h} * a.kernel_w * group_c;
  const float* weights = a.weights + o / kFloatBlock * num_k * kFloatBlock + o % kFloatBlock;
  float sum = 0.0f;
  for (uint32_t ky = 0; ky < a.kernel_h; ++ky) {
    const int32_t y = y0 + static_cast<int32_t>(ky * a.dilation_h);
    if (y < 0 || static_cast<uint32_t>(y) >= a.input_h) continue;
    for (uint32_t kx = 0; kx < a.kernel_w; ++kx) {
      const int32_t x = x0 + static_cast<int32_t>(kx * a.dilation_w);
      if (x < 0 || static_cast<uint32_t>(x) >= a.input_w) continue;
      const float* pixel =
          image + (uint64_t{static_cast<uint32_t>(y)} * a.input_w + static_cast<uint32_t>(x)) * a.input_c +
          first_c;
      const float* tap = weights + (uint64_t{ky} * a.kernel_w + kx) * group_c * kFloatBlock;
      for (uint32_t i = 0; i < group_c; ++i) {
        const float product = pixel[i] * tap[uint64_t{i} * kFloatBlock];
        sum = sum + product;
      }
    }
  }
  return sum;
}

}  // namespace

Refusal accepts(const FloatConv2dArgs&) { return Refusal::kNone; }

size_t scratch_bytes(const FloatConv2dArgs&) { return 0; }

uint32_t work_items(const FloatConv2dArgs& args) { return args.batch * args.output_h; }

void run(const FloatConv2dArgs& a, uint32_t begin, uint32_t end, void*) {
  for (uint32_t row = begin; row < end; ++row) {
    const uint32_t n = row / a.output_h, y = row % a.output_h;
    const float* image = a.input + uint64_t{n} * a.input_h * a.input_w * a.input_c;
    float* out = a.output + uint64_t{row} * a.output_w * a.output_c;
    const int32_t y0 = static_cast<int32_t>(y * a.stride_h) - static_cast<int32_t>(a.pad_top);
    for (uint32_t x = 0; x < a.output_w; ++x) {
      const int32_t x0 = static_cast<int32_t>(x * a.stride_w) - static_cast<int32_t>(a.pad_left);
      for (uint32_t o = 0; o < a.output_c; ++o, ++out) {
        const float value = sum_of_window(a, image, y0, x0, o) + a.bias[o];
        *out = value < a.clamp_min ? a.clamp_min : value > a.clamp_max ? a.clamp_max : value;
      }
    }
  }
}

}  // namespace qplan::float_conv2d_ref
