// The subset of Python that TorchScript writes: its tokens, and the functions made of them.
#include "src/packer/import/pytorch/script.h"

#include <charconv>

#include "src/packer/import/import.h"
#include "src/packer/import/pytorch/archive.h"
#include "src/packer/ir/cat.h"

namespace qplan::pt {
namespace {

using importer::in_quotes;
using importer::invalid;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

class Lexer {
 public:
  Lexer(std::string_view text, size_t most) : text_(text), most_(most) {}

  std::vector<Token> lex() {
    while (at_ < text_.size()) lex_line();
    if (brackets_ > 0) fail("a bracket is not closed");
    set_indentation(0);
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { invalid(cat("line ", line_, ": ", what)); }
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  Token& add(TokenKind kind, std::string text) {
    if (tokens_.size() >= most_) fail("the archive's code is too long for a network");
    tokens_.push_back({.kind = kind, .text = std::move(text), .line = line_});
    return tokens_.back();
  }

  void lex_line() {
    if (brackets_ == 0) {
      size_t spaces = 0;
      while (peek() == ' ') ++at_, ++spaces;
      const bool blank = at_ == text_.size() || peek() == '\n' || peek() == '#';
      if (!blank) set_indentation(spaces);
    }
    const size_t first = tokens_.size();
    for (;;) {
      while (peek() == ' ' || peek() == '\t' || peek() == '\r') ++at_;
      if (peek() == '#') {
        while (at_ < text_.size() && peek() != '\n') ++at_;
      }
      if (at_ == text_.size() || peek() == '\n') break;
      lex_token();
    }
    if (brackets_ == 0 && (tokens_.size() > first || joined_)) add(TokenKind::kNewline, "");
    joined_ = brackets_ > 0;
    if (at_ < text_.size()) ++at_;
    ++line_;
  }

  void set_indentation(size_t spaces) {
    if (spaces > indentation_.back()) {
      indentation_.push_back(spaces);
      add(TokenKind::kIndent, "");
    }
    while (spaces < indentation_.back()) {
      indentation_.pop_back();
      add(TokenKind::kDedent, "");
    }
    if (spaces != indentation_.back()) fail("the indentation fits no line above");
  }

  void lex_token() {
    const char c = peek();
    if (is_name_start(c)) {
      const size_t begin = at_;
      while (is_name(peek())) ++at_;
      if (at_ - begin > kMaxNameBytes) fail(cat("a name is longer than ", kMaxNameBytes, " bytes"));
      add(TokenKind::kName, std::string(text_.substr(begin, at_ - begin)));
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      lex_number();
    } else if (c == '"' || c == '\'') {
      lex_string(c);
    } else if (c == '-' && peek(1) == '>') {
      at_ += 2;
      add(TokenKind::kPunctuation, "->");
    } else if (std::string_view("()[]{},.:=-+*/%<>!|&^~@;").find(c) != std::string_view::npos) {
      if (c == '(' || c == '[' || c == '{') ++brackets_;
      if ((c == ')' || c == ']' || c == '}') && brackets_-- == 0) fail(cat("a '", c, "' closes nothing"));
      ++at_;
      add(TokenKind::kPunctuation, std::string(1, c));
    } else {
      fail("the character " + in_quotes(std::string_view(&text_[at_], 1)) + " is not one of TorchScript's");
    }
  }

  void lex_number() {
    const size_t begin = at_;
    bool real = false;
    while (is_digit(peek())) ++at_;
    if (peek() == '.') real = true, ++at_;
    while (is_digit(peek())) ++at_;
    if (peek() == 'e' || peek() == 'E') {
      real = true;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      while (is_digit(peek())) ++at_;
    }
    const char* from = text_.data() + begin;
    const char* to = text_.data() + at_;
    Token& token = add(real ? TokenKind::kFloat : TokenKind::kInteger, std::string(from, to));
    const auto result =
        real ? std::from_chars(from, to, token.number) : std::from_chars(from, to, token.integer);
    // Numbers that double does not reach are written as such only by hand.
    if (result.ec != std::errc() || result.ptr != to || is_name_start(peek())) {
      fail("number " + in_quotes(token.text) + " cannot be read");
    }
  }

  // The escapes that TorchScript writes: of one letter, \ooo and \xhh.
  void lex_string(char quote) {
    std::string value;
    ++at_;
    for (;;) {
      if (at_ == text_.size() || peek() == '\n') fail("a string does not end");
      char c = text_[at_++];
      if (c == quote) break;
      if (c == '\\') c = escape();
      value += c;
    }
    add(TokenKind::kString, std::move(value));
  }

  char escape() {
    const char c = peek();
    if (at_ < text_.size()) ++at_;
    constexpr std::string_view kLetters = "abfnrtv\\'\"";
    constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
    if (const size_t i = kLetters.find(c); i != std::string_view::npos) return kMeanings[i];
    const bool hexadecimal = c == 'x';
    const size_t begin = hexadecimal ? at_ : at_ - 1;
    const size_t most = hexadecimal ? 2 : 3;
    unsigned value = 0;
    const std::string_view digits = text_.substr(begin, most);
    const auto result =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 8);
    if (result.ec != std::errc() || value > 255) fail("a string has an unknown escape");
    at_ = begin + static_cast<size_t>(result.ptr - digits.data());
    return static_cast<char>(value);
  }

