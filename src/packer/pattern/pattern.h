// A pattern says which nodes a rewrite wants: a small immutable tree of combinators, matched from a value
// upwards through the nodes that make it. Patterns are values; copying one is cheap.
//
//   const Pattern weight = op("qnn.quantize", {constant().dtype(ir::kFloat32), constant(), constant()});
//   const Pattern layer = optional("clip", op("qnn.requantize", {op("qnn.conv2d", {any().as("data"),
//                             weight | constant()}).one_use()})).as("layer");
//
// Operands are matched in order. A pattern of op() that lists fewer operands than the node has leaves the
// rest alone; one that lists more does not match. Matching is deterministic: alternatives left to right,
// operands of a commutative operator first as written, then swapped; the first complete match is the one. It
// is linear in the size of the pattern for patterns without alternatives under commutative operators, and
// bounded by kMaxSteps in all cases.
#ifndef QPLAN_SRC_PACKER_PATTERN_PATTERN_H_
#define QPLAN_SRC_PACKER_PATTERN_PATTERN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::pattern {

struct PatternNode;  // matcher.h

class Pattern {
 public:
  explicit Pattern(std::shared_ptr<const PatternNode> node) : node_(std::move(node)) {}
  const PatternNode& node() const { return *node_; }

  // ---- further conditions; each returns a new pattern ----
  // The matched value under this name. The same name twice in one pattern: the same value both times.
  Pattern as(std::string name) const;
  Pattern dtype(ir::DType dtype) const;
  Pattern dtypes(std::vector<ir::DType> any_of) const;
  Pattern shape(ir::Shape shape) const;
  Pattern rank(size_t rank) const;
  // Nothing but the node above reads the value (counted over operands and outputs of the function). Not for
  // the root.
  Pattern one_use() const;
  // The attribute, or its fallback, is this value.
  Pattern attr(std::string name, ir::AttrValue value) const;
  // Any other condition on a value: `text` ends the sentence "expected a value ...".
  Pattern where(std::string text, std::function<bool(const ir::Function&, ir::ValueId)> holds) const;

 private:
  std::shared_ptr<const PatternNode> node_;
};

Pattern any();       // any value: wildcard
Pattern constant();  // any constant
Pattern param();     // any parameter of the function
// A result of the operator.
Pattern op(std::string name, std::vector<Pattern> operands = {});
// A result of one of the operators.
Pattern one_of(std::vector<std::string> names, std::vector<Pattern> operands = {});
// The first two operands in either order.
Pattern commutative(std::string name, std::vector<Pattern> operands);
// `first`, else `second`.
Pattern operator|(Pattern first, Pattern second);
// The operator on `inner` (its first operand; `others` are the following ones), or `inner` alone.
Pattern optional(std::string name, Pattern inner, std::vector<Pattern> others = {});
// A value that matches `child`, whose first operand leads through nodes of `path` (operator names, any number
// of them, each on the first operand of the next and each the only use of what it reads) to a value that
// matches `parent`: `parent` dominates `child`.
Pattern dominates(Pattern parent, std::vector<std::string> path, Pattern child);

}  // namespace qplan::pattern

#endif  // QPLAN_SRC_PACKER_PATTERN_PATTERN_H_
