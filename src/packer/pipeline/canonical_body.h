// What must be the same text for every way of writing one network: the canonical function without its border.
#ifndef QPLAN_SRC_PACKER_PIPELINE_CANONICAL_BODY_H_
#define QPLAN_SRC_PACKER_PIPELINE_CANONICAL_BODY_H_

#include <cstdint>
#include <string>

#include "src/packer/ir/module.h"

namespace qplan::pipeline {

// The canonical main function between the qnn.quantize of its inputs and the qnn.dequantize of its outputs:
// no names, no function attributes, and of contracts nothing (attributes `contract`, `rule`, `multiplier`).
ir::Function canonical_body(const ir::Function& main);

// Two bodies side by side.
struct BodyDifference {
  std::string first;          // the first difference in words; empty: the same but for biases
  uint64_t biases = 0;        // int32 constants of nn.bias_add whose values differ by 1
  uint64_t biases_total = 0;  // values compared
};
// Biases may be 1 apart, since sources round them differently; a larger distance is a difference.
BodyDifference compare_bodies(const ir::Function& a, const ir::Function& b);

}  // namespace qplan::pipeline

#endif  // QPLAN_SRC_PACKER_PIPELINE_CANONICAL_BODY_H_
