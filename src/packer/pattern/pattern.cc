#include "src/packer/pattern/pattern.h"

#include <algorithm>
#include <charconv>
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

// Patterns in words.
namespace {

constexpr size_t kMaxChars = 600;
constexpr size_t kMaxKindChars = 160;  // of a pattern within a near miss

std::string join(const std::vector<const op::OpDef*>& ops, std::string_view separator) {
  std::string text;
  for (const op::OpDef* op : ops) text += (text.empty() ? std::string() : std::string(separator)) + op->name;
  return text;
}

std::string to_text(const ir::Ints& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

struct ConditionText {
  std::string operator()(const condition::Capture& c) const { return cat("as '", c.name, "'"); }
  std::string operator()(const condition::DTypeIn& c) const {
    std::string text;
    for (const ir::DType dtype : c.any_of)
      text += (text.empty() ? "of dtype " : " or ") + ir::to_string(dtype);
    return text;
  }
  std::string operator()(const condition::ShapeIs& c) const { return "of shape " + to_text(c.shape); }
  std::string operator()(const condition::RankIs& c) const { return cat("of rank ", c.rank); }
  std::string operator()(const condition::OneUse&) const { return "read once"; }
  std::string operator()(const condition::AttrIs& c) const {
    return cat("with ", c.name, "=", describe(c.value));
  }
  std::string operator()(const condition::Where& c) const { return c.text; }
};

// A pattern is a tree that may share branches, so that its text may be exponential: the writer stops when it
// has enough. It recurses no deeper than kMaxDepth.
class Writer {
 public:
  // Operators deeper than max_depth are written without their operands.
  Writer(size_t max_chars, uint32_t max_depth, bool captures)
      : max_chars_(max_chars), max_depth_(max_depth), captures_(captures) {}

  void write(const PatternNode& pattern) {
    if (text_.size() > max_chars_) return;
    if (pattern.kind == PatternKind::kOptional) text_ += "optional ";
    write_kind(pattern);
    for (const Condition& condition : pattern.conditions) {
      if (!captures_ && std::holds_alternative<condition::Capture>(condition)) continue;
      text_ += " " + describe(condition);
    }
  }

  // Without conditions, and an optional operator as if it had to be there.
  void write_kind(const PatternNode& pattern) {
    switch (pattern.kind) {
      case PatternKind::kAny:
        text_ += "any";
        break;
      case PatternKind::kConstant:
        text_ += "constant";
        break;
      case PatternKind::kParam:
        text_ += "parameter";
        break;
      case PatternKind::kOp:
        if (pattern.commutative) text_ += "commutative ";
        text_ += join(pattern.ops, "|");
        write_operands(pattern);
        break;
      case PatternKind::kOptional:
        text_ += pattern.ops[0]->name;
        write_operands(pattern);
        break;
      case PatternKind::kEither:
        text_ += "(";
        write(pattern.children[0].node());
        text_ += " | ";
        write(pattern.children[1].node());
        text_ += ")";
        break;
      case PatternKind::kDominates:
        write(pattern.children[0].node());
        text_ += " over {" + join(pattern.ops, ", ") + "} over ";
        write(pattern.children[1].node());
        break;
    }
  }

  std::string take() {
    if (text_.size() > max_chars_) text_ = text_.substr(0, max_chars_ - 3) + "...";
    return std::move(text_);
  }

 private:
  void write_operands(const PatternNode& pattern) {
    if (pattern.children.empty()) return;
    if (depth_ == max_depth_) {
      text_ += "(...)";
      return;
    }
    ++depth_;
    text_ += "(";
    for (size_t i = 0; i < pattern.children.size(); ++i) {
      if (i > 0) text_ += ", ";
      write(pattern.children[i].node());
    }
    text_ += ")";
    --depth_;
  }

  size_t max_chars_;
  uint32_t max_depth_;
  uint32_t depth_ = 0;
  bool captures_;  // whether names are printed
  std::string text_;
};

}  // namespace

std::string describe(const Condition& condition) { return std::visit(ConditionText(), condition); }

std::string describe(const ir::AttrValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof(digits), *number).ptr;
    return std::string(digits, end);
  }
  if (const auto* text = std::get_if<std::string>(&value)) return "\"" + *text + "\"";
  if (const auto* ints = std::get_if<ir::Ints>(&value)) return to_text(*ints);
  std::string text = "[";
  for (const ir::Ints& row : std::get<std::vector<ir::Ints>>(value)) {
    text += (text.size() > 1 ? ", " : "") + to_text(row);
  }
  return text + "]";
}

std::string describe_kind(const PatternNode& pattern) {
  Writer writer(kMaxKindChars, 1, false);
  writer.write_kind(pattern);
  return writer.take();
}

std::string node_label(const ir::Function& function, uint32_t index) {
  const ir::Node& node = function.nodes()[index];
  const std::string what = node.op != nullptr ? node.op->name : cat("call of '@", node.callee, "'");
  return node.name.empty() ? cat(what, " (node ", index, ")") : cat(what, " '", node.name, "'");
}

std::string label(const ir::Function& function, ir::ValueId id) {
  const ir::Value& value = function.value(id);
  if (value.kind == ir::ValueKind::kParam) return cat("parameter '%", value.name, "'");
  if (value.kind == ir::ValueKind::kConstant) {
    return value.name.empty() ? "a constant" : cat("constant '", value.name, "'");
  }
  return node_label(function, value.producer);
}

std::string describe(const ir::Function& function, ir::ValueId value) {
  return cat(label(function, value), " (", function.type(value), ")");
}

std::string to_string(const Pattern& pattern) {
  Writer writer(kMaxChars, kMaxDepth, true);
  writer.write(pattern.node());
  return writer.take();
}

}  // namespace qplan::pattern
