#include "src/packer/text/syntax.h"

#include <algorithm>

#include "src/packer/ir/cat.h"
#include "src/packer/ir/types.h"
#include "src/packer/op/op_def.h"

namespace qplan::text {
namespace {

ir::DType parse_dtype(TokenStream* tokens) {
  const Token token = tokens->take(TokenKind::kIdentifier, "a dtype like int8");
  const std::optional<ir::DType> dtype = ir::dtype_from_string(token.text);
  if (!dtype) tokens->fail_at(token, "unknown dtype '" + std::string(token.text) + "'");
  return *dtype;
}

ir::Ints parse_ints(TokenStream* tokens) {
  ir::Ints values;
  tokens->expect("[");
  while (!tokens->is("]")) {
    values.push_back(parse_integer(tokens));
    if (!tokens->accept(",")) break;
  }
  tokens->expect("]");
  return values;
}

ir::AttrValue parse_list(TokenStream* tokens) {
  if (!tokens->next_is("[")) return parse_ints(tokens);
  std::vector<ir::Ints> lists;
  tokens->expect("[");
  while (!tokens->is("]")) {
    lists.push_back(parse_ints(tokens));
    if (!tokens->accept(",")) break;
  }
  tokens->expect("]");
  return lists;
}

}  // namespace

ir::TensorType parse_tensor_type(TokenStream* tokens) {
  ir::TensorType type;
  const Token begin = tokens->token();
  if (!tokens->is_word("Tensor")) {
    type.dtype = parse_dtype(tokens);
    return type;
  }
  tokens->advance();
  tokens->expect("[");
  tokens->expect("(");
  while (!tokens->is(")")) {
    type.shape.push_back(parse_integer(tokens));
    if (!tokens->accept(",")) break;
  }
  tokens->expect(")");
  tokens->expect(",");
  type.dtype = parse_dtype(tokens);
  tokens->expect("]");
  const std::string error = ir::type_error(type);
  if (!error.empty()) tokens->fail_at(begin, error);
  return type;
}

ResultType parse_result_type(TokenStream* tokens) {
  ResultType result;
  if (!tokens->accept("(")) {
    result.types.push_back(parse_tensor_type(tokens));
    return result;
  }
  result.tuple = true;
  while (!tokens->is(")")) {
    result.types.push_back(parse_tensor_type(tokens));
    if (!tokens->accept(",")) break;
  }
  tokens->expect(")");
  return result;
}

int64_t parse_integer(TokenStream* tokens) {
  const Token token = tokens->take(TokenKind::kNumber, "an integer");
  const std::optional<int64_t> value = parse_int(token.text);
  if (!value) tokens->fail_at(token, "'" + std::string(token.text) + "' is not an integer of 64 bits");
  return *value;
}

std::vector<std::string> parse_strings(TokenStream* tokens) {
  std::vector<std::string> strings;
  tokens->expect("[");
  while (!tokens->is("]")) {
    strings.push_back(tokens->take(TokenKind::kString, "a string").value);
    if (!tokens->accept(",")) break;
  }
  tokens->expect("]");
  return strings;
}

AttrName parse_attr_name(TokenStream* tokens) {
  const Token token = tokens->take();
  tokens->expect("=");
  if (token.kind == TokenKind::kString) return {token.value, true};
  return {std::string(token.text), false};
}

std::optional<ir::AttrValue> parse_attr_value(TokenStream* tokens) {
  if (tokens->is("[")) return parse_list(tokens);
  if (tokens->is_word("None")) {
    tokens->advance();
    return std::nullopt;
  }
  if (tokens->is_word("True") || tokens->is_word("False")) return tokens->take().text == "True";
  if (tokens->token().kind == TokenKind::kString) return tokens->take().value;
  if (tokens->token().kind != TokenKind::kNumber) tokens->unexpected("an attribute's value");
  const Token token = tokens->token();
  const std::optional<Number> number = split_number(token.text);
  if (!number || !number->dtype.is_float()) return parse_integer(tokens);
  const std::optional<double> value = parse_float(number->dtype, number->digits);
  if (!value) {
    tokens->fail("'" + std::string(token.text) + "' is not a value of " + ir::to_string(number->dtype));
  }
  tokens->advance();
  return *value;
}

ir::AttrValue coerce_attr(const op::OpDef& op, const std::string& name, ir::AttrValue value) {
  const auto def = std::ranges::find(op.attrs, name, &op::AttrDef::name);
  if (def == op.attrs.end()) return value;
  const auto* integer = std::get_if<int64_t>(&value);
  const auto* ints = std::get_if<ir::Ints>(&value);
  switch (def->kind) {
    case op::AttrKind::kBool:
      if (integer != nullptr && (*integer == 0 || *integer == 1)) return *integer == 1;
      break;
    case op::AttrKind::kInt:
      if (ints != nullptr && ints->size() == 1) return (*ints)[0];
      break;
    case op::AttrKind::kFloat:
      if (integer != nullptr) return static_cast<double>(*integer);
      break;
    case op::AttrKind::kInts:
      if (integer != nullptr) return ir::Ints{*integer};
      break;
    case op::AttrKind::kIntLists:
      if (ints != nullptr && ints->empty()) return std::vector<ir::Ints>{};
      break;
    case op::AttrKind::kString:
    case op::AttrKind::kIntOrInts:
      break;
  }
  return value;
}

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
