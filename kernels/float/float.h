// Operators on float32: elementwise ones, those that make one number of many, and layers with weights. Each
// operation is rounded to float32 by itself (docs/numerics/float32.md).
#ifndef QPLAN_KERNELS_FLOAT_FLOAT_H_
#define QPLAN_KERNELS_FLOAT_FLOAT_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/float_functions.h"
#include "kernels/spatial/spatial.h"
#include "kernels/variant.h"

namespace qplan {

// float_binary and float_unary: each output element of one or two float32 elements, each operation rounded to
// float32 by itself (docs/numerics/float32.md).
//
//   float_binary: out = clamp(op(a, b)), a and b broadcast as NumPy does
//     kAdd a + b, kSub a - b, kMul a * b, kDiv a / b,
//     kMaximum b < a ? a : b, kMinimum a < b ? a : b, kPower a^b
//   float_unary:  out = f(x)
//     kClamp clamp(x), kLeakyRelu 0 < x ? x : x * p, kHardSigmoid: x * p + q held in [0, 1],
//     kNegative, kAbs,
//     kElu 0 < x ? x : p * (exp(x) - 1),
//     kLogistic, kTanh, kExp, kSqrt, kLog, kErf, kSin, kCos, kFloor, kCeil, kRound (half to even), kRsqrt 1 /
//     sqrt(x): kernels/numeric/float_functions.h
//
//   clamp(v) = v < clamp_min ? clamp_min : clamp_max < v ? clamp_max : v

// The numbers are those of format/plan.fbs.
enum class FloatBinary : uint8_t { kAdd, kSub, kMul, kDiv, kMaximum, kMinimum, kPower };
enum class FloatUnary : uint8_t {
  kClamp,
  kLeakyRelu,
  kHardSigmoid,
  kLogistic,
  kTanh,
  kExp,
  kNegative,
  kAbs,
  kSqrt,  // from here on float_rare_function
  kRsqrt,
  kLog,
  kFloor,
  kCeil,
  kRound,
  kErf,
  kSin,
  kCos,
  kElu,
};

struct FloatBinaryArgs {
  FloatBinary op = FloatBinary::kAdd;
  const float* a = nullptr;
  const float* b = nullptr;
  float* output = nullptr;
  float clamp_min = 0.0f;  // numbers, clamp_min <= clamp_max
  float clamp_max = 0.0f;
  Broadcast broadcast;
};

struct FloatUnaryArgs {
  FloatUnary function = FloatUnary::kClamp;
  const float* input = nullptr;
  float* output = nullptr;
  uint64_t elements = 0;
  float p = 0.0f;  // kClamp: clamp_min
  float q = 0.0f;  // kClamp: clamp_max
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_FLOAT_BINARY_VARIANTS \
  QPLAN_SIMD_VARIANTS(float_binary) \
  QPLAN_VARIANT(float_binary_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_FLOAT_UNARY_VARIANTS \
  QPLAN_SIMD_VARIANTS(float_unary) \
  QPLAN_VARIANT(float_unary_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FloatBinaryArgs)
QPLAN_FLOAT_BINARY_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FloatUnaryArgs)
QPLAN_FLOAT_UNARY_VARIANTS
#undef QPLAN_VARIANT

// Functions that every variant computes one by one.
static inline float float_rare_function(FloatUnary function, float x, float p) {
  switch (function) {
    case FloatUnary::kSqrt:
      return sqrt_f32(x);
    case FloatUnary::kRsqrt:
      return 1.0f / sqrt_f32(x);
    case FloatUnary::kLog:
      return log_f32(x);
    case FloatUnary::kFloor:
      return floor_f32(x);
    case FloatUnary::kCeil:
      return ceil_f32(x);
    case FloatUnary::kRound:
      return round_f32(x);
    case FloatUnary::kErf:
      return erf_f32(x);
    case FloatUnary::kSin:
      return sin_f32(x);
    case FloatUnary::kCos:
      return cos_f32(x);
    case FloatUnary::kElu:
      return 0.0f < x ? x : p * exp_less_one_f32(x);
    default:
      return x;
  }
}

// Float32 operators that make one number of many: float_pool2d, float_mean, float_softmax. Each operation is
// rounded to float32 by itself, and sums are chains that begin as +0 (docs/numerics/float32.md).
//
//   float_pool2d: over the window of out[n,y,x,c], row by row, of which the part inside the input counts
//     kMax      v = -infinity; for each element e: v = v < e ? e : v
//     kAverage  v = sum / n, n elements inside; with counts_padding n = pool_h * pool_w
//     out = clamp(v),  clamp(v) = v < clamp_min ? clamp_min : clamp_max < v ? clamp_max : v
//   float_mean:   over the n elements e of the reduced axes, in the input's order
//     kMean sum / n, kSum sum, kProduct of 1 and all e,
//     kMaximum v = the first, then v < e ? e : v, kMinimum e < v ? e : v
//   float_softmax, along an axis: m the largest element, e[i] = exp_f32((x[i] - m) * beta),
//     out[i] = e[i] / sum of e, in the order of i       (exp_f32: kernels/numeric/float_functions.h)
//     with is_log: out[i] = (x[i] - m) * beta - log_f32(sum of e)

// What float_mean makes of the elements. The numbers are those of format/plan.fbs.
enum class FloatReduction : uint8_t { kMean, kSum, kMaximum, kMinimum, kProduct };

// Ranges that bind has checked: those of Pool2dArgs (kernels/spatial/spatial.h).
struct FloatPool2dArgs {
  const float* input = nullptr;  // [batch, input_h, input_w, channels]
  float* output = nullptr;       // [batch, output_h, output_w, channels]
  uint32_t batch = 0;
  uint32_t input_h = 0;
  uint32_t input_w = 0;
  uint32_t channels = 0;
  uint32_t output_h = 0;
  uint32_t output_w = 0;
  uint32_t pool_h = 0;
  uint32_t pool_w = 0;
  uint32_t stride_h = 0;
  uint32_t stride_w = 0;
  uint32_t pad_top = 0;
  uint32_t pad_left = 0;
  float clamp_min = 0.0f;  // numbers, clamp_min <= clamp_max
  float clamp_max = 0.0f;
  bool is_max = false;
  bool counts_padding = false;
};

// Axes outermost first, those that continue one another as one.
struct FloatMeanArgs {
  static constexpr uint32_t kMaxRank = 6;

