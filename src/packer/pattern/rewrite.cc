#include "src/packer/pattern/rewrite.h"

#include <algorithm>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::pattern {
namespace {

// Higher benefit first, equal ones in the order of the list.
std::vector<const Rewrite*> by_benefit(std::span<const Rewrite> rewrites) {
  std::vector<const Rewrite*> order;
  for (const Rewrite& rewrite : rewrites) order.push_back(&rewrite);
  std::ranges::stable_sort(order, std::ranges::greater(), [](const Rewrite* r) { return r->benefit; });
  return order;
}

// Builds the replacement of the node; errors name the rewrite.
std::optional<PostValue> build(const Rewrite& rewrite, Rebuild& r, const Matches& matches, PreNode node,
                               std::string* why) {
  try {
    const std::optional<PostValue> result = rewrite.build({r, matches, node}, why);
    if (result) r.replace(node.result(), *result);
    return result;
  } catch (const PackError& error) {
    throw PackError(error.status(), cat("rewrite '", rewrite.name, "' at ",
                                        label(r.pre().function(), node.result().id), ": ", error.what()));
  }
}

}  // namespace

PreNode RewriteContext::node(std::string_view name) const {
  const std::optional<PreNode> node = pre().producer(matches[name]);
  if (!node) throw PackError(QPLAN_INTERNAL, cat("pattern: '", name, "' is no node's result"));
  return *node;
}

std::unique_ptr<ir::Function> rewrite_once(const ir::Function& function, std::span<const Rewrite> rewrites,
                                           const Fired& fired) {
  const std::vector<const Rewrite*> order = by_benefit(rewrites);
  return rebuild(function, [&](Rebuild& r, PreNode node) {
    // A value that nothing reads will be removed anyway.
    if (node.num_results() != 1 || r.pre().num_uses(node.result()) == 0) return false;
    for (const Rewrite* rewrite : order) {
      const std::optional<Matches> matches = match(rewrite->pattern, r.pre(), node.result());
      std::string why;
      if (!matches || !build(*rewrite, r, *matches, node, &why)) continue;
      if (fired) fired(rewrite->name, node.name(), why);
      return true;
    }
    return false;
  });
}

std::string why_not(const Rewrite& rewrite, const ir::Function& function, ir::ValueId value) {
  Rebuild r(function);
  const std::optional<PreNode> node = r.pre().producer(PreValue{value});
  if (!node || node->num_results() != 1) return "rewrites look at the results of nodes with one result";
  if (const std::optional<NearMiss> miss = explain(rewrite.pattern, r.pre(), PreValue{value})) {
    return miss->text();
  }
  for (size_t i = 0; i < function.value(value).producer; ++i) r.copy(PreNode(function, i));
  const Matches matches = *match(rewrite.pattern, r.pre(), PreValue{value});
  std::string why;
  if (build(rewrite, r, matches, *node, &why)) return "";
  return cat(label(function, value), ": the pattern matches, but ",
             why.empty() ? "the rewrite does not change it" : why);
}

}  // namespace qplan::pattern
