// The part that convolutions and matrix products on integers share: from the accumulator to the output.
#ifndef QPLAN_SRC_PACKER_IMPORT_ONNX_MATMUL_TAIL_H_
#define QPLAN_SRC_PACKER_IMPORT_ONNX_MATMUL_TAIL_H_

#include "src/packer/import/onnx/op_context.h"

namespace qplan::onnx {

struct MatmulTail {
  QParams input, kernel, output;
  ir::DType out_dtype;
  int64_t channel_axis = 1;  // of the accumulator
  Value bias;                // int32, its scale the product of the others; nothing: zeros
};
// accumulator -> nn.bias_add -> qnn.requantize.
Value emit_tail(const OpContext& op, const Value& accumulator, const MatmulTail& tail);

// The accumulator's scales, (float)(input scale * kernel scale), scalar or per channel.
ir::ConstantRef product_scales(const QParams& input, const QParams& kernel);

}  // namespace qplan::onnx

#endif  // QPLAN_SRC_PACKER_IMPORT_ONNX_MATMUL_TAIL_H_
