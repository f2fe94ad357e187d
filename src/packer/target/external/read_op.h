// A matched composite as the operator of the driver ABI: what `supported` is asked about, and what the
// operator list records.
#ifndef QPLAN_SRC_PACKER_TARGET_EXTERNAL_READ_OP_H_
#define QPLAN_SRC_PACKER_TARGET_EXTERNAL_READ_OP_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "qplan/npu_oplist.h"
#include "src/packer/target/target.h"

namespace qplan::target::external {

// op leads into the other members: neither copied nor moved.
struct ReadOp {
  ReadOp() = default;
  ReadOp(const ReadOp&) = delete;
  ReadOp& operator=(const ReadOp&) = delete;

  qplan_npu_op op = {};
  std::string name;
  std::vector<ir::ValueId> inputs;  // of the candidate's function: activations, or constants
  ir::ValueId output;
  std::array<DLTensor, 5> tensors = {};  // two inputs, weights, bias, output; weights and bias have data
  std::array<ir::Shape, 5> shapes;
  ir::ConstantRef weights, bias;
  std::vector<int32_t> multipliers, shifts;
  std::vector<float> scales;
};

// A candidate whose pattern names what it matched as the packer's do (patterns.h): "product", "pad",
// "bias_add", "requantize", "sum", "pool", "clip". "" or what cannot be said in an operator list; then op is
// not to be used.
std::string read_op(const Candidate& candidate, ReadOp* result);

}  // namespace qplan::target::external

#endif  // QPLAN_SRC_PACKER_TARGET_EXTERNAL_READ_OP_H_
