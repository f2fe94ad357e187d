// The code of an archive as trees. Nodes are in vectors and refer to each other by index.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_SCRIPT_AST_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_SCRIPT_AST_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace qplan::pt {

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

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_SCRIPT_AST_H_
