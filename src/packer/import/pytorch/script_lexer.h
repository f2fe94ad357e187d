// Tokens of the code that TorchScript writes (code/**.py): the subset of Python's tokens that it uses, with
// line breaks and indentation as tokens.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_SCRIPT_LEXER_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_SCRIPT_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qplan::pt {

enum class TokenKind : uint8_t {
  kName,
  kInteger,
  kFloat,
  kString,
  kPunctuation,
  kNewline,
  kIndent,
  kDedent,
  kEnd
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // of strings: what they mean; of punctuation: one character, or "->"
  int64_t integer = 0;
  double number = 0;
  size_t line = 1;
};

// Ends with kEnd; lines within brackets are joined. PackError "line 12: ...".
// PackError where there are more tokens than most.
std::vector<Token> lex_script(std::string_view text, size_t most);

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_SCRIPT_LEXER_H_
