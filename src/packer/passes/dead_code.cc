// Drops nodes that no output depends on. Parameters stay: they are the model's interface.
#include <algorithm>

#include "src/packer/passes/passes.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {

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

}  // namespace qplan::passes
