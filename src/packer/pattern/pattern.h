// Rewrites of functions: patterns say which nodes a rewrite wants, and what it makes of them goes into a new
// function.
#ifndef QPLAN_SRC_PACKER_PATTERN_PATTERN_H_
#define QPLAN_SRC_PACKER_PATTERN_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/op/op_def.h"

namespace qplan::pattern {

// ---- the function that is read and the one that is built ----
// Rewriting builds a new function from an old one. The two sides have different types: what is read is a
// PreValue of the old function, what is built on is a PostValue of the new one, and only Rebuild leads from
// the one to the other. An operand of the wrong function is therefore a compile error, not a wrong network.
//
//   auto result = rebuild(function, [&](Rebuild& r, PreNode node) {
//     if (!node.is("cast") || r.pre().type(node.operand(0)) != r.pre().type(node.result(0))) return false;
//     r.replace(node.result(0), r[node.operand(0)]);
//     return true;
//   });
//
// Nodes are visited once, in order; everything is linear in the size of the function and nothing recurses.

struct PreValue {
  ir::ValueId id;
  bool operator==(const PreValue&) const = default;
};
struct PostValue {
  ir::ValueId id;
  bool operator==(const PostValue&) const = default;
};

// A node of one side. It stays good while the new function grows; references that it returns do not.
template <typename Value>
class NodeView {
 public:
  NodeView(const ir::Function& function, size_t index) : function_(&function), index_(index) {}

  bool is(std::string_view op_name) const { return op() != nullptr && op()->name == op_name; }
  const op::OpDef* op() const { return node().op; }  // null: a call
  const std::string& name() const { return node().name; }
  const ir::Attrs& attrs() const { return node().attrs; }
  size_t num_operands() const { return node().operands.size(); }
  Value operand(size_t i) const { return {node().operands.at(i)}; }
  size_t num_results() const { return node().results.size(); }
  Value result(size_t i = 0) const { return {node().results.at(i)}; }
  // For op::attr_*() and the like, which look at attributes only.
  const ir::Node& node() const { return function_->nodes()[index_]; }

 private:
  const ir::Function* function_;
  size_t index_;
};
using PreNode = NodeView<PreValue>;
using PostNode = NodeView<PostValue>;

// The reading interface of both functions.
template <typename Value>
class FunctionView {
 public:
  explicit FunctionView(const ir::Function& function) : function_(&function) {}

  const ir::TensorType& type(Value value) const { return function_->type(value.id); }
  const std::string& name(Value value) const { return function_->value(value.id).name; }
  ir::ConstantRef constant(Value value) const { return function_->value(value.id).constant; }  // null: none
  // The node that makes the value; nullopt for parameters and constants.
  std::optional<NodeView<Value>> producer(Value value) const {
    const ir::Value& known = function_->value(value.id);
    if (known.kind != ir::ValueKind::kResult) return std::nullopt;
    return NodeView<Value>(*function_, known.producer);
  }
  // The same, when it is one of this operator.
  std::optional<NodeView<Value>> producer(Value value, std::string_view op) const {
    const std::optional<NodeView<Value>> node = producer(value);
    return node && node->is(op) ? node : std::nullopt;
  }
  // For reading what the views do not show.
  const ir::Function& function() const { return *function_; }

 private:
  const ir::Function* function_;
};

class Pre : public FunctionView<PreValue> {
 public:
  explicit Pre(const ir::Function& function) : FunctionView(function), uses_(ir::count_uses(function)) {}
  // By operands and outputs.
  uint32_t num_uses(PreValue value) const { return uses_.at(value.id.index); }

 private:
  std::vector<uint32_t> uses_;
};

class Post : public FunctionView<PostValue> {
 public:
  explicit Post(ir::Function& function) : FunctionView(function), function_(&function) {}

  PostValue constant_value(ir::ConstantRef constant, const std::string& name = "");
  PostValue scalar(float value) { return constant_value(ir::make_scalar(value)); }
  PostValue scalar(int32_t value) { return constant_value(ir::make_scalar(value)); }
  // A call of an operator with one result.
  PostValue call(std::string_view op, const std::vector<PostValue>& operands, ir::Attrs attrs,
                 const std::string& name);
  // All results.
  std::vector<PostValue> call_all(std::string_view op, const std::vector<PostValue>& operands,
                                  ir::Attrs attrs, const std::string& name);
  using FunctionView::constant;

