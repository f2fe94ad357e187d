// qnn.quantize in the packer: the bits of kernels/quantize, and of its int32 form, which has no kernel
// (biases).
#ifndef QPLAN_SRC_PACKER_PASSES_ROUNDING_H_
#define QPLAN_SRC_PACKER_PASSES_ROUNDING_H_

#include <cstdint>

#include "kernels/quantize/quantize.h"
#include "src/packer/ir/module.h"

namespace qplan::passes {

// What attributes `rule` and `contract` of a qnn.quantize say. docs/numerics/quantize.md
QuantizeRounding quantize_rounding(const ir::Node& quantize);

struct Quantized {
  int32_t value;
  bool saturated;  // the dtype's range cut it
};

// clamp(round(x / scale) + zero_point). The quotient is float32, NaN counts as 0.
struct Quantizer {
  float scale = 1.0f;  // positive and finite
  int32_t zero_point = 0;
  ir::DType dtype;  // int8, uint8, int32
  QuantizeRounding rounding = QuantizeRounding::kDivAway;

  Quantized operator()(float x) const;
};

// clamp(round half to even (x)) to int32, for values that were computed in double.
Quantized round_to_int32(double x);

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_ROUNDING_H_
