// A lexer with its current token, and what parsing does with it all the time: accept, expect, refuse with a
// place.
#ifndef QPLAN_SRC_PACKER_TEXT_TOKEN_STREAM_H_
#define QPLAN_SRC_PACKER_TEXT_TOKEN_STREAM_H_

#include <string>
#include <string_view>

#include "src/packer/text/lexer.h"

namespace qplan::text {

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

#endif  // QPLAN_SRC_PACKER_TEXT_TOKEN_STREAM_H_
