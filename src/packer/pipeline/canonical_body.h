// What must be the same text for every way of writing one network: the canonical function without its border.
//
// The border is how a source hands tensors over: quantised or float, int8 or uint8, NHWC or NCHW. So the
// module whose body is compared has the border Border::kOfTheBody (stages.h): inputs and outputs in the
// dtype of the network's activations (passes/signedness.h) and in NHWC, and one contract for all
// operators, after each source's own contract made integers of its constants. What a source's contract says by
// itself, as `multiplier` does, is then no sign of the activations' dtype any more.
#ifndef QPLAN_SRC_PACKER_PIPELINE_CANONICAL_BODY_H_
#define QPLAN_SRC_PACKER_PIPELINE_CANONICAL_BODY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::pipeline {

// The canonical main function between the qnn.quantize of its inputs and the qnn.dequantize of its outputs:
// no names of inputs and outputs, no function attributes, and of contracts nothing (attributes `contract`,
// `rule`, `multiplier`). Nodes keep their names, for reports. A function that main calls has no border.
ir::Function canonical_body(const ir::Function& main);
// main's body, then those of the functions that it calls, by name.
std::vector<ir::Function> canonical_bodies(const ir::Module& module);

// Two bodies side by side.
struct BodyDifference {
  std::string first;               // the first difference in words; empty: the same but for biases
  std::vector<std::string> lines;  // all of them, up to where operators differ and nothing can be compared
  uint64_t biases = 0;             // int32 constants of nn.bias_add whose values differ by 1
  uint64_t biases_total = 0;       // values compared
};
// Biases may be 1 apart, since sources round them differently; a larger distance is a difference.
BodyDifference compare_bodies(const ir::Function& a, const ir::Function& b);
BodyDifference compare_bodies(const std::vector<ir::Function>& a, const std::vector<ir::Function>& b);

// The difference as lines for people. num_nodes: of the first body; contracts: contracts_of each module.
std::string describe(const BodyDifference& difference, size_t num_nodes, const std::string& contracts_a,
                     const std::string& contracts_b);
// The contracts that the operators of an imported module name, in alphabetical order: "f32e, tfl2".
std::string contracts_of(const ir::Module& module);

}  // namespace qplan::pipeline

#endif  // QPLAN_SRC_PACKER_PIPELINE_CANONICAL_BODY_H_
