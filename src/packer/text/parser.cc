#include <map>
#include <optional>
#include <unordered_map>

#include "src/packer/error.h"
#include "src/packer/ir/verifier.h"
#include "src/packer/op/op_def.h"
#include "src/packer/text/literal.h"
#include "src/packer/text/metadata.h"
#include "src/packer/text/syntax.h"
#include "src/packer/text/text.h"
#include "src/packer/text/token_stream.h"

namespace qplan::text {
namespace {

// Expressions inside of expressions; bodies as Relay prints them need 2.
constexpr size_t kMaxDepth = 100;
// Of one function or node. Attributes are looked up one after the other.
constexpr size_t kMaxAttrs = 1000;

// What a name or expression stands for. A node of several results and a written tuple are tuples.
struct Binding {
  std::vector<ir::ValueId> values;
  bool tuple = false;
};

Binding single(ir::ValueId value) { return Binding{std::vector<ir::ValueId>{value}, false}; }

// Whether the attribute may be added.
void check_attr(const TokenStream& tokens, const Token& place, const ir::Attrs& attrs,
                const std::string& name) {
  if (attrs.has(name)) tokens.fail_at(place, "attribute '" + name + "' is there twice");
  if (attrs.size() == kMaxAttrs)
    tokens.fail_at(place, "more than " + std::to_string(kMaxAttrs) + " attributes");
}

std::string excerpt(const Token& token) { return "'" + std::string(token.text) + "'"; }

class Parser {
 public:
  Parser(std::string_view text, std::string_view name) : tokens_(text, name) {}

  ir::Module run();

 private:
  void scan();
  void skip_group(std::string_view open, std::string_view close);
  void parse_version_or_metadata();
  void parse_function();
  void parse_header_item();
  void parse_body(const std::optional<ResultType>& declared);
  void check_result(const Token& place, const ResultType& declared) const;
  void bind(const Token& name, Binding binding);

  Binding parse_expression(size_t depth);
  Binding parse_primary(size_t depth);
  Binding parse_tuple(size_t depth);
  Binding parse_local(const Token& name);
  Binding parse_call(const Token& callee, size_t depth);
  void parse_argument(const op::OpDef* op, size_t depth, ir::Node* node, size_t* num_args);
  void parse_node_attr(const op::OpDef* op, ir::Node* node);
  Binding add_operator(const Token& callee, ir::Node node);
  Binding add_call(const Token& callee, ir::Node node);
  ir::ValueId parse_scalar();
  ir::ValueId parse_meta();
  ir::ValueId parse_const();

