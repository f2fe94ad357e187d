// What the packer knows of an operator, one OpDef each. The list of all is ops.def; a definition lies in the
// file of its family (qnn_conv2d.cc, ...). README.md tells operands, attributes and meaning of each in words.
#ifndef QPLAN_SRC_PACKER_OP_OP_DEF_H_
#define QPLAN_SRC_PACKER_OP_OP_DEF_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::op {

// kFloat takes integers too; kIntOrInts is an integer or a list of integers, with different meanings.
enum class AttrKind { kBool, kInt, kFloat, kString, kInts, kIntLists, kIntOrInts };

struct AttrDef {
  std::string name;
  AttrKind kind;
  std::optional<ir::AttrValue> fallback = std::nullopt;  // nullopt: required, or
  bool optional = false;  // may be absent: look with Attrs::find, attr*() refuse it
};

// What inference sees: operand types, constant operands' contents, the node's attributes (attr*() fill in
// fallbacks).
struct InferInput {
  const ir::Function& function;
  const ir::Node& node;

  const ir::TensorType& type(size_t operand) const { return function.type(node.operands.at(operand)); }
};

struct OpDef {
  std::string name;                   // "qnn.conv2d"
  std::vector<std::string> operands;  // names, in order
  bool variadic = false;  // any number (>= 1) of operands, written as one tuple: concatenate((%a, %b), …)
  std::vector<AttrDef> attrs = {};  // printed in this order, only where they differ from the fallback
  // Result types. Throws PackError with a text that begins after the node's name: "input channels 24 are not
  // ...".
  std::vector<ir::TensorType> (*infer)(const InferInput& input) = nullptr;
  // Host-only evaluation for operators without a kernel (shape arithmetic); null for the others.
  std::vector<ir::ConstantRef> (*evaluate)(const ir::Node& node,
                                           std::span<const ir::ConstantRef> operands) = nullptr;
};

// The operator of that name; null when unknown.
const OpDef* find_op(std::string_view name);
// The same for names that this code itself writes; PackError (QPLAN_INTERNAL) when unknown.
const OpDef& get_op(std::string_view name);
std::span<const OpDef* const> all_ops();

// Checks operand count and attributes, then infers. Errors begin with operator and node name.
std::vector<ir::TensorType> infer_types(const ir::Function& function, const ir::Node& node);

// The attribute, or the fallback of the OpDef.
const ir::AttrValue& attr(const ir::Node& node, std::string_view name);
int64_t attr_int(const ir::Node& node, std::string_view name);
double attr_float(const ir::Node& node, std::string_view name);
bool attr_bool(const ir::Node& node, std::string_view name);
const std::string& attr_string(const ir::Node& node, std::string_view name);
const ir::Ints& attr_ints(const ir::Node& node, std::string_view name);
const std::vector<ir::Ints>& attr_int_lists(const ir::Node& node, std::string_view name);

}  // namespace qplan::op

#endif  // QPLAN_SRC_PACKER_OP_OP_DEF_H_
