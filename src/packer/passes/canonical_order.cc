// Three passes over whole functions: dead code, common subexpressions, one order of nodes.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "src/packer/ir/cat.h"
#include "src/packer/passes/pass.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {

// Drops nodes that no output depends on. Parameters stay: they are the model's interface.
std::unique_ptr<ir::Function> run_dead_code(const ir::Module&, const ir::Function& pre,
                                            PassContext& context) {
  const std::vector<bool> live = pattern::live_nodes(pre);
  if (std::ranges::all_of(live, [](bool alive) { return alive; })) return nullptr;
  pattern::Rebuild rebuild(pre);
  for (size_t i = 0; i < live.size(); ++i) {
    const pattern::PreNode node(pre, i);
    if (live[i]) {
      rebuild.copy(node);
    } else {
      context.fired("dead_code", node.name(), "unused, dropped");
    }
  }
  return rebuild.finish();
}

// Two nodes with the same operator, operands and attributes compute the same: the first one's results serve
// both.
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

// Nodes in the order in which a walk from the outputs, operands from first to last, finishes them: two graphs
// of the same computation become the same list, in whatever order their sources wrote it.

namespace {

using pattern::PreNode;
using pattern::Rebuild;

class FinishingOrder {
 public:
  explicit FinishingOrder(const ir::Function& function)
      : function_(function), seen_(function.nodes().size(), false) {}

  std::vector<size_t> run() {
    for (const ir::ValueId output : function_.outputs()) {
      enter(output);
      while (!open_.empty()) step();
    }
    return std::move(order_);
  }

 private:
  struct Open {
    size_t node;
    size_t next_operand;
  };

  void enter(ir::ValueId value) {
    const ir::Value& known = function_.value(value);
    if (known.kind != ir::ValueKind::kResult || seen_[known.producer]) return;
    seen_[known.producer] = true;
    open_.push_back({known.producer, 0});
  }

  void step() {
    Open& top = open_.back();
    const ir::Node& node = function_.nodes()[top.node];
    if (top.next_operand < node.operands.size()) {
      enter(node.operands[top.next_operand++]);
      return;
    }
    order_.push_back(top.node);
    open_.pop_back();
  }

  const ir::Function& function_;
  std::vector<bool> seen_;
  std::vector<Open> open_;
  std::vector<size_t> order_;
};

}  // namespace

std::unique_ptr<ir::Function> run_canonical_order(const ir::Module&, const ir::Function& pre,
                                                  PassContext& context) {
  const std::vector<size_t> order = FinishingOrder(pre).run();
  bool same = order.size() == pre.nodes().size();
  for (size_t i = 0; same && i < order.size(); ++i) same = order[i] == i;
  if (same) return nullptr;
  Rebuild r(pre);
  for (const size_t index : order) r.copy(PreNode(pre, index));
  context.fired("canonical_order", pre.name(), "nodes sorted");
  return r.finish();
}

}  // namespace qplan::passes
