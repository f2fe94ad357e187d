// The rows of qdq_to_integer, by what they treat. All are tried at the qnn.quantize that says in which
// numbers, and by which contract, the result is meant; rows that move a qnn.dequantize are tried at the
// operator that it is moved after.
#ifndef QPLAN_SRC_PACKER_PASSES_QDQ_TO_INTEGER_H_
#define QPLAN_SRC_PACKER_PASSES_QDQ_TO_INTEGER_H_

#include <vector>

#include "src/packer/pattern/rewrite.h"

namespace qplan::passes {

std::vector<pattern::Rewrite> movement_rewrites();  // reshape, transpose, pad, max pool, concatenate, clip
std::vector<pattern::Rewrite> layer_rewrites();     // convolutions and fully connected layers
std::vector<pattern::Rewrite>
elementwise_rewrites();  // add, subtract, multiply; pools, means, softmax, sigmoid

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_QDQ_TO_INTEGER_H_
