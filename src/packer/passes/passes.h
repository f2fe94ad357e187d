// The passes of passes.def as functions, for the table and for tests.
#ifndef QPLAN_SRC_PACKER_PASSES_PASSES_H_
#define QPLAN_SRC_PACKER_PASSES_PASSES_H_

#include <memory>
#include <string>
#include <vector>

#include "src/packer/passes/pass.h"
#include "src/packer/pattern/rewrite.h"

namespace qplan::passes {

#define PASS(name)                                                                            \
  std::unique_ptr<ir::Function> run_##name(const ir::Module& module, const ir::Function& pre, \
                                           PassContext& context);
#define REWRITE_PASS(name) \
  PASS(name)               \
  std::span<const pattern::Rewrite> name##_rewrites();
#include "src/packer/passes/passes.def"
#undef REWRITE_PASS
#undef PASS

// The rows of qdq_to_integer, by what they treat. All are tried at the qnn.quantize that says in which
// numbers, and by which contract, the result is meant; rows that move a qnn.dequantize are tried at the
// operator that it is moved after.
std::vector<pattern::Rewrite> movement_rewrites();  // reshape, transpose, pad, max pool, concatenate, clip
std::vector<pattern::Rewrite> layer_rewrites();     // convolutions and fully connected layers
std::vector<pattern::Rewrite>
elementwise_rewrites();  // add, subtract, multiply; pools, means, softmax, sigmoid

// Why float operators are left: for the error of a target that has no kernel for them.

// Float operators that the passes left in a function which they do not change any more, with the near misses
// of the rewrites that could have taken them: those that are tried at the qnn.quantize after them. One line a
// place, of the first few places; empty when only moved floats, qnn.quantize and qnn.dequantize are left.
std::string explain_float_leftovers(const ir::Function& function, const PassContext& context);

// The reasons why rewrites of qdq_to_integer whose pattern matches do not fire, of the first few: as long as
// floats may become integers, since the patterns look for the integers under constants.
std::vector<std::string> explain_refusals(const ir::Function& function, const PassContext& context);

// Whether the function computes in float and nothing of it is quantised.
bool is_float_network(const ir::Function& function);

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_PASSES_H_
