// pad, transpose, reshape: one tensor in, the same elements elsewhere.
#include "src/packer/ir/cat.h"
#include "src/packer/target/cpu/table.h"

namespace qplan::target::cpu {
namespace {

// The fill of nn.pad: a scalar of the data's dtype, or the float that Relay prints for it.
int32_t integer_fill(const ir::Constant& value) {
  const ir::DType dtype = value.type().dtype;
  if (value.type().num_elements() != 1) refuse("its pad value must be a scalar");
  if (dtype == ir::kInt8) return value.as<int8_t>()[0];
  if (dtype == ir::kUint8) return value.as<uint8_t>()[0];
  if (dtype == ir::kInt32) return value.as<int32_t>()[0];
  if (dtype != ir::kFloat32) refuse("its pad value is " + ir::to_string(dtype));
  const float fill = value.as<float>()[0];
  if (!(fill >= -16777216.0f && fill <= 16777216.0f) ||
      static_cast<float>(static_cast<int32_t>(fill)) != fill) {
    refuse("its pad value is not an integer");
  }
  return static_cast<int32_t>(fill);
}

std::vector<uint32_t> to_uint32(const ir::Ints& values) {
  std::vector<uint32_t> result;
  for (const int64_t value : values) result.push_back(static_cast<uint32_t>(value));
  return result;
}

int32_t pad_fill(const Lowering& lowering, const ir::Node& node) {
  const ir::DType dtype = lowering.type(node.operands[0]).dtype;
  const int32_t value = integer_fill(lowering.constant(node.operands[1], "the pad value"));
  if (dtype.is_float() && value != 0) refuse("the kernel pads float32 with 0 only");
  if (!dtype.is_float() && dtype.bits <= 32 && (value < dtype.min() || value > dtype.max())) {
    refuse("pad value " + std::to_string(value) + " is not a value of " + ir::to_string(dtype));
  }
  return value;
}

std::vector<uint32_t> pad_before(const ir::Node& node) {
  ir::Ints before;
  for (const ir::Ints& pair : op::attr_int_lists(node, "pad_width")) {
    if (pair.size() != 2 || pair[0] < 0 || pair[1] < 0)
      refuse("pad_width must be pairs that are not negative");
    before.push_back(pair[0]);
  }
  return to_uint32(before);
}

NodeSequence match_pad(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "nn.pad") ? NodeSequence{node} : NodeSequence{};
}

std::vector<Constraint> constraints_of_pad() {
  return {
      {"cpu.pad.mode", "the mode is `constant`", kNothingToChange,
       [](const Matched& match) -> std::string {
         const std::string& mode = op::attr_string(*node_of(match), "pad_mode");
         return mode == "constant" ? "" : cat("pad_mode '", mode, "', the kernel knows 'constant'");
       }},
      {"cpu.pad.value", "the value is a constant, a scalar and an integer of the data's dtype; 0 for float32",
       kMakeConstant,
       [](const Matched& match) {
         return refusal_of([&] { (void)pad_fill(match.lowering, *node_of(match)); });
       }},
      {"cpu.pad.width", "nothing is cut off", kNothingToChange,
       [](const Matched& match) { return refusal_of([&] { (void)pad_before(*node_of(match)); }); }}};
}

void lower_pad(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  ProgramStep step = make_step(kKernel_pad, node);
  step.inputs = {lowering.tensor(node.operands[0])};
  step.outputs = {lowering.define(node.results[0])};
  step.params = PadParams{.before = pad_before(node), .value = pad_fill(lowering, node)};
  lowering.add_step(std::move(step));
}

NodeSequence match_transpose(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "transpose") ? NodeSequence{node} : NodeSequence{};
}

void lower_transpose(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  ProgramStep step = make_step(kKernel_transpose, node);
  step.inputs = {lowering.tensor(node.operands[0])};
  step.outputs = {lowering.define(node.results[0])};
  step.params = TransposeParams{.permutation = to_uint32(op::attr_ints(node, "axes"))};
  lowering.add_step(std::move(step));
}

NodeSequence match_reshape(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "reshape") ? NodeSequence{node} : NodeSequence{};
}

void lower_reshape(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  ProgramStep step = make_step(kKernel_copy, node);
  step.inputs = {lowering.tensor(node.operands[0])};
  step.outputs = {lowering.define(node.results[0])};
  step.params = NoParams{};
  lowering.add_step(std::move(step));
}

}  // namespace

std::vector<TableRow> movement_rows() {
  return {{"pad", match_pad, constraints_of_pad(), lower_pad},
          {"transpose", match_transpose, {}, lower_transpose},
          {"reshape", match_reshape, {}, lower_reshape}};
}

}  // namespace qplan::target::cpu
