// What is known of the order of axes, for the passes that change it.
#ifndef QPLAN_SRC_PACKER_PASSES_LAYOUT_H_
#define QPLAN_SRC_PACKER_PASSES_LAYOUT_H_

#include <cstddef>

#include "src/packer/ir/module.h"

namespace qplan::passes {

// `axes` of the transposes from one order to the other.
inline const ir::Ints kToNhwc = {0, 2, 3, 1};
inline const ir::Ints kToNchw = {0, 3, 1, 2};

// How many of the first operands are data whose order of axes the results simply have too (attribute `axis` moves with
// them): 1 for what is elementwise in the first operand, 2 with broadcasting, all of a concatenation's. 0: the order
// means something to the operator.
size_t num_layout_free_operands(const ir::Node& node);

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_LAYOUT_H_
