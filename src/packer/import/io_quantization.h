// Quantisation of 8-bit inputs and outputs, read off the operators beside them where the source keeps it
// nowhere else.
#ifndef QPLAN_SRC_PACKER_IMPORT_IO_QUANTIZATION_H_
#define QPLAN_SRC_PACKER_IMPORT_IO_QUANTIZATION_H_

#include "src/packer/ir/module.h"

namespace qplan {

// Sets the attributes (quantization_attrs.h) that are absent, for 8-bit inputs and outputs whose scale an
// operator names, itself or behind operators that only move elements.
void set_io_quantization(ir::Function& function);

}  // namespace qplan

#endif  // QPLAN_SRC_PACKER_IMPORT_IO_QUANTIZATION_H_
