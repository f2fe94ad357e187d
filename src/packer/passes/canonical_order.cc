// Nodes in the order in which a walk from the outputs, operands from first to last, finishes them: two graphs
// of the same computation become the same list, in whatever order their sources wrote it.
#include <utility>

#include "src/packer/passes/passes.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {
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
