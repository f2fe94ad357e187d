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
#ifndef QPLAN_KERNELS_DEQUANTIZE_DEQUANTIZE_H_
#define QPLAN_KERNELS_DEQUANTIZE_DEQUANTIZE_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

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

}  // namespace qplan

#endif  // QPLAN_KERNELS_DEQUANTIZE_DEQUANTIZE_H_
