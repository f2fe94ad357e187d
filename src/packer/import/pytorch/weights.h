// The parts that convolutions and linear layers share: packed parameters, weights and the clamp.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_WEIGHTS_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_WEIGHTS_H_

#include <limits>
#include <vector>

#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {

// torch.classes.quantized.Conv2dPackedParamsBase.
struct ConvParameters {
  Ref weight;  // Tensor, qint8 OIHW
  Ref bias;    // Tensor float32, or None
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups = 1;
};
ConvParameters conv_parameters(OpContext& op, size_t argument);

// torch.classes.quantized.LinearPackedParamsBase.
struct LinearParameters {
  Ref weight;  // Tensor, qint8 [outputs, inputs]
  Ref bias;
};
LinearParameters linear_parameters(OpContext& op, size_t argument);

// An object of packed parameters as the prepack operators make it.
Ref make_packed(OpContext& op, const char* class_name, std::map<std::string, Ref, std::less<>> members);

struct Weights {
  ir::ValueId value;
  int64_t channels = 0;
  TensorScales scales;  // of axis 0, or one
};
// Unsupported unless the tensor is qint8 and quantised along axis 0 or as a whole.
Weights read_weights(OpContext& op, Ref tensor, size_t rank);

// A transposed convolution; each list has the value of the height, then of the width.
struct TransposedConv {
  std::vector<int64_t> stride, padding, output_padding, dilation;
  int64_t groups;
};
// Data NCHW, weights [in, out / groups, h, w].
ir::ValueId emit_conv_transpose(OpContext& op, const Flow& input, const Flow& weights,
                                const TransposedConv& conv);

// Clamps of quantised tensors.
struct RealRange {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

// The clamp to the range in quantised units (op_context.h), or the value itself where that would do
// nothing.
ir::ValueId emit_clamp(OpContext& op, ir::ValueId value, RealRange range, QuantParams quantization);

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_WEIGHTS_H_
