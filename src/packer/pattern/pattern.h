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
#ifndef QPLAN_SRC_PACKER_PATTERN_PATTERN_H_
#define QPLAN_SRC_PACKER_PATTERN_PATTERN_H_

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
#include "src/packer/pattern/rebuild.h"

namespace qplan::pattern {

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
