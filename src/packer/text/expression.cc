// The bodies of functions: expressions, calls, constants.
#include <algorithm>
#include <functional>

#include "src/packer/ir/cat.h"
#include "src/packer/text/parser.h"
#include "src/packer/text/syntax.h"

namespace qplan::text {
namespace {

// Expressions inside of expressions; bodies as Relay prints them need 2.
constexpr size_t kMaxDepth = 100;
// A few characters of a text use a tuple of any size, or make one. This much of it all together.
constexpr size_t kMaxTupleValues = 1'000'000;

// Relay had the last operand of some calls as an attribute once: nn.pad(%x, pad_value=0f, ...).
void take_operand_attr(ir::Node* node, const std::function<ir::ValueId(float)>& add_scalar) {
  if (node->op->variadic || node->operands.size() + 1 != node->op->operands.size()) return;
  const op::OperandDef& operand = node->op->operands.back();
  const ir::AttrValue* value = node->attrs.find(operand.name);
  if (!operand.may_be_attr || value == nullptr) return;
  if (const auto* real = std::get_if<double>(value)) {
    node->operands.push_back(add_scalar(static_cast<float>(*real)));
  } else if (const auto* integer = std::get_if<int64_t>(value)) {
    node->operands.push_back(add_scalar(static_cast<float>(*integer)));
  } else {
    return;
  }
  node->attrs.erase(operand.name);
}

}  // namespace

// ---- expressions

void Parser::charge(const Token& place, size_t values) {
  if (values <= 1) return;
  charged_values_ += values;
  if (charged_values_ > kMaxTupleValues) {
    tokens_.fail_at(place, cat("the tuples of the text have more than ", kMaxTupleValues, " values"));
  }
}

Binding Parser::parse_expression(size_t depth) {
  if (depth > kMaxDepth) tokens_.fail("expressions are nested too deeply, name the inner ones: %0 = ...;");
  Binding binding = parse_primary(depth);
  while (tokens_.accept(".")) {
    const Token index = tokens_.take(TokenKind::kNumber, "an index into the tuple");
    const std::optional<int64_t> i = parse_int(index.text);
    if (!i || *i < 0 || static_cast<size_t>(*i) >= binding.values.size()) {
      tokens_.fail_at(
          index, "there is no " + excerpt(index) + " in a tuple of " + std::to_string(binding.values.size()));
    }
    binding = single(binding.values[static_cast<size_t>(*i)]);
  }
  const std::string_view comment = tokens_.token().type_comment;
  if (!comment.empty()) {
    for (const ir::ValueId id : binding.values) draft_[id].comment = comment;
  }
  return binding;
}

Binding Parser::parse_primary(size_t depth) {
  const Token token = tokens_.token();
  switch (token.kind) {
    case TokenKind::kNumber:
      return single(parse_scalar());
    case TokenKind::kLocal:
      tokens_.advance();
      return parse_local(token);
    case TokenKind::kGlobal:
      tokens_.advance();
      return parse_call(token, depth);
    case TokenKind::kIdentifier:
      break;
    default:
      if (token.is("(")) return parse_tuple(depth);
      tokens_.unexpected("an expression");
  }
  if (token.is_word("True") || token.is_word("False")) return single(parse_scalar());
  if (token.is_word("meta")) return single(parse_meta());
  if (token.is_word("const")) return single(parse_const());
  for (const std::string_view word : {"fn", "if", "match", "ref", "free_var", "let"}) {
    if (token.is_word(word)) tokens_.fail(excerpt(token) + " is not supported here");
  }
  tokens_.advance();
  return parse_call(token, depth);
}

Binding Parser::parse_tuple(size_t depth) {
  tokens_.expect("(");
  Binding tuple;
  bool comma = false;
  while (!tokens_.is(")")) {
    const Token place = tokens_.token();
    const Binding field = parse_expression(depth + 1);
    if (field.tuple) tokens_.fail_at(place, "a tuple in a tuple is not supported");
    tuple.values.push_back(field.values.at(0));
    comma = tokens_.accept(",");
    if (!comma) break;
  }
  tokens_.expect(")");
  tuple.tuple = tuple.values.size() != 1 || comma;  // (%x) are parentheses, (%x,) is a tuple
  return tuple;
}

// A name may have dots itself: %features.0.weight. Where there is no such name, %3.0 is the first result of
// %3; else it is free.
Binding Parser::parse_local(const Token& name) {
  const std::string key = key_of(name);
  if (const auto it = names_.find(key); it != names_.end()) {
    charge(name, it->second.values.size());
    return it->second;
  }
  const size_t dot = name.quoted ? std::string::npos : name.value.rfind('.');
  const auto it = dot == std::string::npos ? names_.end() : names_.find(name.value.substr(0, dot));
  const std::optional<int64_t> index =
      dot == std::string::npos ? std::nullopt : parse_int(std::string_view(name.value).substr(dot + 1));
  if (it != names_.end() && index) {
    const std::vector<ir::ValueId>& values = it->second.values;
    if (*index >= 0 && static_cast<size_t>(*index) < values.size()) {
      return single(values[static_cast<size_t>(*index)]);
    }
    tokens_.fail_at(name, "there is no " + excerpt(name) + ", '%" + it->first + "' has " +
                              std::to_string(values.size()) + (values.size() == 1 ? " result" : " results"));
  }
  const bool is_number = !name.quoted && !key.empty() && key[0] >= '0' && key[0] <= '9';
  if (!has_free_variables_ || is_number) tokens_.fail_at(name, excerpt(name) + " is not defined");
  Binding param = single(add_param(name));
  names_.emplace(key, param);
  return param;
}

Binding Parser::parse_call(const Token& callee, size_t depth) {
  if (callee.is_word("qnn.concatenate")) return parse_qnn_concatenate(callee, depth);
  ir::Node node;
  if (callee.kind == TokenKind::kGlobal) {
    node.callee = callee.value;
  } else {
    node.op = op::find_op(ir_operator(callee.text));
    if (node.op == nullptr && !is_identity(callee.text)) {
      tokens_.fail_at(callee, "unknown operator " + excerpt(callee));
    }
  }
  tokens_.expect("(");
  size_t num_args = 0;
  std::vector<std::string> attrs;
  while (!tokens_.is(")")) {
    if (tokens_.at_attr()) {
      attrs.push_back(parse_node_attr(callee.text, node.op, &node));
    } else {
      parse_argument(node.op, depth, &node, &num_args);
    }
    if (!tokens_.accept(",")) break;
  }
  tokens_.expect(")");
  if (const std::string missing = missing_relay_attr(callee.text, attrs); !missing.empty()) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, tokens_.locate(callee.begin, missing));
  }
  if (callee.kind == TokenKind::kGlobal) return add_call(callee, std::move(node));
  if (node.op != nullptr) return add_operator(callee, std::move(node));
  if (node.operands.size() != 1) tokens_.fail_at(callee, excerpt(callee) + " has one operand");
  return single(node.operands[0]);
}

