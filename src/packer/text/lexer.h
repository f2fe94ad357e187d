// Tokens of Relay text, one at a time: the text is not copied, and nothing depends on its length but the
// position.
#ifndef QPLAN_SRC_PACKER_TEXT_LEXER_H_
#define QPLAN_SRC_PACKER_TEXT_LEXER_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace qplan::text {

inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

enum class TokenKind {
  kEnd,
  kPunctuation,  // one character, or ->
  kIdentifier,   // qnn.conv2d, def, True
  kNumber,       // with sign and suffix
  kString,       // "text"
  kLocal,        // %x, %0, %0.1, %"any text"
  kGlobal,       // @main, @"any text"
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  size_t begin = 0;       // offset in the text
  std::string_view text;  // as written
  std::string value;      // strings and names: without quotes, % and @
  bool quoted = false;
  std::string_view type_comment;  // "ty=..." of the last such comment between the token before and this one

  bool is(std::string_view punctuation) const {
    return kind == TokenKind::kPunctuation && text == punctuation;
  }
  bool is_word(std::string_view word) const { return kind == TokenKind::kIdentifier && text == word; }
};

class Lexer {
 public:
  // name: of the file, for messages.
  Lexer(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  // Skips white space and comments (/* */ nests, // ends with the line). kEnd at the end, again and again.
  Token next();
  std::string_view name() const { return name_; }
  size_t position() const { return position_; }
  void set_position(size_t position) { position_ = position; }
  std::string_view rest() const { return text_.substr(position_); }

  // "net.relay:3:17: " + text + ": `the line`", one line of bounded length.
  std::string locate(size_t offset, const std::string& text) const;
  [[noreturn]] void fail(size_t offset, const std::string& text) const;  // PackError, QPLAN_MODEL_INVALID

 private:
  char peek(size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }
  bool at_end() const { return position_ >= text_.size(); }
  void skip_blank();
  void skip_comment();
  std::string read_string();
  void read_name(Token* token);
  void skip_number();

  std::string_view text_;
  std::string_view name_;
  size_t position_ = 0;
  std::string_view type_comment_;
};

// A lexer with its current token, and what parsing does with it all the time: accept, expect, refuse with a
// place.
class TokenStream {
 public:
  TokenStream(std::string_view text, std::string_view name) : lexer_(text, name) { advance(); }
  std::string_view name() const { return lexer_.name(); }

  const Token& token() const { return token_; }
  bool is(std::string_view punctuation) const { return token_.is(punctuation); }
  bool is_word(std::string_view word) const { return token_.is_word(word); }
  bool at_end() const { return token_.kind == TokenKind::kEnd; }

  void advance() { token_ = lexer_.next(); }
  void rewind();
  // Whether the token after the current one is this punctuation.
  bool next_is(std::string_view punctuation);
  // An attribute's name: an identifier or string followed by '='.
  bool at_attr();

  bool accept(std::string_view punctuation);
  void expect(std::string_view punctuation);
  Token take() { return take(token_.kind, ""); }
  Token take(TokenKind kind, const char* what);
  // The text after the current token, which then ends the stream.
  std::string_view take_rest();

  [[noreturn]] void fail(const std::string& text) const { lexer_.fail(token_.begin, text); }
  [[noreturn]] void fail_at(const Token& token, const std::string& text) const {
    lexer_.fail(token.begin, text);
  }
  [[noreturn]] void unexpected(const std::string& expected) const;
  [[noreturn]] void fail_at(size_t place, const std::string& text) const { lexer_.fail(place, text); }
  std::string locate(size_t place, const std::string& text) const { return lexer_.locate(place, text); }

 private:
  Lexer lexer_;
  Token token_;
};

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_LEXER_H_