 private:
  friend class Rebuild;
  ir::Function* function_;
};

class Rebuild {
 public:
  // The new function's parameters are the old one's, except for the types that param_type changes: the
  // replacement of such a parameter must be given with replace() before it is read.
  using ParamType = std::function<ir::TensorType(size_t index, const ir::TensorType& old)>;
  explicit Rebuild(const ir::Function& function, const ParamType& param_type = {});

  const Pre& pre() const { return pre_; }
  Post& post() { return post_; }
  PostValue param(size_t index) const { return params_.at(index); }

  // The new function's counterpart of the old value.
  PostValue operator[](PreValue value);
  std::vector<PostValue> operands(PreNode node);
  // The node as it is. Every node is either copied or has all results replaced, when its turn comes.
  void copy(PreNode node);
  // The types must be the same.
  void replace(PreValue value, PostValue replacement);
  // A replacement without a name gets the value's, which tensors are dumped and found by.
  void keep_name(PreValue value, PostValue replacement);
  // The new function, without the nodes that nothing uses any more. outputs: in place of the old one's.
  std::unique_ptr<ir::Function> finish();
  std::unique_ptr<ir::Function> finish(const std::vector<PostValue>& outputs);

 private:
  const ir::Function& old_;
  std::unique_ptr<ir::Function> new_;
  Pre pre_;
  Post post_;
  std::vector<PostValue> params_;
  std::vector<PostValue> map_;  // by old value
};

// Visits each node. rewrite(Rebuild&, PreNode) returns true after replacing all results, false to leave the
// node as it is. Null when nothing was rewritten.
template <typename Rewrite>
std::unique_ptr<ir::Function> rebuild(const ir::Function& function, Rewrite&& rewrite) {
  Rebuild state(function);
  bool changed = false;
  for (size_t i = 0; i < function.nodes().size(); ++i) {
    const PreNode node(function, i);
    if (rewrite(state, node)) {
      changed = true;
    } else {
      state.copy(node);
    }
  }
  return changed ? state.finish() : nullptr;
}

// Whether each node contributes to an output, in the order of the nodes.
std::vector<bool> live_nodes(const ir::Function& function);

// Rebuilding in any shape: values are replaced one by one, and all nodes between are copied. For passes that
// are neither a list of rewrites nor one visit of the nodes.
class Edit {
 public:
  explicit Edit(const ir::Function& function) : function_(function), rebuild_(function) {}

  const Pre& pre() const { return rebuild_.pre(); }
  Post& post() { return rebuild_.post(); }

  // The new function's counterpart of the old value. Nodes that are not replaced, up to the one that makes
  // it, are copied.
  PostValue operator[](PreValue value);
  // Later readers of the old value read the replacement, which has the same type. PackError
  // (QPLAN_INVALID_ARGUMENT) where nodes after the value's own have already been copied or replaced: they
  // would keep their old operands. A replacement may read the old value: operator[] before replace().
  void replace(PreValue value, PostValue replacement);
  // The new function; null when nothing was replaced.
  std::unique_ptr<ir::Function> finish();

 private:
  // Copies what is left of the nodes before this one.
  void advance_to(size_t node);

  const ir::Function& function_;
  Rebuild rebuild_;
  size_t next_ = 0;                 // first node that is neither copied nor replaced
  std::vector<uint32_t> replaced_;  // the results of node next_ that are replaced, where not all are
  bool changed_ = false;
};

// ---- patterns ----
// A pattern says which nodes a rewrite wants: a small immutable tree of combinators, matched from a value
// upwards through the nodes that make it. Patterns are values; copying one is cheap.
//
//   const Pattern weight = op("qnn.quantize", {constant().dtype(ir::kFloat32), constant(), constant()});
//   const Pattern layer = optional("clip", op("qnn.requantize", {op("qnn.conv2d", {any().as("data"),
//                             weight | constant()}).one_use()})).as("layer");
//
// Operands are matched in order. A pattern of op() that lists fewer operands than the node has leaves the
// rest alone; one that lists more does not match. Matching is deterministic and complete: alternatives left
// to right, operands of a commutative operator first as written, then swapped, and whatever fails later is
// tried with the next choice; the first complete match is the one. A match takes time linear in the pattern
// where there are no choices, and kMaxSteps in all cases.

struct PatternNode;

// A match that takes more steps is given up with a PackError: the pattern has too many choices for the graph.
inline constexpr uint32_t kMaxSteps = 1u << 21;
// Deeper patterns are refused when they are made.
inline constexpr uint32_t kMaxDepth = 500;

class Pattern {
 public:
  explicit Pattern(std::shared_ptr<const PatternNode> node) : node_(std::move(node)) {}
  const PatternNode& node() const { return *node_; }