  std::string_view text_;
  size_t most_;
  size_t at_ = 0;
  size_t line_ = 1;
  size_t brackets_ = 0;
  bool joined_ = false;  // the line began in brackets
  std::vector<size_t> indentation_ = {0};
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> lex_script(std::string_view text, size_t most) { return Lexer(text, most).lex(); }

namespace {

using importer::Unsupported;

// A function from its parameter list to the end of its block.
class FunctionParser {
 public:
  FunctionParser(const std::vector<Token>& tokens, size_t at) : tokens_(tokens), at_(at) {}

  std::unique_ptr<FunctionBody> parse() {
    parse_parameters();
    if (accept("->")) parse_type();
    body_->statements = parse_block();
    return std::move(body_);
  }

 private:
  // -- tokens
  const Token& token() const { return tokens_[at_]; }
  bool is(std::string_view punctuation) const {
    return token().kind == TokenKind::kPunctuation && token().text == punctuation;
  }
  bool is_name(std::string_view name) const {
    return token().kind == TokenKind::kName && token().text == name;
  }
  bool accept(std::string_view punctuation) {
    if (!is(punctuation)) return false;
    ++at_;
    return true;
  }
  bool accept_kind(TokenKind kind) {
    if (token().kind != kind) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view punctuation) {
    if (!accept(punctuation)) fail(cat("found ", found(), ", expected '", punctuation, "'"));
  }
  void expect_kind(TokenKind kind, const char* what) {
    if (!accept_kind(kind)) fail(cat("found ", found(), ", expected ", what));
  }
  std::string found() const {
    switch (token().kind) {
      case TokenKind::kNewline:
        return "the end of the line";
      case TokenKind::kIndent:
      case TokenKind::kDedent:
        return "another indentation";
      case TokenKind::kEnd:
        return "the end of the file";
      default:
        return in_quotes(token().text);
    }
  }
  [[noreturn]] void fail(const std::string& what) const { invalid(cat("line ", token().line, ": ", what)); }

  // -- functions and statements
  void parse_parameters() {
    expect("(");
    while (!is(")")) {
      Parameter parameter;
      if (token().kind != TokenKind::kName) fail(cat("found ", found(), ", expected a parameter"));
      parameter.name = token().text;
      ++at_;
      if (accept(":")) parameter.type = parse_type();
      if (accept("=")) {
        parameter.has_fallback = true;
        parameter.fallback = parse_expression();
      }
      body_->parameters.push_back(std::move(parameter));
      if (!accept(",")) break;
    }
    expect(")");
  }

  // A type is read as an expression is, and kept as text: "Tuple[int,int]".
  std::string parse_type() {
    const size_t begin = at_;
    parse_expression();
    std::string text;
    for (size_t i = begin; i < at_; ++i) text += tokens_[i].text;
    return text;
  }

  std::vector<Statement> parse_block() {
    const Nested nested(this);
    expect(":");
    expect_kind(TokenKind::kNewline, "the end of the line");
    expect_kind(TokenKind::kIndent, "an indented block");
    std::vector<Statement> statements;
    while (!accept_kind(TokenKind::kDedent)) statements.push_back(parse_statement());
    return statements;
  }

