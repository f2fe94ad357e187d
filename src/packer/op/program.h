// `npu.program`: a program that another compiler made for an NPU, as the attributes of a node have it. It has
// no other form: which operators became it is not known.
#ifndef QPLAN_SRC_PACKER_OP_PROGRAM_H_
#define QPLAN_SRC_PACKER_OP_PROGRAM_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::op {

inline constexpr std::string_view kProgramOperator = "npu.program";

struct ProgramAttributes {
  std::string format;  // of the program's bytes: "ethos-u"
  std::string device;  // that it was made for: "ethos-u55-128"
  std::vector<ir::TensorType> outputs;
  bool has_constants = false;
  // The memory that it works in, and a faster one beside it; bytes.
  uint64_t memory_bytes = 0, fast_memory_bytes = 0;
  // Where its inputs are in the memory before it runs, and its outputs after it.
  std::vector<uint64_t> input_offsets, output_offsets;
};

ir::Attrs attrs_of(const ProgramAttributes& program);
// PackError (QPLAN_MODEL_INVALID) with a text that begins after the node's name.
ProgramAttributes program_of(const ir::Node& node);

// The node's operands: the program and its constants, which are constants, then its inputs.
inline size_t first_input(const ProgramAttributes& program) { return program.has_constants ? 2 : 1; }

}  // namespace qplan::op

#endif  // QPLAN_SRC_PACKER_OP_PROGRAM_H_