// qnn.concatenate((%a, %b), (scale_a, scale_b), (zero_a, zero_b), scale, zero, axis=1) concatenates what is
// requantised to the last two, where it has others.
Binding Parser::parse_qnn_concatenate(const Token& callee, size_t depth) {
  std::vector<Binding> arguments;
  ir::Node node;
  node.op = &op::get_op("concatenate");
  tokens_.expect("(");
  while (!tokens_.is(")")) {
    if (tokens_.at_attr()) {
      parse_node_attr(callee.text, node.op, &node);
    } else {
      arguments.push_back(parse_expression(depth + 1));
    }
    if (!tokens_.accept(",")) break;
  }
  tokens_.expect(")");
  const size_t count = arguments.empty() ? 0 : arguments[0].values.size();
  if (arguments.size() != 5 || arguments[1].values.size() != count || arguments[2].values.size() != count ||
      arguments[3].values.size() != 1 || arguments[4].values.size() != 1) {
    tokens_.fail_at(
        callee,
        "expected a tuple of data, as long ones of scales and of zero points, a scale and a zero point");
  }
  const ir::ValueId scale = arguments[3].values[0], zero_point = arguments[4].values[0];
  const auto same = [&](ir::ValueId a, ir::ValueId b) {
    const ir::ConstantRef &x = draft_[a].constant, &y = draft_[b].constant;
    return a == b || (x != nullptr && y != nullptr && x->type() == y->type() &&
                      std::ranges::equal(x->bytes(), y->bytes()));
  };
  for (size_t i = 0; i < count; ++i) {
    const ir::ValueId data = arguments[0].values[i], own_scale = arguments[1].values[i],
                      own_zero_point = arguments[2].values[i];
    if (same(own_scale, scale) && same(own_zero_point, zero_point)) {
      node.operands.push_back(data);
      continue;
    }
    ir::Node requantize;
    requantize.op = &op::get_op("qnn.requantize");
    requantize.operands = {data, own_scale, own_zero_point, scale, zero_point};
    requantize.attrs.set("out_dtype", std::string(op::kOperandDtype));
    node.operands.push_back(add_node(callee, std::move(requantize), 1, false).values[0]);
  }
  return add_node(callee, std::move(node), 1, false);
}

