// Rewrites: a pattern and what takes the place of the value that it matched.
#ifndef QPLAN_SRC_PACKER_PATTERN_REWRITE_H_
#define QPLAN_SRC_PACKER_PATTERN_REWRITE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/packer/pattern/matcher.h"

namespace qplan::pattern {

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
// Visits until none fires. PackError (QPLAN_INTERNAL) naming the last rewrite after max_visits.
std::unique_ptr<ir::Function> rewrite_to_fixpoint(const ir::Function& function,
                                                  std::span<const Rewrite> rewrites, const Fired& fired,
                                                  uint32_t max_visits = 1000);

// Why the rewrite does not fire at the value: the pattern's near miss, or the reason its callback gave; empty
// when it fires. For a function that is thrown away: nothing is changed.
std::string why_not(const Rewrite& rewrite, const ir::Function& function, ir::ValueId value);

}  // namespace qplan::pattern

#endif  // QPLAN_SRC_PACKER_PATTERN_REWRITE_H_
