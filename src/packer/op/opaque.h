// Operators whose insides qplan does not know, as the attributes of a node have them: `custom`, an operator
// of the application's (qplan/custom_operator.h), and `npu.program`, which another compiler made.
#ifndef QPLAN_SRC_PACKER_OP_OPAQUE_H_
#define QPLAN_SRC_PACKER_OP_OPAQUE_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::op {

// An option: numbers, which are finite, or a text.
struct CustomOption {
  std::string name;
  std::vector<double> numbers = {};
  std::optional<std::string> text = std::nullopt;
  bool operator==(const CustomOption&) const = default;
};

struct CustomAttributes {
  std::string name;  // of the operator: "TFLite_Detection_PostProcess"
  std::vector<CustomOption> options;
  std::vector<ir::TensorType> outputs;
  // One for each input, then one for each output; a scale of 0 says that the tensor is not quantised.
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  uint64_t scratch_bytes = 0;
  uint64_t state_bytes = 0;  // above 0: the last operand and the last result are a state beside those
};

// What a plan can hold.
inline constexpr size_t kMaxCustomOptions = 256;

// The dtypes of operands and results of such operators.
inline constexpr std::initializer_list<ir::DType> kDeclaredDTypes = {ir::kInt8,  ir::kUint8, ir::kInt16,
                                                                     ir::kInt32, ir::kInt64, ir::kFloat32};
// The results that attributes `shapes` and `dtypes` declare, of operators whose results nothing else says.
std::vector<ir::TensorType> declared_results(const ir::Node& node);

ir::Attrs attrs_of(const CustomAttributes& custom);
// PackError (QPLAN_MODEL_INVALID) with a text that begins after the node's name.
CustomAttributes custom_of(const ir::Node& node);

// `npu.program`: a program that another compiler made for an NPU, as the attributes of a node have it. It has
// no other form: which operators became it is not known.

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

#endif  // QPLAN_SRC_PACKER_OP_OPAQUE_H_