// The operands of a variadic operator are one argument, a tuple.
void Parser::parse_argument(const op::OpDef* op, size_t depth, ir::Node* node, size_t* num_args) {
  const Token place = tokens_.token();
  const Binding argument = parse_expression(depth + 1);
  const bool variadic = op != nullptr && op->variadic;
  if (variadic && *num_args > 0) {
    tokens_.fail_at(place, "operator '" + op->name + "' takes one tuple: " + op->name + "((%0, %1), ...)");
  }
  if (argument.tuple && !variadic)
    tokens_.fail_at(place, "a tuple cannot be an operand here, take one of it: %0.0");
  node->operands.insert(node->operands.end(), argument.values.begin(), argument.values.end());
  ++*num_args;
}

// Gives the attribute's name as it is written; "" where it has no value.
std::string Parser::parse_node_attr(std::string_view callee, const op::OpDef* op, ir::Node* node) {
  const Token place = tokens_.token();
  AttrName name = parse_attr_name(&tokens_);
  if (name.text == "name" && !name.quoted) {
    node->name = tokens_.take(TokenKind::kString, "the node's name as a string").value;
    return "";
  }
  std::optional<ir::AttrValue> value = parse_attr_value(&tokens_);
  if (!value) return "";
  std::string written = name.text;
  if (op != nullptr || is_identity(callee)) {
    RelayAttr attr = read_relay_attr(callee, name.text, *value);
    if (attr.kind == RelayAttr::Kind::kDrop) return written;
    if (attr.kind == RelayAttr::Kind::kRefuse) {
      throw PackError(QPLAN_MODEL_UNSUPPORTED, tokens_.locate(place.begin, attr.reason));
    }
    name.text = std::move(attr.name);
    value = std::move(attr.value);
  }
  check_attr(tokens_, place, node->attrs, name.text);
  if (op != nullptr) value = coerce_attr(*op, name.text, std::move(*value));
  node->attrs.set(name.text, std::move(*value));
  return written;
}

Binding Parser::add_node(const Token& callee, ir::Node node, size_t num_results, bool tuple) {
  Binding results{{}, tuple};
  charge(callee, num_results);
  for (size_t i = 0; i < num_results; ++i) {
    DraftValue value;
    value.kind = DraftValue::Kind::kResult;
    value.place = callee.begin;
    value.node = static_cast<uint32_t>(draft_.nodes.size());
    value.result_index = static_cast<uint32_t>(i);
    results.values.push_back(draft_.add(std::move(value)));
  }
  node.results = results.values;
  draft_.nodes.push_back({std::move(node), callee.begin, {}});
  return results;
}

Binding Parser::add_operator(const Token& callee, ir::Node node) {
  take_operand_attr(&node, [&](float value) { return add_constant(ir::make_scalar(value)); });
  const size_t count = node.op->num_results != nullptr ? node.op->num_results(node) : 1;
  return add_node(callee, std::move(node), count, count > 1);
}

