#include <charconv>

#include "src/packer/import/import.h"
#include "src/packer/import/pytorch/archive.h"
#include "src/packer/import/pytorch/script.h"
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

}  // namespace qplan::pt