  const float* input = nullptr;
  float* output = nullptr;
  uint64_t num_outputs = 1;
  uint64_t num_reduced = 1;
  uint32_t kept_rank = 0;
  uint32_t reduced_rank = 0;
  uint64_t kept_extents[kMaxRank] = {};
  uint64_t kept_strides[kMaxRank] = {};  // elements of the input
  uint64_t reduced_extents[kMaxRank] = {};
  uint64_t reduced_strides[kMaxRank] = {};
  FloatReduction reduction = FloatReduction::kMean;
};

// Element i of softmax (r, c) is x[(r * depth + i) * inner + c].
struct FloatSoftmaxArgs {
  const float* input = nullptr;
  float* output = nullptr;
  uint64_t outer = 1;
  uint64_t depth = 1;
  uint64_t inner = 1;
  float beta = 1.0f;
  bool is_log = false;
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_FLOAT_POOL2D_VARIANTS \
  QPLAN_SIMD_VARIANTS(float_pool2d) \
  QPLAN_VARIANT(float_pool2d_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_FLOAT_MEAN_VARIANTS \
  QPLAN_SIMD_VARIANTS(float_mean) \
  QPLAN_VARIANT(float_mean_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_FLOAT_SOFTMAX_VARIANTS \
  QPLAN_SIMD_VARIANTS(float_softmax) \
  QPLAN_VARIANT(float_softmax_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FloatPool2dArgs)
QPLAN_FLOAT_POOL2D_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FloatMeanArgs)
QPLAN_FLOAT_MEAN_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FloatSoftmaxArgs)
QPLAN_FLOAT_SOFTMAX_VARIANTS
#undef QPLAN_VARIANT

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

#endif  // QPLAN_KERNELS_FLOAT_FLOAT_H_
