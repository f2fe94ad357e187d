// Which axis a Softmax works on, for the float operator and the quantised one.
#ifndef QPLAN_SRC_PACKER_IMPORT_ONNX_SOFTMAX_H_
#define QPLAN_SRC_PACKER_IMPORT_ONNX_SOFTMAX_H_

#include "src/packer/import/onnx/op_context.h"

namespace qplan::onnx {

// The data as this shape, along this axis.
struct SoftmaxShape {
  ir::Shape shape;
  int64_t axis;
};
// Reads attribute axis. From opset 13 on it names one axis, before it all from there on.
SoftmaxShape softmax_shape(const OpContext& op, const ir::Shape& shape, int64_t opset);

}  // namespace qplan::onnx

#endif  // QPLAN_SRC_PACKER_IMPORT_ONNX_SOFTMAX_H_
