// Why float operators are left: for the error of a target that has no kernel for them.
#ifndef QPLAN_SRC_PACKER_PASSES_FLOAT_LEFTOVERS_H_
#define QPLAN_SRC_PACKER_PASSES_FLOAT_LEFTOVERS_H_

#include <string>

#include "src/packer/passes/pass.h"

namespace qplan::passes {

// Float operators that the passes left in a function which they do not change any more, with the near misses
// of the rewrites that could have taken them: those that are tried at the qnn.quantize after them. One line a
// place, of the first few places; empty when only moved floats, qnn.quantize and qnn.dequantize are left.
std::string explain_float_leftovers(const ir::Function& function, const PassContext& context);

// Whether the function computes in float and nothing of it is quantised.
bool is_float_network(const ir::Function& function);

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_FLOAT_LEFTOVERS_H_
