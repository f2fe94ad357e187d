// Fused activations as clamps in quantised units, and the padding rules. Formulas: TFLite's
// CalculateActivationRangeQuantized and ComputePaddingWithOffset.
#ifndef QPLAN_SRC_PACKER_IMPORT_TFLITE_WEIGHTS_H_
#define QPLAN_SRC_PACKER_IMPORT_TFLITE_WEIGHTS_H_

#include <limits>
#include <vector>

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

// The parts that convolutions and fully connected layers share: quantisation of weights, bias, and the path
// from the accumulator to the output.

struct WeightQuantization {
  std::vector<float> scales;  // one, or one per output channel
  int32_t zero_point = 0;

  bool per_channel() const { return scales.size() > 1; }
};

// Unsupported unless the weights are int8 or uint8 constants, invalid unless they have this rank.
// channel_axis: of the output channels in the file's layout. uint8 weights have one scale; int8 weights of
// convolutions have no zero point.
WeightQuantization weight_quantization(const OpContext& op, const TensorInfo& weights, size_t rank,
                                       size_t channel_axis);

// Constant weights [1, h, w, c] as [c, h, w, 1]: a group per input channel.
ir::ConstantRef depthwise_to_ohwi(const TensorInfo& weights);

// The input of a fully connected layer as rows that fit weights [units, depth]: leading extents are batches,
// unless the last extent is not the depth.
ir::ValueId rows_of(OpContext& op, bool keep_num_dims, const TensorInfo& weights);

// How the real multiplier is formed from the scales (src/packer/op/README.md).
enum class Multiplier { kProductF32, kProductF64 };

struct MatmulTail {
  const TensorInfo* bias;  // may be null: zeros
  const TensorInfo& output;
  QuantParams input;
  const WeightQuantization& weights;
  int64_t channels;
  int64_t channel_axis;  // of the accumulator
  Multiplier multiplier;
  tflite::ActivationFunctionType activation;
};
// The type of a layer's sums. Layers with int16 activations have int64, unless the bias is int32, or there is
// no bias and the options name int32; others have int32.
ir::DType accumulator_dtype(const TensorInfo& input, const TensorInfo* bias, tflite::TensorType bias_type);
// accumulator -> nn.bias_add -> qnn.requantize -> clip where the activation needs one.
ir::ValueId emit_tail(OpContext& op, ir::ValueId accumulator, const MatmulTail& tail);

// The operands of qnn.conv2d and qnn.dense.
std::vector<ir::ValueId> matmul_operands(OpContext& op, ir::ValueId data, ir::ValueId weights,
                                         QuantParams input, const WeightQuantization& quantization);

}  // namespace qplan::tfl

#endif  // QPLAN_SRC_PACKER_IMPORT_TFLITE_WEIGHTS_H_
