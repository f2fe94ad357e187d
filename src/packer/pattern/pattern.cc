#include "src/packer/pattern/pattern.h"

#include <algorithm>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"

namespace qplan::pattern {
namespace {

const op::OpDef* known_op(std::string_view name) {
  const op::OpDef* def = op::find_op(name);
  if (def == nullptr) {
    throw PackError(QPLAN_INVALID_ARGUMENT, cat("pattern: there is no operator '", name, "'"));
  }
  return def;
}

std::vector<const op::OpDef*> known_ops(const std::vector<std::string>& names) {
  std::vector<const op::OpDef*> ops;
  ops.reserve(names.size());
  for (const std::string& name : names) ops.push_back(known_op(name));
  return ops;
}

// Patterns are destroyed and printed by recursion: this is where their depth is bounded.
Pattern make(PatternNode node) {
  for (const Pattern& child : node.children) node.depth = std::max(node.depth, child.node().depth + 1);
  if (node.depth > kMaxDepth) {
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    cat("pattern: nested deeper than ", kMaxDepth,
                        " levels; a sequence of one operator is what dominates() matches"));
  }
  return Pattern(std::make_shared<const PatternNode>(std::move(node)));
}

Pattern leaf(PatternKind kind) {
  PatternNode node;
  node.kind = kind;
  return make(std::move(node));
}

Pattern with(const Pattern& pattern, Condition condition) {
  PatternNode node = pattern.node();
  node.conditions.push_back(std::move(condition));
  return make(std::move(node));
}

Pattern make_op(std::vector<const op::OpDef*> ops, std::vector<Pattern> operands, bool commutative) {
  PatternNode node;
  node.kind = PatternKind::kOp;
  node.ops = std::move(ops);
  node.commutative = commutative;
  node.children = std::move(operands);
  return make(std::move(node));
}

}  // namespace

Pattern Pattern::as(std::string name) const { return with(*this, condition::Capture{std::move(name)}); }
Pattern Pattern::dtype(ir::DType dtype) const { return with(*this, condition::DTypeIn{{dtype}}); }
Pattern Pattern::dtypes(std::vector<ir::DType> any_of) const {
  return with(*this, condition::DTypeIn{std::move(any_of)});
}
Pattern Pattern::shape(ir::Shape shape) const { return with(*this, condition::ShapeIs{std::move(shape)}); }
Pattern Pattern::rank(size_t rank) const { return with(*this, condition::RankIs{rank}); }
Pattern Pattern::one_use() const { return with(*this, condition::OneUse{}); }
Pattern Pattern::attr(std::string name, ir::AttrValue value) const {
  return with(*this, condition::AttrIs{std::move(name), std::move(value)});
}
Pattern Pattern::where(std::string text, std::function<bool(const Pre&, PreValue)> holds) const {
  return with(*this, condition::Where{std::move(text), std::move(holds)});
}
Pattern Pattern::where(std::string text, std::function<bool(const ir::Function&, ir::ValueId)> holds) const {
  return where(std::move(text), [holds = std::move(holds)](const Pre& pre, PreValue value) {
    return holds(pre.function(), value.id);
  });
}

Pattern any() { return leaf(PatternKind::kAny); }
Pattern constant() { return leaf(PatternKind::kConstant); }
Pattern param() { return leaf(PatternKind::kParam); }

Pattern op(std::string_view name, std::vector<Pattern> operands) {
  return make_op({known_op(name)}, std::move(operands), false);
}

Pattern one_of(const std::vector<std::string>& names, std::vector<Pattern> operands) {
  return make_op(known_ops(names), std::move(operands), false);
}

Pattern commutative(std::string_view name, std::vector<Pattern> operands) {
  if (operands.size() == 1) operands.push_back(any());
  const bool swaps = operands.size() >= 2;
  return make_op({known_op(name)}, std::move(operands), swaps);
}

Pattern operator|(Pattern first, Pattern second) {
  PatternNode node;
  node.kind = PatternKind::kEither;
  node.children = {std::move(first), std::move(second)};
  return make(std::move(node));
}

Pattern optional(std::string_view name, Pattern inner, std::vector<Pattern> others) {
  PatternNode node;
  node.kind = PatternKind::kOptional;
  node.ops = {known_op(name)};
  node.children = {std::move(inner)};
  for (Pattern& other : others) node.children.push_back(std::move(other));
  return make(std::move(node));
}

Pattern dominates(Pattern parent, const std::vector<std::string>& path, Pattern child) {
  PatternNode node;
  node.kind = PatternKind::kDominates;
  node.ops = known_ops(path);
  node.children = {std::move(child), std::move(parent)};
  return make(std::move(node));
}

}  // namespace qplan::pattern
