// Two nodes with the same operator, operands and attributes compute the same: the first one's results serve
// both.
#include <algorithm>
#include <unordered_map>

#include "src/packer/ir/key.h"
#include "src/packer/passes/passes.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {
namespace {

using pattern::PostValue;
using pattern::PreNode;
using pattern::Rebuild;

// Equal for equal computations. An attribute counts with its fallback, so that a written default changes
// nothing.
std::string key_of(Rebuild& r, PreNode node) {
  std::string key;
  ir::append_key(&key, node.op());
  ir::append_key(&key, node.num_operands());
  for (const PostValue operand : r.operands(node)) ir::append_key(&key, operand.id.index);
  for (const op::AttrDef& def : node.op()->attrs) {
    const ir::AttrValue* value = node.attrs().find(def.name);
    if (value == nullptr && def.fallback) value = &*def.fallback;
    ir::append_key(&key, value != nullptr);
    if (value != nullptr) ir::append_key(&key, *value);
  }
  return key;
}

}  // namespace

std::unique_ptr<ir::Function> run_common_subexpressions(const ir::Module&, const ir::Function& pre,
                                                        PassContext& context) {
  std::unordered_map<std::string, PreNode> seen;
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) {
    if (node.op() == nullptr) return false;
    const auto [first, inserted] = seen.try_emplace(key_of(r, node), node);
    if (inserted) return false;
    for (size_t i = 0; i < node.num_results(); ++i) r.replace(node.result(i), r[first->second.result(i)]);
    context.fired("common_subexpressions", node.name(), "the same as '" + first->second.name() + "'");
    return true;
  });
}

}  // namespace qplan::passes
