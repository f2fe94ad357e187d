// dynamic_quantize, dynamic_dequantize: the steps before and after a layer of 8-bit weights and float32
// activations (TFLite's hybrid layers). The layer between them is conv2d, depthwise_conv2d or fully_connected
// under ACC32, with zero points of 0.
//
// dynamic_quantize: float32 to int8, with a scale and a zero point for each row of the data, which its own
// elements give. least and most are the ends of the row's elements, 0 among them; NaN is passed over.
//
//   symmetric: range = max(-least, most); scale = range / 127, zero_point = 0; inverse = 127 / range
//   else, in double up to scale: s = (most - least) / 255; from_least = -128 - least / s,
//     from_most = 127 - most / s; zero_point is from_least where 128 + |least / s| < 127 + |most / s|,
//     elsewhere from_most, held in [-128, 127] and rounded half away from zero; scale = float(s); inverse = 1
//     / scale
//   q = zero_point + x * inverse in float32, held in [-128, 127] (symmetric: [-127, 127]), rounded half away
//     from zero; 0 for NaN
//   a row of zeros: scale = 1, zero_point = 0, q = 0
//
// Elements around the data, as a convolution pads it, are the row's zero point.
//
// dynamic_dequantize: out = clamp(v + bias[o]), with sum = data[r,p,o] - zero_point[r] * weight_sum[o] modulo
// 2^32 and
//
//   v = float(sum) * (weight_scale[o] * scale[r]); with in_turn, (float(sum) * weight_scale[o]) * scale[r]
//
// Each operation is rounded by itself. docs/numerics/dynamic_quantize.md.
#ifndef QPLAN_KERNELS_DYNAMIC_QUANTIZE_DYNAMIC_QUANTIZE_H_
#define QPLAN_KERNELS_DYNAMIC_QUANTIZE_DYNAMIC_QUANTIZE_H_

#include <stdint.h>

#include "kernels/variant.h"

namespace qplan {

struct DynamicQuantizeArgs {
  const float* input = nullptr;   // [rows, input_h, input_w, channels]
  int8_t* output = nullptr;       // [rows, output_h, output_w, channels]
  float* scale = nullptr;         // [rows]
  int32_t* zero_point = nullptr;  // [rows]
  uint32_t rows = 0;
  uint32_t input_h = 0;
  uint32_t input_w = 0;
  uint64_t channels = 0;
  uint32_t output_h = 0;  // at least pad_top + input_h
  uint32_t output_w = 0;
  uint32_t pad_top = 0;
  uint32_t pad_left = 0;
  bool symmetric = false;
};

struct DynamicDequantizeArgs {
  const int32_t* input = nullptr;  // [rows, pixels, channels]
  const float* scale = nullptr;
  const int32_t* zero_point = nullptr;
  const float* weight_scale = nullptr;  // [channels], as are these two
  const int32_t* weight_sum = nullptr;
  const float* bias = nullptr;
  float* output = nullptr;
  uint32_t rows = 0;
  uint32_t pixels = 0;  // of a row; rows * pixels fits int32
  uint32_t channels = 0;
  float clamp_min = 0.0f;  // numbers, clamp_min <= clamp_max
  float clamp_max = 0.0f;
  bool in_turn = false;
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_DYNAMIC_QUANTIZE_VARIANTS \
  QPLAN_SIMD_VARIANTS(dynamic_quantize) \
  QPLAN_VARIANT(dynamic_quantize_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_DYNAMIC_DEQUANTIZE_VARIANTS \
  QPLAN_SIMD_VARIANTS(dynamic_dequantize) \
  QPLAN_VARIANT(dynamic_dequantize_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, DynamicQuantizeArgs)
QPLAN_DYNAMIC_QUANTIZE_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, DynamicDequantizeArgs)
QPLAN_DYNAMIC_DEQUANTIZE_VARIANTS
#undef QPLAN_VARIANT

// What a row's ends make of it.
struct DynamicScale {
  float scale, inverse;
  int32_t zero_point;
};

static inline DynamicScale dynamic_scale(float least, float most, bool symmetric) {
  if (least == 0.0f && most == 0.0f) return {1.0f, 0.0f, 0};
  if (symmetric) {
    const float range = -least > most ? -least : most;
    return {range / 127.0f, 127.0f / range, 0};
  }
  const double low = static_cast<double>(least), high = static_cast<double>(most);
  const double step = (high - low) / 255.0;
  const double below = low / step, above = high / step;  // not positive, not negative
  const double real = 128.0 - below < 127.0 + above ? -128.0 - below : 127.0 - above;
  const double held = real > -128.0 ? (real < 127.0 ? real : 127.0) : -128.0;
  const auto whole = static_cast<int32_t>(held);
  const double rest = held - static_cast<double>(whole);
  const int32_t zero_point = whole + (rest >= 0.5 ? 1 : rest <= -0.5 ? -1 : 0);
  const float scale = static_cast<float>(step);
  return {scale, 1.0f / scale, zero_point};
}

// An element of such a row.
static inline int8_t dynamic_quantized(float x, const DynamicScale& scale, bool symmetric) {
  const float least = symmetric ? -127.0f : -128.0f;
  const float real = static_cast<float>(scale.zero_point) + x * scale.inverse;
  const float held = real < least ? least : real > 127.0f ? 127.0f : real;
  if (held != held) return 0;
  // Half away from zero. What is left of a number below 2^7 is exact.
  const auto whole = static_cast<int32_t>(held);
  const float rest = held - static_cast<float>(whole);
  return static_cast<int8_t>(whole + (rest >= 0.5f ? 1 : rest <= -0.5f ? -1 : 0));
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_DYNAMIC_QUANTIZE_DYNAMIC_QUANTIZE_H_
