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
#ifndef QPLAN_KERNELS_QUANTIZE_QUANTIZE_H_
#define QPLAN_KERNELS_QUANTIZE_QUANTIZE_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

// As in format/plan.fbs.
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

}  // namespace qplan

#endif  // QPLAN_KERNELS_QUANTIZE_QUANTIZE_H_