  Statement parse_statement() {
    Statement statement;
    statement.line = token().line;
    if (is_name("if")) {
      ++at_;
      statement.kind = StatementKind::kIf;
      statement.value = parse_expression();
      statement.then = parse_block();
      if (is_name("else")) {
        ++at_;
        statement.otherwise = parse_block();
      }
      return statement;
    }
    for (const char* keyword : {"for", "while", "with", "def", "class", "assert", "raise", "del", "elif"}) {
      if (is_name(keyword)) throw Unsupported{cat("control flow: '", keyword, "' in line ", token().line)};
    }
    if (is_name("pass")) {
      ++at_;
    } else if (is_name("return")) {
      ++at_;
      statement.kind = StatementKind::kReturn;
      bool several = false;
      const std::vector<ExprId> values = parse_list(&several);
      statement.value = several ? add(ExprKind::kTuple, values) : values[0];
    } else {
      parse_assignment(&statement);
    }
    expect_kind(TokenKind::kNewline, "the end of the line");
    return statement;
  }

  void parse_assignment(Statement* statement) {
    const std::vector<ExprId> left = parse_list(&statement->unpacks);
    if (accept(":")) parse_type();
    if (!accept("=")) {
      statement->kind = StatementKind::kExpression;
      statement->value = left[0];
      return;
    }
    statement->kind = StatementKind::kAssign;
    for (const ExprId target : left) {
      const ExprKind kind = body_->exprs[target].kind;
      if (kind != ExprKind::kName && kind != ExprKind::kAttribute) fail("a value cannot be assigned to");
    }
    statement->targets = left;
    bool several = false;
    const std::vector<ExprId> values = parse_list(&several);
    statement->value = several ? add(ExprKind::kTuple, values) : values[0];
  }

  // One or more expressions; several: there was a comma.
  std::vector<ExprId> parse_list(bool* several) {
    std::vector<ExprId> exprs = {parse_expression()};
    while (accept(",")) {
      *several = true;
      if (token().kind == TokenKind::kNewline || is("=")) break;
      exprs.push_back(parse_expression());
    }
    return exprs;
  }

  // -- expressions
  ExprId add(ExprKind kind, std::vector<ExprId> children = {}, std::string text = "") {
    Expr expr;
    expr.kind = kind;
    expr.children = std::move(children);
    expr.text = std::move(text);
    expr.line = token().line;
    body_->exprs.push_back(std::move(expr));
    return static_cast<ExprId>(body_->exprs.size() - 1);
  }

  ExprId parse_expression() {
    const Nested nested(this);
    if (accept("-")) return add(ExprKind::kNegative, {parse_expression()});
    ExprId expr = parse_primary();
    for (size_t chain = 0;; ++chain) {
      if (chain == kMaxExpressionDepth) fail("an expression is nested too deeply");
      if (accept(".")) {
        if (token().kind != TokenKind::kName) fail(cat("found ", found(), ", expected a name"));
        expr = add(ExprKind::kAttribute, {expr}, token().text);
        ++at_;
      } else if (accept("[")) {
        const ExprId index = parse_items("]", ExprKind::kTuple);
        const std::vector<ExprId>& items = body_->exprs[index].children;
        expr = add(ExprKind::kSubscript, {expr, items.size() == 1 ? items[0] : index});
      } else if (accept("(")) {
        expr = parse_call(expr);
      } else {
        return expr;
      }
    }
  }

  ExprId parse_call(ExprId callee) {
    std::vector<ExprId> children = {callee};
    std::vector<std::string> names;
    while (!is(")")) {
      const bool named = token().kind == TokenKind::kName && tokens_[at_ + 1].text == "=" &&
                         tokens_[at_ + 1].kind == TokenKind::kPunctuation;
      if (named) {
        names.push_back(token().text);
        at_ += 2;
      } else if (!names.empty()) {
        fail("an argument without a name follows one with a name");
      }
      children.push_back(parse_expression());
      if (!accept(",")) break;
    }
    expect(")");
    const ExprId call = add(ExprKind::kCall, std::move(children));
    body_->exprs[call].names = std::move(names);
    return call;
  }

  // What follows an opening bracket.
  ExprId parse_items(std::string_view closing, ExprKind kind) {
    std::vector<ExprId> items;
    while (!is(closing)) {
      items.push_back(parse_expression());
      if (!accept(",")) break;
    }
    expect(closing);
    return add(kind, std::move(items));
  }

