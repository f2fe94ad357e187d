// Which of the two 8-bit dtypes the activations of a network have in canonical form.
#ifndef QPLAN_SRC_PACKER_PASSES_ACTIVATION_DTYPE_H_
#define QPLAN_SRC_PACKER_PASSES_ACTIVATION_DTYPE_H_

#include "src/packer/ir/module.h"

namespace qplan::passes {

// int8, or uint8 for a network that only TFLite's uint8 arithmetic can mean. Two signs tell such a network:
// weights with a zero point, which TFLite's int8 operators do not know, and a convolution whose multiplier is
// formed from the float32 product of its scales, as TFLite's uint8 convolutions do. Neither changes when a
// source moves activations or weights between int8 and uint8, so all forms of a network give one answer.
ir::DType activation_dtype(const ir::Function& function);

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_ACTIVATION_DTYPE_H_
