// How PyTorch quantises a number: q(x) = zero_point + round_half_even(x * (1 / scale)), product and
// reciprocal in float32 (at::native::quantize_val, fbgemm::Quantize).
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_QUANTIZE_VALUE_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_QUANTIZE_VALUE_H_

#include <cstdint>

#include "src/packer/import/pytorch/value.h"

namespace qplan::pt {

// |value| < 2^52, independent of the rounding mode.
int64_t round_half_even(double value);
// Clamped to the dtype; infinities go to its ends.
int64_t quantize_value(double value, QuantParams quantization, ir::DType dtype);
// PackError unless the scale is a positive finite float32 number and the zero point one of the dtype.
QuantParams checked_quantization(double scale, int64_t zero_point, ir::DType dtype);

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_QUANTIZE_VALUE_H_