  TokenStream tokens_;
  ir::Module module_;
  std::vector<ir::ConstantRef> meta_;
  bool has_metadata_ = false;
  std::map<std::string, ResultType> signatures_;    // of functions that declare what they return
  ir::Function* function_ = nullptr;                // whose body is being parsed
  std::unordered_map<std::string, Binding> names_;  // of that body, by key_of
};

// Nodes are numbered, so a quoted name that begins with a digit is another name than the number.
std::string key_of(const Token& name) {
  const bool like_number = !name.value.empty() && name.value[0] >= '0' && name.value[0] <= '9';
  return name.quoted && like_number ? "\"" + name.value : name.value;
}

// ---- module and functions

ir::Module Parser::run() {
  scan();
  tokens_.rewind();
  while (!tokens_.at_end()) {
    if (tokens_.is("#")) {
      parse_version_or_metadata();
    } else {
      parse_function();
    }
  }
  if (module_.functions().empty()) tokens_.fail("there is no function, expected 'def @main(...) { ... }'");
  ir::verify(module_);
  return std::move(module_);
}

// The first pass finds what functions return, and the metadata behind them all; bodies are skipped.
void Parser::scan() {
  while (!tokens_.at_end()) {
    if (tokens_.is("#")) {
      parse_version_or_metadata();
      continue;
    }
    if (!tokens_.is_word("def")) tokens_.unexpected("'def'");
    tokens_.advance();
    const Token name = tokens_.take(TokenKind::kGlobal, "a function's name like @main");
    skip_group("(", ")");
    if (tokens_.accept("->")) signatures_.emplace(name.value, parse_result_type(&tokens_));
    skip_group("{", "}");
  }
}

void Parser::skip_group(std::string_view open, std::string_view close) {
  if (!tokens_.is(open)) tokens_.unexpected("'" + std::string(open) + "'");
  size_t depth = 0;
  do {
    if (tokens_.at_end()) tokens_.unexpected("'" + std::string(close) + "'");
    if (tokens_.is(open)) ++depth;
    if (tokens_.is(close)) --depth;
    tokens_.advance();
  } while (depth > 0);
}

// Read by both passes, metadata in the first.
void Parser::parse_version_or_metadata() {
  tokens_.expect("#");
  tokens_.expect("[");
  if (tokens_.is_word("version")) {
    tokens_.advance();
    tokens_.expect("=");
    const Token version = tokens_.take(TokenKind::kString, "a version like \"0.0.5\"");
    if (version.value != "0.0.5") {
      tokens_.fail_at(version,
                      "unknown version " + excerpt(version) + " of the text format, expected \"0.0.5\"");
    }
    tokens_.expect("]");
    return;
  }
  if (!tokens_.is_word("metadata")) tokens_.unexpected("'version' or 'metadata'");
  const Token place = tokens_.take();
  if (!tokens_.is("]")) tokens_.unexpected("']'");
  const std::string_view json = tokens_.take_rest();
  if (has_metadata_) return;
  try {
    meta_ = read_metadata(json);
  } catch (const PackError& error) {
    tokens_.fail_at(place, error.what());
  }
  has_metadata_ = true;
}

void Parser::parse_function() {
  if (!tokens_.is_word("def")) tokens_.unexpected("'def'");
  tokens_.advance();
  const Token name = tokens_.take(TokenKind::kGlobal, "a function's name like @main");
  if (module_.find(name.value) != nullptr)
    tokens_.fail_at(name, "function " + excerpt(name) + " is defined twice");
  function_ = &module_.add_function(name.value);
  names_.clear();
  std::vector<std::string> output_names;
  tokens_.expect("(");
  while (!tokens_.is(")")) {
    if (tokens_.is_word("output_names") && tokens_.at_attr()) {
      parse_attr_name(&tokens_);
      output_names = parse_strings(&tokens_);
    } else {
      parse_header_item();
    }
    if (!tokens_.accept(",")) break;
  }
  tokens_.expect(")");
  std::optional<ResultType> declared;
  if (tokens_.accept("->")) declared = parse_result_type(&tokens_);
  tokens_.expect("{");
  parse_body(declared);
  tokens_.expect("}");
  std::vector<ir::ValueId> outputs(function_->outputs().begin(), function_->outputs().end());
  if (!output_names.empty() && output_names.size() != outputs.size()) {
    tokens_.fail_at(name, "there are " + std::to_string(output_names.size()) + " output names for " +
                              std::to_string(outputs.size()) + " outputs");
  }
  function_->set_outputs(std::move(outputs), std::move(output_names));
}

void Parser::parse_header_item() {
  const Token place = tokens_.token();
  if (place.kind == TokenKind::kLocal) {
    tokens_.advance();
    if (!tokens_.is(":")) tokens_.unexpected("':' and the type of parameter " + excerpt(place));
    tokens_.advance();
    bind(place, single(function_->add_param(place.value, parse_tensor_type(&tokens_))));
    return;
  }
  if (!tokens_.at_attr()) {
    tokens_.unexpected("a parameter like %x: Tensor[(1, 3), int8], or an attribute like Compiler=\"vta\"");
  }
  const AttrName name = parse_attr_name(&tokens_);
  check_attr(tokens_, place, function_->attrs(), name.text);
  std::optional<ir::AttrValue> value = parse_attr_value(&tokens_);
  if (value) function_->attrs().set(name.text, std::move(*value));
}

void Parser::bind(const Token& name, Binding binding) {
  if (!names_.emplace(key_of(name), std::move(binding)).second) {
    tokens_.fail_at(name, excerpt(name) + " is defined twice");
  }
}

// Statements `%0 = expression;` and `let %x = expression;`, then the expression that is the result.
void Parser::parse_body(const std::optional<ResultType>& declared) {
  while (true) {
    const bool let = tokens_.is_word("let");
    if (let) tokens_.advance();
    const Token place = tokens_.token();
    if (place.kind == TokenKind::kLocal && tokens_.next_is("=")) {
      tokens_.advance();
      tokens_.expect("=");
      Binding value = parse_expression(0);
      tokens_.expect(";");
      bind(place, std::move(value));
      continue;
    }
    if (let) tokens_.unexpected("a name like %x and '='");
    function_->set_outputs(parse_expression(0).values);
    if (declared) check_result(place, *declared);
    return;
  }
}

void Parser::check_result(const Token& place, const ResultType& declared) const {
  std::vector<ir::TensorType> found;
  for (const ir::ValueId id : function_->outputs()) found.push_back(function_->type(id));
  if (found == declared.types) return;
  std::string types;
  for (const ir::TensorType& type : found) types += (types.empty() ? "" : ", ") + ir::to_string(type);
  tokens_.fail_at(place, "the result is " + types + ", which is not the type that '->' declares");
}

// ---- expressions

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
// %3.
Binding Parser::parse_local(const Token& name) {
  if (const auto it = names_.find(key_of(name)); it != names_.end()) return it->second;
  const size_t dot = name.quoted ? std::string::npos : name.value.rfind('.');
  if (dot == std::string::npos) tokens_.fail_at(name, excerpt(name) + " is not defined");
  const auto it = names_.find(name.value.substr(0, dot));
  const std::optional<int64_t> index = parse_int(std::string_view(name.value).substr(dot + 1));
  if (it == names_.end() || !index) tokens_.fail_at(name, excerpt(name) + " is not defined");
  const std::vector<ir::ValueId>& values = it->second.values;
  if (*index < 0 || static_cast<size_t>(*index) >= values.size()) {
    tokens_.fail_at(name, "there is no " + excerpt(name) + ", '%" + it->first + "' has " +
                              std::to_string(values.size()) + (values.size() == 1 ? " result" : " results"));
  }
  return single(values[static_cast<size_t>(*index)]);
}

Binding Parser::parse_call(const Token& callee, size_t depth) {
  ir::Node node;
  if (callee.kind == TokenKind::kGlobal) {
    node.callee = callee.value;
  } else {
    node.op = op::find_op(callee.text);
    if (node.op == nullptr) tokens_.fail_at(callee, "unknown operator " + excerpt(callee));
  }
  tokens_.expect("(");
  size_t num_args = 0;
  while (!tokens_.is(")")) {
    if (tokens_.at_attr()) {
      parse_node_attr(node.op, &node);
    } else {
      parse_argument(node.op, depth, &node, &num_args);
    }
    if (!tokens_.accept(",")) break;
  }
  tokens_.expect(")");
  return node.op != nullptr ? add_operator(callee, std::move(node)) : add_call(callee, std::move(node));
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

void Parser::parse_node_attr(const op::OpDef* op, ir::Node* node) {
  const Token place = tokens_.token();
  const AttrName name = parse_attr_name(&tokens_);
  if (name.text == "name" && !name.quoted) {
    node->name = tokens_.take(TokenKind::kString, "the node's name as a string").value;
    return;
  }
  check_attr(tokens_, place, node->attrs, name.text);
  std::optional<ir::AttrValue> value = parse_attr_value(&tokens_);
  if (!value) return;
  if (op != nullptr) value = coerce_attr(*op, name.text, std::move(*value));
  node->attrs.set(name.text, std::move(*value));
}

Binding Parser::add_operator(const Token& callee, ir::Node node) {
  try {
    const ir::Node& added =
        function_->add_node(*node.op, std::move(node.operands), std::move(node.attrs), std::move(node.name));
    return Binding{added.results, added.results.size() > 1};
  } catch (const PackError& error) {
    throw PackError(error.status(), tokens_.locate(callee, error.what()));
  }
}

// What a function returns is known from its '->', or because it stands above.
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
  ir::Node& added = function_->add_call(std::move(node.callee), std::move(node.operands),
                                        std::move(type.types), std::move(node.name));
  added.attrs = std::move(node.attrs);
  return Binding{added.results, type.tuple};
}

// ---- constants

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
  return function_->add_constant(std::make_shared<const ir::Constant>(std::move(type), std::move(*bytes)));
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
  if (index < 0 || static_cast<size_t>(index) >= meta_.size()) {
    tokens_.fail_at(place, has_metadata_ ? "section #[metadata] has " + std::to_string(meta_.size()) +
                                               " constants, there is no " + std::to_string(index)
                                         : "there is no section #[metadata] with the data of this constant");
  }
  return function_->add_constant(meta_[static_cast<size_t>(index)]);
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
  return function_->add_constant(std::make_shared<const ir::Constant>(std::move(type), std::move(bytes)));
}

}  // namespace

ir::Module parse(std::string_view text, std::string_view name) { return Parser(text, name).run(); }

}  // namespace qplan::text
