// The formulas of float.h as they stand there.
#include "kernels/elementwise/broadcast.h"
#include "kernels/float/float.h"
#include "kernels/numeric/axes.h"
#include "kernels/numeric/float_functions.h"

namespace qplan {

namespace {

float held(float v, float least, float most) { return v < least ? least : most < v ? most : v; }

float combined(FloatBinary op, float a, float b) {
  switch (op) {
    case FloatBinary::kAdd:
      return a + b;
    case FloatBinary::kSub:
      return a - b;
    case FloatBinary::kMul:
      return a * b;
    case FloatBinary::kDiv:
      return a / b;
    case FloatBinary::kMaximum:
      return b < a ? a : b;
    case FloatBinary::kMinimum:
      return a < b ? a : b;
    case FloatBinary::kPower:
      return power_f32(a, b);
  }
  return a;
}

float function_of(const FloatUnaryArgs& args, float x) {
  switch (args.function) {
    case FloatUnary::kClamp:
      return held(x, args.p, args.q);
    case FloatUnary::kLeakyRelu:
      return 0.0f < x ? x : x * args.p;
    case FloatUnary::kHardSigmoid:
      return held(x * args.p + args.q, 0.0f, 1.0f);
    case FloatUnary::kLogistic:
      return logistic_f32(x);
    case FloatUnary::kTanh:
      return tanh_f32(x);
    case FloatUnary::kExp:
      return exp_f32(x);
    case FloatUnary::kNegative:
      return float_negative(x);
    case FloatUnary::kAbs:
      return float_abs(x);
    default:
      return float_rare_function(args.function, x, args.p);
  }
}

}  // namespace

namespace float_binary_ref {

Refusal accepts(const FloatBinaryArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const FloatBinaryArgs&) { return 0; }
uint32_t work_items(const FloatBinaryArgs& args) { return num_chunks(args.broadcast.elements); }

void run(const FloatBinaryArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  combine_elements(args.broadcast, range, args.a, args.b, args.output, [&](float a, float b) {
    return held(combined(args.op, a, b), args.clamp_min, args.clamp_max);
  });
}

}  // namespace float_binary_ref

namespace float_unary_ref {

Refusal accepts(const FloatUnaryArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const FloatUnaryArgs&) { return 0; }
uint32_t work_items(const FloatUnaryArgs& args) { return num_chunks(args.elements); }

void run(const FloatUnaryArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  for (uint64_t i = range.begin; i < range.end; ++i) args.output[i] = function_of(args, args.input[i]);
}

}  // namespace float_unary_ref

namespace float_pool2d_ref {
namespace {

// The pooled value of channel c at output pixel (y, x) of an image.
float pooled(const FloatPool2dArgs& a, const float* image, uint32_t y, uint32_t x, uint32_t c) {
  const PoolSpan rows = pool_span(y, a.stride_h, a.pad_top, a.pool_h, a.input_h);
  const PoolSpan columns = pool_span(x, a.stride_w, a.pad_left, a.pool_w, a.input_w);
  float value = a.is_max ? -__builtin_inff() : 0.0f;
  for (uint32_t iy = rows.begin; iy < rows.end; ++iy) {
    for (uint32_t ix = columns.begin; ix < columns.end; ++ix) {
      const float element = image[(uint64_t{iy} * a.input_w + ix) * a.channels + c];
      value = !a.is_max ? value + element : value < element ? element : value;
    }
  }
  if (!a.is_max) {
    const uint64_t inside = uint64_t{rows.end - rows.begin} * (columns.end - columns.begin);
    value = value / static_cast<float>(a.counts_padding ? uint64_t{a.pool_h} * a.pool_w : inside);
  }
  return value < a.clamp_min ? a.clamp_min : a.clamp_max < value ? a.clamp_max : value;
}

}  // namespace

Refusal accepts(const FloatPool2dArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const FloatPool2dArgs&) { return 0; }
uint32_t work_items(const FloatPool2dArgs& args) { return args.batch * args.output_h; }

void run(const FloatPool2dArgs& a, uint32_t begin, uint32_t end, void*) {
  for (uint32_t row = begin; row < end; ++row) {
    const float* image = a.input + uint64_t{row / a.output_h} * a.input_h * a.input_w * a.channels;
    float* out = a.output + uint64_t{row} * a.output_w * a.channels;
    for (uint32_t x = 0; x < a.output_w; ++x) {
      for (uint32_t c = 0; c < a.channels; ++c) *out++ = pooled(a, image, row % a.output_h, x, c);
    }
  }
}

}  // namespace float_pool2d_ref

namespace float_mean_ref {
namespace {

float first_value(FloatReduction reduction, float first_element) {
  switch (reduction) {
    case FloatReduction::kMaximum:
    case FloatReduction::kMinimum:
      return first_element;
    case FloatReduction::kProduct:
      return 1.0f;
    default:
      return 0.0f;
  }
}

float reduced(FloatReduction reduction, float value, float element) {
  switch (reduction) {
    case FloatReduction::kMaximum:
      return value < element ? element : value;
    case FloatReduction::kMinimum:
      return element < value ? element : value;
    case FloatReduction::kProduct:
      return value * element;
    default:
      return value + element;
  }
}

}  // namespace

Refusal accepts(const FloatMeanArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const FloatMeanArgs&) { return 0; }
uint32_t work_items(const FloatMeanArgs& args) { return num_chunks(args.num_outputs); }

void run(const FloatMeanArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.num_outputs, begin, end);
  for (uint64_t output = range.begin; output < range.end; ++output) {
    const float* first =
        args.input + strided_offset(output, args.kept_rank, args.kept_extents, args.kept_strides);
    float value = first_value(args.reduction, first[0]);
    for_each_reduced(args, first, [&](float element) { value = reduced(args.reduction, value, element); });
    const bool is_mean = args.reduction == FloatReduction::kMean;
    args.output[output] = is_mean ? value / static_cast<float>(args.num_reduced) : value;
  }
}

}  // namespace float_mean_ref

namespace float_softmax_ref {

Refusal accepts(const FloatSoftmaxArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const FloatSoftmaxArgs&) { return 0; }
uint32_t work_items(const FloatSoftmaxArgs& args) { return static_cast<uint32_t>(args.outer); }

void run(const FloatSoftmaxArgs& args, uint32_t begin, uint32_t end, void*) {
  const uint64_t lines = args.depth * args.inner;
  for (uint64_t at = begin * lines; at < end * lines; ++at) {
    if (at % lines >= args.inner) continue;
    const float* x = args.input + at;
    float* out = args.output + at;
    float most = x[0];
    for (uint64_t i = 1; i < args.depth; ++i) most = most < x[i * args.inner] ? x[i * args.inner] : most;
    float sum = 0.0f;
    for (uint64_t i = 0; i < args.depth; ++i) {
      const float difference = x[i * args.inner] - most;
      out[i * args.inner] = exp_f32(difference * args.beta);
      sum = sum + out[i * args.inner];
      if (args.is_log) out[i * args.inner] = difference * args.beta;
    }
    if (args.is_log) {
      const float log_of_sum = log_f32(sum);
      for (uint64_t i = 0; i < args.depth; ++i) out[i * args.inner] = out[i * args.inner] - log_of_sum;
      continue;
    }
    for (uint64_t i = 0; i < args.depth; ++i) out[i * args.inner] = out[i * args.inner] / sum;
  }
}

}  // namespace float_softmax_ref

namespace float_conv2d_ref {
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

}  // namespace float_conv2d_ref
}  // namespace qplan
