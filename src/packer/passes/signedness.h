// What each operator does with the dtype of its 8-bit operands and results: where the same operator computes
// the same reals when int8 q with zero point z becomes uint8 q + 128 with zero point z + 128, or the other
// way.
#ifndef QPLAN_SRC_PACKER_PASSES_SIGNEDNESS_H_
#define QPLAN_SRC_PACKER_PASSES_SIGNEDNESS_H_

#include "src/packer/ir/module.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {

// Whether the same operator computes the same reals when its data, or its results, change their dtype so;
// false for operators that look at the integers themselves (cast, integer arithmetic).
bool may_change_signedness(const op::OpDef* op);
// Whether data and results can only change together: they have one dtype.
bool has_one_dtype(const op::OpDef& op);

// Null, or why the other dtype gives other reals at times under the node's contract.
const char* rounds_by_signedness(const pattern::Pre& pre, pattern::PreNode node);
// Whether the node's contract has zero points at all; those for devices without them keep their dtypes.
bool contract_has_zero_points(pattern::PreNode node);

bool is_8_bit(ir::DType dtype);
// A qnn.requantize whose results are the same reals, in the same dtype or with every integer moved by 128.
bool keeps_reals(const pattern::Pre& pre, pattern::PreNode node);

// ---- constants ----
ir::ConstantRef other_signedness(const ir::Constant& data);  // each byte XOR 0x80
ir::ConstantRef moved_zero_points(const ir::Constant& zero_points, int32_t offset);

// Which of the two 8-bit dtypes the activations of a network have in canonical form.

// int8, or uint8 for a network that only TFLite's uint8 arithmetic can mean. Two signs tell such a network:
// weights with a zero point, which TFLite's int8 operators do not know, and a convolution whose multiplier is
// formed from the float32 product of its scales, as TFLite's uint8 convolutions do. Neither changes when a
// source moves activations or weights between int8 and uint8, so all forms of a network give one answer.
ir::DType activation_dtype(const ir::Function& function);

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_SIGNEDNESS_H_
