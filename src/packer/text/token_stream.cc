#include "src/packer/text/token_stream.h"

#include <utility>

namespace qplan::text {

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
