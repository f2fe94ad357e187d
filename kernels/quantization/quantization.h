// Conversions between numbers and their quantised form: quantize, dequantize, requantize from one form to
// another, and dynamic_quantize and dynamic_dequantize, whose scales the data give.
#ifndef QPLAN_KERNELS_QUANTIZATION_QUANTIZATION_H_
#define QPLAN_KERNELS_QUANTIZATION_QUANTIZATION_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/variant.h"

namespace qplan {

// quantize: float32 -> int8, uint8 or int16.
//
//   kDivAway  out = clamp(round half away from zero (x / scale) + zero_point)       TFLite, TVM
//   kDivEven  out = clamp(round half to even (x / scale) + zero_point)              ONNX
//   kMulEven  out = clamp(round half to even (x * (1 / scale)) + zero_point)        PyTorch
//
// Division, reciprocal and product are float32; the clamp is the dtype's range. Infinities saturate, NaN
// counts as 0. docs/numerics/quantize.md.
//
// The output has the order of the input, or the channels, which are planes of the input, side by side:
//
//   out[image][pixel][channel] = quantized(input[image][channel][pixel])

// The numbers are those of format/plan.fbs.
enum class QuantizeRounding : uint8_t { kDivAway = 0, kDivEven = 1, kMulEven = 2 };

struct QuantizeArgs {
  Dtype dtype = Dtype::kOther;  // of the output: kU8, kS8, kS16
  QuantizeRounding rule = QuantizeRounding::kDivAway;
  uint32_t channels = 1;  // planes of each image; 1: the order stays
  const float* input = nullptr;
  void* output = nullptr;
  uint64_t elements = 0;
  float scale = 1.0f;         // positive and finite
  int32_t zero_point = 0;     // of the dtype
  uint64_t plane_stride = 0;  // of more than one channel: elements from a plane of the input to the next

  // The pixels of each channel: a whole plane, or some rows of the plane of a single image.
  uint64_t pixels() const {
    const uint64_t of_all = elements / channels;
    return of_all < plane_stride ? of_all : plane_stride;
  }
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_QUANTIZE_VARIANTS \
  QPLAN_SIMD_VARIANTS(quantize) \
  QPLAN_VARIANT(quantize_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, QuantizeArgs)
QPLAN_QUANTIZE_VARIANTS
#undef QPLAN_VARIANT

// dequantize: int8, uint8 or int16 -> float32.
//
//   out = scale * float(x - zero_point)
//
// One float32 product: the difference has at most 17 bits, so that it is also the product of the reals,
// rounded once. docs/numerics/dequantize.md.
//
// The output has the order of the input, or the channels of the input, which are side by side, become planes:
//
//   out[image][channel][pixel] = dequantized(input[image][pixel][channel])
struct DequantizeArgs {
  Dtype dtype = Dtype::kOther;  // of the input: kU8, kS8, kS16
  uint32_t channels = 1;        // planes of each image; 1: the order stays
  const void* input = nullptr;
  float* output = nullptr;
  uint64_t elements = 0;
  float scale = 1.0f;      // positive and finite
  int32_t zero_point = 0;  // of the dtype
  uint64_t pixels = 0;     // of an image; of more than one channel
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_DEQUANTIZE_VARIANTS \
  QPLAN_FILE_VARIANTS(dequantize) \
  QPLAN_VARIANT(dequantize_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, DequantizeArgs)
QPLAN_DEQUANTIZE_VARIANTS
#undef QPLAN_VARIANT

// requantize, element by element:
//
//   out[i] = clamp(output_zero_point + requant(in[i] - input_zero_point, multiplier[c], shift[c]),
//                  clamp_min, clamp_max)
//   c      = (i / inner) % channels
//
// requant (kernels/numeric/requantize.h) is requantize_tfl2 or requantize_tfl1, as the contract says; under
// F32E, which is for int32 inputs, it is round half even (float(in[i] - input_zero_point) * scale[c]). The
// difference is taken modulo 2^32. Channels are along one axis of the tensor, `inner` is the product of the
// extents after it; one multiplier for all elements is one channel.

// Elements of a work item; the last work item may have fewer.
inline constexpr uint32_t kRequantizeChunk = 4096;

// Ranges that bind has checked: zero points and clamps are within their dtypes, multipliers >= 0, shifts in
// [-31, 30], scales finite and not negative, inner * channels divides count, and there are fewer than 2^31
// work items.
struct RequantizeArgs {
  const void* input = nullptr;
  void* output = nullptr;  // may be the input, if both dtypes have the same size
  uint64_t count = 0;      // elements, >= 1
  int32_t input_zero_point = 0;
  int32_t output_zero_point = 0;
  // `channels` entries each; null: the fields after them are those of one channel.
  const int32_t* multipliers = nullptr;  // TFL2 and TFL1
  const int32_t* shifts = nullptr;       // TFL2 and TFL1
  const float* scales = nullptr;         // F32E
  int32_t multiplier = 0;
  int32_t shift = 0;
  float scale = 0.0f;                                   // F32E, in the place of multiplier and shift
  FloatEpilogue float_epilogue = FloatEpilogue::kNone;  // kNone but for TFL2 and TFL1
  const float* float_scale = nullptr;                   // `channels` entries, and groups of 16 of them
  const float* float_offset = nullptr;
  uint32_t channels = 1;
  uint64_t inner = 1;
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
  Contract contract = Contract::kTfl2;
  Dtype input_dtype = Dtype::kOther;   // uint8, int8, int16 or int32
  Dtype output_dtype = Dtype::kOther;  // uint8, int8 or int16; int32 under TFL2
};

// Best first; the reference, which computes all that is bound, is the last.
// Work items of the reference: chunks of kRequantizeChunk elements.
#define QPLAN_REQUANTIZE_VARIANTS \
  QPLAN_SIMD_VARIANTS(requantize) \
  QPLAN_VARIANT(requantize_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, RequantizeArgs)
QPLAN_REQUANTIZE_VARIANTS
#undef QPLAN_VARIANT

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

#endif  // QPLAN_KERNELS_QUANTIZATION_QUANTIZATION_H_
