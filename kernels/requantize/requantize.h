// requantize, element by element:
//
//   out[i] = clamp(output_zero_point + requant(in[i] - input_zero_point, multiplier, shift),
//                  clamp_min, clamp_max)
//
// requant (kernels/numeric/requantize.h) is requantize_tfl2 or requantize_tfl1, as the contract says; under
// F32E, which is for int32 inputs, it is round half even (float(in[i] - input_zero_point) * scale). The
// difference is taken modulo 2^32.
#ifndef QPLAN_KERNELS_REQUANTIZE_REQUANTIZE_H_
#define QPLAN_KERNELS_REQUANTIZE_REQUANTIZE_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/variant.h"

namespace qplan {

// Elements of a unit; the last unit may have fewer.
inline constexpr uint32_t kRequantizeChunk = 4096;

// Ranges that bind has checked: zero points and clamps lie within their dtypes, multiplier >= 0, shift in
// [-31, 30], scale in (0, 2^100], and there are fewer than 2^31 units.
struct RequantizeArgs {
  const void* input = nullptr;
  void* output = nullptr;  // may be the input, if both dtypes have one byte
  uint64_t count = 0;      // elements, >= 1
  int32_t input_zero_point = 0;
  int32_t output_zero_point = 0;
  int32_t multiplier = 0;
  int32_t shift = 0;
  float scale = 0.0f;  // F32E, in the place of multiplier and shift
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
  Contract contract = Contract::kTfl2;
  Dtype input_dtype = Dtype::kOther;   // uint8, int8 or int32
  Dtype output_dtype = Dtype::kOther;  // uint8 or int8
};

// Units of the reference: chunks of kRequantizeChunk elements.
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, RequantizeArgs)
#include "kernels/requantize/variants.def"
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_REQUANTIZE_REQUANTIZE_H_
