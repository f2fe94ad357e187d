// The parts that convolutions and linear layers share: packed parameters, weights, the clamp, and the
// products of integers that dynamic quantisation makes of them.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_WEIGHTS_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_WEIGHTS_H_

#include <limits>
#include <optional>
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

// Dynamic quantisation as PT2E writes it: choose_qparams takes scale and zero point from a tensor while the
// network runs; quantize and dequantize have both as tensors. A layer of what dequantize makes of integers,
// and of constant integers as weights, is a product of integers. docs/numerics.md, "Programs of PyTorch that
// quantise while they run".

// Whether scale and zero point, arguments 1 and 2, are tensors that the model computes. Unsupported for one
// without the other.
bool has_dynamic_scale(OpContext& op);
// The integers of argument 0, a float32 tensor, in [min, max] of the dtype.
Ref emit_dynamic_quantize(OpContext& op, int64_t min, int64_t max, ir::DType dtype);
// What the integers of the input stand for.
Ref emit_dynamic_dequantize(OpContext& op, const Flow& input);

// The sums of the layer in float32, without its bias; nothing where it is no product of integers. weights:
// [o, k] of a linear layer, or the transpose of such.
std::optional<ir::ValueId> emit_dynamic_dense(OpContext& op, const Flow& input, const Flow& weights);
// weights: OIHW; attrs: of nn.conv2d, NCHW.
std::optional<ir::ValueId> emit_dynamic_conv(OpContext& op, const Flow& input, const Flow& weights,
                                             ir::Attrs attrs);

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_WEIGHTS_H_
