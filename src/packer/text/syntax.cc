#include "src/packer/text/syntax.h"

#include <algorithm>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/types.h"
#include "src/packer/op/op_def.h"

namespace qplan::text {
namespace {

bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string Lexer::locate(size_t offset, const std::string& text) const {
  offset = std::min(offset, text_.size());
  size_t line = 1, begin = 0;
  for (size_t i = 0; i < offset; ++i) {
    if (text_[i] != '\n') continue;
    ++line;
    begin = i + 1;
  }
  // At most this much of the line, around the place.
  constexpr size_t kBefore = 60, kAfter = 60;
  const size_t end = std::min(text_.find('\n', offset), text_.size());
  size_t from = offset - begin > kBefore ? offset - kBefore : begin;
  const size_t to = std::min(end, offset + kAfter);
  while (from < offset && (text_[from] == ' ' || text_[from] == '\t')) ++from;
  std::string excerpt(text_.substr(from, to - from));
  for (char& c : excerpt) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return std::string(name_) + ":" + std::to_string(line) + ":" + std::to_string(offset - begin + 1) + ": " +
         text + ": `" + (from > begin && offset - begin > kBefore ? "..." : "") + excerpt +
         (to < end ? "..." : "") + "`";
}

void Lexer::fail(size_t offset, const std::string& text) const {
  throw PackError(QPLAN_MODEL_INVALID, locate(offset, text));
}

void Lexer::skip_comment() {
  const size_t begin = position_;
  size_t depth = 0;
  do {
    if (at_end()) fail(begin, "this comment has no end, expected '*/'");
    if (peek() == '/' && peek(1) == '*') {
      ++depth;
      position_ += 2;
    } else if (peek() == '*' && peek(1) == '/') {
      --depth;
      position_ += 2;
    } else {
      ++position_;
    }
  } while (depth > 0);
  std::string_view content = text_.substr(begin + 2, position_ - begin - 4);
  content.remove_prefix(std::min(content.find_first_not_of(' '), content.size()));
  if (content.starts_with("ty=")) type_comment_ = content;
}

void Lexer::skip_blank() {
  while (!at_end()) {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++position_;
    } else if (c == '/' && peek(1) == '/') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (c == '/' && peek(1) == '*') {
      skip_comment();
    } else {
      return;
    }
  }
}

std::string Lexer::read_string() {
  const size_t begin = position_;
  std::string value;
  ++position_;  // the opening quote
  while (true) {
    if (at_end() || peek() == '\n') fail(begin, "this string has no end, expected '\"' on the same line");
    const char c = peek();
    ++position_;
    if (c == '"') return value;
    if (c != '\\') {
      value += c;
      continue;
    }
    const char escape = peek();
    ++position_;
    if (escape == 'n') {
      value += '\n';
    } else if (escape == 't') {
      value += '\t';
    } else if (escape == '"' || escape == '\\') {
      value += escape;
    } else if (escape == 'x' && hex_value(peek()) >= 0 && hex_value(peek(1)) >= 0) {
      value += static_cast<char>(hex_value(peek()) * 16 + hex_value(peek(1)));
      position_ += 2;
    } else {
      fail(position_ - 2, "unknown escape, expected one of \\\" \\\\ \\n \\t \\xHH");
    }
  }
}

void Lexer::read_name(Token* token) {
  ++position_;  // % or @
  if (peek() == '"') {
    token->value = read_string();
    token->quoted = true;
    return;
  }
  const size_t begin = position_;
  // A slash belongs to the name as TensorFlow writes it, unless it begins a comment.
  while (is_word(peek()) || (peek() == '/' && peek(1) != '/' && peek(1) != '*')) ++position_;
  if (position_ == begin) fail(token->begin, "expected a name here");
  token->value = std::string(text_.substr(begin, position_ - begin));
}

// The rest is checked where the number is used; the lexer accepts anything that looks like a number.
void Lexer::skip_number() {
  if (peek() == '-') ++position_;
  while (is_word(peek()) ||
         ((peek() == '-' || peek() == '+') && (text_[position_ - 1] == 'e' || text_[position_ - 1] == 'E'))) {
    ++position_;
  }
}

Token Lexer::next() {
  type_comment_ = {};
  skip_blank();
  Token token;
  token.begin = position_;
  token.type_comment = type_comment_;
  if (at_end()) return token;
  const char c = peek();
  if (c == '%' || c == '@') {
    token.kind = c == '%' ? TokenKind::kLocal : TokenKind::kGlobal;
    read_name(&token);
  } else if (c == '"') {
    token.kind = TokenKind::kString;
    token.value = read_string();
    token.quoted = true;
  } else if (is_digit(c) || (c == '-' && (is_digit(peek(1)) || peek(1) == 'i' || peek(1) == 'n'))) {
    token.kind = TokenKind::kNumber;
    skip_number();
  } else if (is_letter(c)) {
    token.kind = TokenKind::kIdentifier;
    while (is_word(peek())) ++position_;
    const std::string_view word = text_.substr(token.begin, position_ - token.begin);
    if (word == "inff" || word == "nanf" || word == "inff64" || word == "nanf64")
      token.kind = TokenKind::kNumber;
  } else if (std::string_view("()[]{},;:=.#").find(c) != std::string_view::npos) {
    token.kind = TokenKind::kPunctuation;
    ++position_;
  } else if (c == '-' && peek(1) == '>') {
    token.kind = TokenKind::kPunctuation;
    position_ += 2;
  } else {
    fail(position_, "unexpected character");
  }
  token.text = text_.substr(token.begin, position_ - token.begin);
  return token;
}

void TokenStream::rewind() {
  lexer_.set_position(0);
  advance();
}

bool TokenStream::next_is(std::string_view punctuation) {
  const size_t position = lexer_.position();
  const bool is = lexer_.next().is(punctuation);
  lexer_.set_position(position);
  return is;
}

bool TokenStream::at_attr() {
  return (token_.kind == TokenKind::kIdentifier || token_.kind == TokenKind::kString) && next_is("=");
}

bool TokenStream::accept(std::string_view punctuation) {
  if (!token_.is(punctuation)) return false;
  advance();
  return true;
}

void TokenStream::expect(std::string_view punctuation) {
  if (!accept(punctuation)) unexpected("'" + std::string(punctuation) + "'");
}

Token TokenStream::take(TokenKind kind, const char* what) {
  if (token_.kind != kind) unexpected(what);
  Token taken = std::move(token_);
  advance();
  return taken;
}

std::string_view TokenStream::take_rest() {
  const std::string_view rest = lexer_.rest();
  lexer_.set_position(lexer_.position() + rest.size());
  advance();
  return rest;
}

void TokenStream::unexpected(const std::string& expected) const {
  std::string found = "the end of the text";
  if (token_.kind != TokenKind::kEnd) {
    constexpr size_t kShown = 40;
    found = "'" + std::string(token_.text.substr(0, kShown)) + (token_.text.size() > kShown ? "...'" : "'");
  }
  fail("expected " + expected + ", found " + found);
}

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

std::string expected_of(const op::RelayAttrDef& def) {
  std::string expected;
  for (const std::string& allowed : def.ignored) {
    expected += cat(expected.empty() ? "" : " or ", allowed.empty() ? std::string("\"\"") : allowed);
  }
  return expected;
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
  for (const std::string& allowed : def->ignored) {
    if (allowed == "*" || allowed == text) return drop();
  }
  return refuse(
      cat("attribute '", attr, "' is ", text, ", which is not supported, expected ", expected_of(*def)));
}

std::string missing_relay_attr(std::string_view relay_name, const std::vector<std::string>& given) {
  const Alias alias = find_alias(relay_name);
  if (alias.op == nullptr) return "";
  for (const op::RelayAttrDef& def : alias.name->attrs) {
    if (def.is_required && std::ranges::find(given, def.name) == given.end()) {
      return cat("attribute '", def.name, "' is missing, which is not supported, expected ",
                 expected_of(def));
    }
  }
  return "";
}

void complete_relay_call(ir::Function* function, ir::Node* node) {
  if (node->op == nullptr || node->operands.empty() || node->op->complete == nullptr) return;
  node->op->complete(function, node);
}

}  // namespace qplan::text
