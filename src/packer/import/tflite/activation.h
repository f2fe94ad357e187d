// Fused activations as clamps in quantised units, and the padding rules. Formulas: TFLite's
// CalculateActivationRangeQuantized and ComputePaddingWithOffset.
#ifndef QPLAN_SRC_PACKER_IMPORT_TFLITE_ACTIVATION_H_
#define QPLAN_SRC_PACKER_IMPORT_TFLITE_ACTIVATION_H_

#include <limits>

#include "src/packer/import/tflite/op_context.h"

namespace qplan::tfl {

// The interval of real numbers that an activation keeps.
struct RealRange {
  float min = -std::numeric_limits<float>::infinity();
  float max = std::numeric_limits<float>::infinity();
};

// The activation's interval; Unsupported for those that are not a clamp. NONE keeps everything.
RealRange activation_range(tflite::ActivationFunctionType activation);

// Emits the clamp to the range, in the units of a tensor of this dtype and quantisation, unless it would do
// nothing: q(r) = zero_point + round_half_away(r / scale), the division in float32.
ir::ValueId emit_clamp(OpContext& op, ir::ValueId value, RealRange range, QuantParams quantization);
inline ir::ValueId emit_activation(OpContext& op, ir::ValueId value,
                                   tflite::ActivationFunctionType activation, QuantParams quantization) {
  return emit_clamp(op, value, activation_range(activation), quantization);
}

// A window along one axis.
struct WindowAxis {
  int64_t kernel, stride, dilation;
};
// [before, after]. SAME: output extent ceil(input / stride), the smaller half of the padding before.
ir::Ints padding_of(tflite::Padding padding, int64_t input, WindowAxis axis);
// Checks that kernel, stride and dilation are at least 1, then pads: {top, left, bottom, right}. data is
// NHWC.
ir::Ints padding_2d(tflite::Padding padding, const ir::Shape& data, WindowAxis h, WindowAxis w);

}  // namespace qplan::tfl

#endif  // QPLAN_SRC_PACKER_IMPORT_TFLITE_ACTIVATION_H_
