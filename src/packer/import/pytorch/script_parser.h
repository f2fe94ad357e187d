// Tokens of the code that TorchScript writes (code/**.py): the subset of Python's tokens that it uses, with
// line breaks and indentation as tokens.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_SCRIPT_PARSER_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_SCRIPT_PARSER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

// The code of an archive as trees. Nodes are in vectors and refer to each other by index.

using ExprId = uint32_t;

enum class ExprKind : uint8_t {
  kNone,
  kTrue,
  kFalse,
  kInteger,
  kFloat,
  kString,
  kName,       // text
  kAttribute,  // children[0].text
  kSubscript,  // children[0][children[1]]
  kCall,       // children[0](children[1], ..., names[i]=...): the named arguments are the last children
  kList,
  kTuple,
  kNegative,
};

struct Expr {
  ExprKind kind = ExprKind::kNone;
  std::string text;
  int64_t integer = 0;
  double number = 0;
  std::vector<ExprId> children;
  std::vector<std::string> names;  // of the last arguments of a call
  size_t line = 0;
};

enum class StatementKind : uint8_t { kAssign, kExpression, kReturn, kIf, kPass };

struct Statement {
  StatementKind kind = StatementKind::kPass;
  std::vector<ExprId> targets;  // kAssign: names and attributes; several take a tuple apart
  bool unpacks = false;         // kAssign: `a, = x`, `a, b = x`
  ExprId value = 0;             // what is assigned, returned, or the condition
  std::vector<Statement> then, otherwise;
  size_t line = 0;
};

struct Parameter {
  std::string name;
  std::string type;  // as written, without spaces
  bool has_fallback = false;
  ExprId fallback = 0;
};

struct FunctionBody {
  std::vector<Expr> exprs;
  std::vector<Parameter> parameters;
  std::vector<Statement> statements;
};

// Reads code/**.py of an archive: classes with methods, and functions. A function that is not called is not
// parsed beyond its name, so that unsupported code does no harm where it is not needed.

class ScriptFile {
 public:
  // PackError "line 3: ..."; also where there are more tokens than max_tokens.
  ScriptFile(std::string_view text, size_t max_tokens);
  size_t num_tokens() const { return tokens_.size(); }

  // A function of the file (class_name empty) or a method; null when there is none. Parsed when first asked
  // for.
  const FunctionBody* find(std::string_view class_name, std::string_view function);

 private:
  struct Function {
    size_t begin = 0;  // token after the name
    std::unique_ptr<FunctionBody> body;
  };

  void find_functions();

  std::vector<Token> tokens_;
  std::map<std::pair<std::string, std::string>, Function, std::less<>> functions_;  // (class, name)
};

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_SCRIPT_PARSER_H_
