// Dynamic quantisation as PT2E writes it: choose_qparams takes scale and zero point from a tensor while the
// network runs; quantize and dequantize have both as tensors. A layer of what dequantize makes of integers,
// and of constant integers as weights, is a product of integers. docs/numerics.md, "Programs of PyTorch that
// quantise while they run".
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_DYNAMIC_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_DYNAMIC_H_

#include <optional>

#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {

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

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_DYNAMIC_H_
