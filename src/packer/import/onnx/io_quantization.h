// ONNX keeps the quantisation of inputs and outputs in the operators beside them; the function wants it as
// attributes (import/quantization_attrs.h).
#ifndef QPLAN_SRC_PACKER_IMPORT_ONNX_IO_QUANTIZATION_H_
#define QPLAN_SRC_PACKER_IMPORT_ONNX_IO_QUANTIZATION_H_

#include "src/packer/ir/module.h"

namespace qplan::onnx {

// For 8-bit inputs and outputs whose scale an operator names, itself or behind operators that only move
// elements.
void set_io_quantization(ir::Function& function);

}  // namespace qplan::onnx

#endif  // QPLAN_SRC_PACKER_IMPORT_ONNX_IO_QUANTIZATION_H_
