// Matches patterns (pattern.h) against a function, and says why one does not match.
#ifndef QPLAN_SRC_PACKER_PATTERN_REWRITE_H_
#define QPLAN_SRC_PACKER_PATTERN_REWRITE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/pattern/pattern.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::pattern {

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

// Rewrites: a pattern and what takes the place of the value that it matched.

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

#endif  // QPLAN_SRC_PACKER_PATTERN_REWRITE_H_
