// Quantisation of 8-bit inputs and outputs, read off the operators beside them where the source keeps it
// nowhere else.
#ifndef QPLAN_SRC_PACKER_IMPORT_IO_QUANTIZATION_H_
#define QPLAN_SRC_PACKER_IMPORT_IO_QUANTIZATION_H_

#include "src/packer/ir/module.h"

namespace qplan {

// Sets the attributes (quantization_attrs.h) that are absent, for 8-bit inputs and outputs whose scale an
// operator names, directly or through operators that only move elements. canonical: the function went through
// the passes. A canonical convolution without padding has the zero point that suits its kernel, with the
// difference in its bias, so it says nothing about its input's zero point.
void set_io_quantization(ir::Function& function, bool canonical);

}  // namespace qplan

#endif  // QPLAN_SRC_PACKER_IMPORT_IO_QUANTIZATION_H_
