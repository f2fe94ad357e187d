#include <algorithm>

#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/text/syntax.h"

namespace qplan::text {
namespace {

// Operators of Relay's that give back their operand: no OpDef, and attributes that mean nothing.
constexpr std::string_view kIdentities[] = {"copy", "nn.dropout", "annotation.stop_fusion"};
const op::RelayAttrDef kDropoutRate = {"rate", {"*"}};

// The operator that has another one's name in Relay, and what it says of that name.
struct Alias {
  const op::OpDef* op = nullptr;
  const op::RelayName* name = nullptr;
};

Alias find_alias(std::string_view relay_name) {
  for (const op::OpDef* op : op::all_ops()) {
    const auto it = std::ranges::find(op->relay_names, relay_name, &op::RelayName::name);
    if (it != op->relay_names.end()) return {op, &*it};
  }
  return {};
}

const op::RelayAttrDef* find_attr(const std::vector<op::RelayAttrDef>& attrs, std::string_view name) {
  const auto it = std::ranges::find(attrs, name, &op::RelayAttrDef::name);
  return it == attrs.end() ? nullptr : &*it;
}

const op::RelayAttrDef* find_attr(std::string_view relay_name, std::string_view attr) {
  if (is_identity(relay_name)) return attr == kDropoutRate.name ? &kDropoutRate : nullptr;
  if (const op::OpDef* op = op::find_op(relay_name)) return find_attr(op->relay_attrs, attr);
  const Alias alias = find_alias(relay_name);
  if (alias.op == nullptr) return nullptr;
  const op::RelayAttrDef* own = find_attr(alias.name->attrs, attr);
  return own != nullptr ? own : find_attr(alias.op->relay_attrs, attr);
}

std::string value_text(const ir::AttrValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "True" : "False";
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* ints = std::get_if<ir::Ints>(&value)) {
    std::string joined = "[";
    for (const int64_t i : *ints) joined += (joined.size() == 1 ? "" : ", ") + std::to_string(i);
    return joined + "]";
  }
  return "this value";
}

RelayAttr keep(std::string name, ir::AttrValue value) {
  return {.kind = RelayAttr::Kind::kKeep, .name = std::move(name), .value = std::move(value), .reason = ""};
}
RelayAttr drop() { return {.kind = RelayAttr::Kind::kDrop, .name = "", .value = {}, .reason = ""}; }
RelayAttr refuse(std::string reason) {
  return {.kind = RelayAttr::Kind::kRefuse, .name = "", .value = {}, .reason = std::move(reason)};
}

}  // namespace

std::string_view ir_operator(std::string_view relay_name) {
  const op::OpDef* op = find_alias(relay_name).op;
  return op != nullptr ? std::string_view(op->name) : relay_name;
}

bool is_identity(std::string_view relay_name) {
  return std::ranges::find(kIdentities, relay_name) != std::end(kIdentities);
}

RelayAttr read_relay_attr(std::string_view relay_name, const std::string& attr, const ir::AttrValue& value) {
  const op::RelayAttrDef* def = find_attr(relay_name, attr);
  if (def == nullptr) return keep(attr, value);
  const std::string text = value_text(value);
  if (def->read != nullptr) return def->read(text);
  std::string expected;
  for (const std::string& allowed : def->ignored) {
    if (allowed == "*" || allowed == text) return drop();
    expected += cat(expected.empty() ? "" : " or ", allowed.empty() ? std::string("\"\"") : allowed);
  }
  return refuse(cat("attribute '", attr, "' is ", text, ", which is not supported, expected ", expected));
}

void complete_relay_call(ir::Node* node, const std::vector<ir::TensorType>& operands) {
  if (node->op == nullptr || operands.empty() || node->op->complete == nullptr) return;
  node->op->complete(node, operands);
}

}  // namespace qplan::text
