#include "src/packer/text/syntax.h"

#include <algorithm>
#include <utility>

#include "src/packer/error.h"

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

}  // namespace qplan::text
