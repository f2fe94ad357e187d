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
#ifndef QPLAN_KERNELS_REQUANTIZE_REQUANTIZE_H_
#define QPLAN_KERNELS_REQUANTIZE_REQUANTIZE_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/variant.h"

namespace qplan {

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

}  // namespace qplan

#endif  // QPLAN_KERNELS_REQUANTIZE_REQUANTIZE_H_