  ExprId parse_primary() {
    const Token& first = token();
    switch (first.kind) {
      case TokenKind::kInteger: {
        const ExprId expr = add(ExprKind::kInteger);
        body_->exprs[expr].integer = first.integer;
        ++at_;
        return expr;
      }
      case TokenKind::kFloat: {
        const ExprId expr = add(ExprKind::kFloat);
        body_->exprs[expr].number = first.number;
        ++at_;
        return expr;
      }
      case TokenKind::kString: {
        const ExprId expr = add(ExprKind::kString, {}, first.text);
        ++at_;
        return expr;
      }
      case TokenKind::kName: {
        const ExprKind kind = first.text == "None"    ? ExprKind::kNone
                              : first.text == "True"  ? ExprKind::kTrue
                              : first.text == "False" ? ExprKind::kFalse
                                                      : ExprKind::kName;
        const ExprId expr = add(kind, {}, first.text);
        ++at_;
        return expr;
      }
      default:
        break;
    }
    if (accept("[")) return parse_items("]", ExprKind::kList);
    if (accept("(")) {
      // "(x)" is x, "(x,)" and "()" are tuples.
      std::vector<ExprId> items;
      bool comma = false;
      while (!is(")")) {
        items.push_back(parse_expression());
        if (!accept(",")) break;
        comma = true;
      }
      expect(")");
      return items.size() == 1 && !comma ? items[0] : add(ExprKind::kTuple, std::move(items));
    }
    if (accept("{")) {
      std::vector<ExprId> items;
      while (!is("}")) {
        items.push_back(parse_expression());
        expect(":");
        items.push_back(parse_expression());
        if (!accept(",")) break;
      }
      expect("}");
      return add(ExprKind::kDict, std::move(items));
    }
    fail(cat("found ", found(), ", expected an expression"));
  }

  class Nested {
   public:
    explicit Nested(FunctionParser* parser) : parser_(parser) {
      if (++parser_->depth_ > kMaxExpressionDepth) parser_->fail("the code is nested too deeply");
    }
    ~Nested() { --parser_->depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    FunctionParser* parser_;
  };

  const std::vector<Token>& tokens_;
  size_t at_;
  size_t depth_ = 0;
  std::unique_ptr<FunctionBody> body_ = std::make_unique<FunctionBody>();
};

}  // namespace

ScriptFile::ScriptFile(std::string_view text, size_t max_tokens) : tokens_(lex_script(text, max_tokens)) {
  find_functions();
}

// Finds every `def` in a class's block or at the left edge, and the fields of NamedTuples: `name : type`.
void ScriptFile::find_functions() {
  std::string class_name;
  size_t depth = 0;
  bool line_begins = true;
  for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
    const Token& token = tokens_[i];
    if (token.kind == TokenKind::kIndent) ++depth;
    if (token.kind == TokenKind::kDedent && --depth == 0) class_name.clear();
    if (line_begins && token.kind == TokenKind::kName) {
      const std::string& name = tokens_[i + 1].text;
      if (depth == 0 && token.text == "class") {
        class_name = name;
        if (i + 3 < tokens_.size() && tokens_[i + 3].text == "NamedTuple") fields_[name];
      }
      if (const auto fields = fields_.find(class_name); depth == 1 && fields != fields_.end() && name == ":")
        fields->second.push_back(token.text);
      if (token.text == "def" && depth == (class_name.empty() ? 0u : 1u)) {
        functions_[{class_name, name}].begin = i + 2;
      }
    }
    line_begins = token.kind == TokenKind::kNewline || token.kind == TokenKind::kIndent ||
                  token.kind == TokenKind::kDedent;
  }
}

const FunctionBody* ScriptFile::find(std::string_view class_name, std::string_view function) {
  const auto it = functions_.find(std::pair(std::string(class_name), std::string(function)));
  if (it == functions_.end()) return nullptr;
  if (!it->second.body) it->second.body = FunctionParser(tokens_, it->second.begin).parse();
  return it->second.body.get();
}

const std::vector<std::string>* ScriptFile::find_fields(std::string_view class_name) const {
  const auto it = fields_.find(class_name);
  return it == fields_.end() ? nullptr : &it->second;
}

}  // namespace qplan::pt