  // ---- further conditions; each returns a new pattern ----
  // The matched value under this name. The same name twice in one pattern: the same value both times
  // (constants of the same type and content are one value).
  Pattern as(std::string name) const;
  Pattern dtype(ir::DType dtype) const;
  Pattern dtypes(std::vector<ir::DType> any_of) const;
  Pattern shape(ir::Shape shape) const;
  Pattern rank(size_t rank) const;
  // The value is read once, counted over operands and outputs of the function: by the node above and nothing
  // else. Not for the root.
  Pattern one_use() const;
  // The attribute of the node that makes the value, or its fallback, is this value.
  Pattern attr(std::string name, ir::AttrValue value) const;
  // Any other condition on a value, asked after all others below this pattern held: `text` ends the sentence
  // "expected a value ...".
  Pattern where(std::string text, std::function<bool(const ir::Function&, ir::ValueId)> holds) const;
  Pattern where(std::string text, std::function<bool(const Pre&, PreValue)> holds) const;

 private:
  std::shared_ptr<const PatternNode> node_;
};

Pattern any();       // any value: wildcard
Pattern constant();  // any constant
Pattern param();     // any parameter of the function
// A result of the operator. PackError (QPLAN_INVALID_ARGUMENT) for names that are not in op/ops.def, here and
// below.
Pattern op(std::string_view name, std::vector<Pattern> operands = {});
// A result of one of the operators.
Pattern one_of(const std::vector<std::string>& names, std::vector<Pattern> operands = {});
// The first two operands in either order; a single one means itself and any().
Pattern commutative(std::string_view name, std::vector<Pattern> operands);
// `first`, else `second`.
Pattern operator|(Pattern first, Pattern second);
// The operator on `inner` (its first operand; `others` are the following ones), or `inner` alone.
Pattern optional(std::string_view name, Pattern inner, std::vector<Pattern> others = {});
// A value that matches `child`, whose first operand leads through nodes of `path` (operator names; any number
// of nodes, each on the first operand of the next; the shortest way that matches is taken) to a value that
// matches `parent`. `parent` dominates `child`: of the values on the way, the parent's included, each is read
// once.
Pattern dominates(Pattern parent, const std::vector<std::string>& path, Pattern child);

// The parts of a Pattern, for the matcher and for printing.
namespace condition {
struct Capture {
  std::string name;
};
struct DTypeIn {
  std::vector<ir::DType> any_of;
};
struct ShapeIs {
  ir::Shape shape;
};
struct RankIs {
  size_t rank;
};
struct OneUse {};
struct AttrIs {
  std::string name;
  ir::AttrValue value;
};
struct Where {
  std::string text;
  std::function<bool(const Pre&, PreValue)> holds;
};
}  // namespace condition

using Condition = std::variant<condition::Capture, condition::DTypeIn, condition::ShapeIs, condition::RankIs,
                               condition::OneUse, condition::AttrIs, condition::Where>;

enum class PatternKind : uint8_t { kAny, kConstant, kParam, kOp, kEither, kOptional, kDominates };

struct PatternNode {
  PatternKind kind = PatternKind::kAny;
  std::vector<const op::OpDef*> ops;  // kOp: one of; kOptional: the one; kDominates: the path
  bool commutative = false;           // kOp
  // kOp: operands. kEither: first, second. kOptional: inner, others. kDominates: child, parent.
  std::vector<Pattern> children;
  std::vector<Condition> conditions;
  uint32_t depth = 1;  // of the tree below and with this node
};

// ---- texts for near misses ----
// The pattern without its own conditions and without names: "qnn.quantize(clip(...), any)".
// The operands' own patterns are left out.
std::string describe_kind(const PatternNode& pattern);
std::string describe(const Condition& condition);  // "of dtype int8", "read once"
std::string describe(const ir::AttrValue& value);  // "[1, 2]", "\"NHWC\"", "0.5"
// What makes the value: "qnn.conv2d 'conv_1'", "parameter '%x'"; with its type.
std::string label(const ir::Function& function, ir::ValueId value);
std::string node_label(const ir::Function& function, uint32_t node);
std::string describe(const ir::Function& function, ir::ValueId value);

// ---- matching ----
// Matches patterns against a function, and says why one does not match.

// Values by the names of Pattern::as; what an optional or an alternative left out is absent.
class Matches {
 public:
  bool has(std::string_view name) const;
  PreValue operator[](std::string_view name) const;  // PackError (QPLAN_INTERNAL) when absent
  std::optional<PreValue> find(std::string_view name) const;