// The result type of a function is known from its '->', or because the function is above this one.
Binding Parser::add_call(const Token& callee, ir::Node node) {
  ResultType type;
  const ir::Function* above = module_.find(callee.value);
  if (const auto declared = signatures_.find(callee.value); declared != signatures_.end()) {
    type = declared->second;
  } else if (above != nullptr && above != function_) {
    for (const ir::ValueId id : above->outputs()) type.types.push_back(above->type(id));
    type.tuple = type.types.size() != 1;
  } else {
    tokens_.fail_at(callee, "there is no function " + excerpt(callee) +
                                " above, and none that declares its result: "
                                "def @f(...) -> type");
  }
  Binding results = add_node(callee, std::move(node), type.types.size(), type.tuple);
  draft_.nodes.back().call_types = std::move(type.types);
  return results;
}

ir::ValueId Parser::add_param(const Token& name) {
  DraftValue value;
  value.name = name.value;
  value.place = name.begin;
  return draft_.add(std::move(value));
}

// ---- constants

ir::ValueId Parser::add_constant(ir::ConstantRef constant) {
  DraftValue value;
  value.kind = DraftValue::Kind::kConstant;
  value.set_type(constant->type());
  value.constant = std::move(constant);
  return draft_.add(std::move(value));
}

ir::ValueId Parser::parse_scalar() {
  const Token token = tokens_.take();
  ir::TensorType type{ir::kBool, {}};
  std::string_view digits = token.text;
  if (token.kind == TokenKind::kNumber) {
    const std::optional<Number> number = split_number(token.text);
    if (!number) tokens_.fail_at(token, excerpt(token) + " is not a number");
    type.dtype = number->dtype;
    digits = number->digits;
  }
  std::optional<std::vector<uint8_t>> bytes = element_bytes(type.dtype, digits);
  if (!bytes) tokens_.fail_at(token, excerpt(token) + " is not a value of " + ir::to_string(type.dtype));
  return add_constant(std::make_shared<const ir::Constant>(std::move(type), std::move(*bytes)));
}

// meta[relay.Constant][3]
ir::ValueId Parser::parse_meta() {
  const Token place = tokens_.take();
  tokens_.expect("[");
  if (!tokens_.is_word("relay.Constant")) tokens_.unexpected("'relay.Constant'");
  tokens_.advance();
  tokens_.expect("]");
  tokens_.expect("[");
  const int64_t index = parse_integer(&tokens_);
  tokens_.expect("]");
  if (!has_metadata_) {
    const auto [it, is_new] = placeholders_.emplace(index, ir::ValueId());
    if (is_new) {
      DraftValue value;
      value.kind = DraftValue::Kind::kPlaceholder;
      value.name = cat("meta[relay.Constant][", index, "]");
      value.place = place.begin;
      it->second = draft_.add(std::move(value));
    }
    return it->second;
  }
  if (index < 0 || static_cast<size_t>(index) >= meta_.size()) {
    tokens_.fail_at(place, cat("section #[metadata] has ", meta_.size(), " constants, there is no ", index));
  }
  return add_constant(meta_[static_cast<size_t>(index)]);
}

// const(Tensor[(2, 2), int8], [1, 2, -3, 4]): ours, elements in row-major order.
ir::ValueId Parser::parse_const() {
  tokens_.advance();
  tokens_.expect("(");
  const Token place = tokens_.token();
  ir::TensorType type = parse_tensor_type(&tokens_);
  tokens_.expect(",");
  tokens_.expect("[");
  std::vector<uint8_t> bytes;
  int64_t count = 0;
  while (!tokens_.is("]")) {
    const Token token = tokens_.token();
    const bool word = token.is_word("True") || token.is_word("False") || token.is_word("inf");
    if (token.kind != TokenKind::kNumber && !word) tokens_.unexpected("an element of the constant");
    const std::optional<std::vector<uint8_t>> element = element_bytes(type.dtype, token.text);
    if (!element) tokens_.fail(excerpt(token) + " is not a value of " + ir::to_string(type.dtype));
    bytes.insert(bytes.end(), element->begin(), element->end());
    ++count;
    tokens_.advance();
    if (!tokens_.accept(",")) break;
  }
  tokens_.expect("]");
  tokens_.expect(")");
  if (count != type.num_elements()) {
    tokens_.fail_at(place, "the constant has " + std::to_string(count) + " elements, expected " +
                               std::to_string(type.num_elements()) + " for " + ir::to_string(type));
  }
  return add_constant(std::make_shared<const ir::Constant>(std::move(type), std::move(bytes)));
}

}  // namespace qplan::text