  // The nodes that operators of the pattern matched, ascending, each once: the nodes that a match takes. Not
  // those that make a value of any().
  const std::vector<uint32_t>& nodes() const { return nodes_; }

  // For the matcher.
  void set(std::string name, PreValue value);
  void set_nodes(std::vector<uint32_t> nodes);
  void clear() {
    values_.clear();
    nodes_.clear();
  }

 private:
  std::map<std::string, PreValue, std::less<>> values_;
  std::vector<uint32_t> nodes_;
};

// Where a pattern came furthest before it failed.
struct NearMiss {
  // The way from the root: "qnn.requantize 'rq': operand 0 (data) -> qnn.conv2d 'conv_1': operand 1
  // (weight)".
  std::string place;
  std::string expected;      // "qnn.quantize of (a constant, ...)"
  std::string found;         // "parameter '%w' (Tensor[(8), float32])"
  uint32_t depth = 0;        // conditions that held before
  std::string text() const;  // one line
};

// The matches when `value` matches.
std::optional<Matches> match(const Pattern& pattern, const Pre& pre, PreValue value);
// Why it does not: of all ways that were tried the one that held longest (the first of equals). nullopt: it
// matches.
std::optional<NearMiss> explain(const Pattern& pattern, const Pre& pre, PreValue value);

// The pattern in words: "qnn.requantize(qnn.conv2d(any, constant), ...)".
std::string to_string(const Pattern& pattern);

// ---- rewrites ----
// A pattern and what takes the place of the value that it matched.

// The context of a callback. The old function can only be read (pre); what is built on are values of the new
// one, which only r[...] gives for an old one, so that a stale operand does not compile.
struct RewriteContext {
  Rebuild& r;
  const Matches& matches;
  PreNode root;  // the node whose (only) result matched

  const Pre& pre() const { return r.pre(); }
  Post& post() const { return r.post(); }
  // The new value for a matched one.
  PostValue operator[](std::string_view name) const { return r[matches[name]]; }
  bool has(std::string_view name) const { return matches.has(name); }
  // The node that makes a matched value; PackError (QPLAN_INTERNAL) when no node makes it.
  PreNode node(std::string_view name) const;
  ir::ConstantRef constant(std::string_view name) const { return r.pre().constant(matches[name]); }
};

struct Rewrite {
  std::string name;  // "fold_pad_into_conv2d": logs, --skip, near-miss reports
  int benefit = 0;   // higher ones are tried first at a node; equal ones in the order of the list
  Pattern pattern;
  // Builds the replacement of the root's result, of the same type; nullopt: the rewrite does not apply. `why`
  // gets the reason either way: one line for the log or the near-miss report ("the pad value 3 is not the
  // zero point 0").
  std::function<std::optional<PostValue>(const RewriteContext& context, std::string* why)> build;
};

// Told of each rewrite that fired: its name, the root's name, `why`.
using Fired = std::function<void(std::string_view rewrite, std::string_view node, std::string_view why)>;

// One visit of all nodes in order; null when none fired. Each node's single result is tried against the
// rewrites by benefit; all matching reads the old function, so that a second rewrite of what the first one
// built waits for the next visit.
std::unique_ptr<ir::Function> rewrite_once(const ir::Function& function, std::span<const Rewrite> rewrites,
                                           const Fired& fired);

// Why the rewrite does not fire at the value: the pattern's near miss, or the reason its callback gave; empty
// when it fires. For a function that is thrown away: nothing is changed.
std::string why_not(const Rewrite& rewrite, const ir::Function& function, ir::ValueId value);

}  // namespace qplan::pattern

#endif  // QPLAN_SRC_PACKER_PATTERN_PATTERN_H_
