// Nodes whose operands are all constants become constants: by the operator's host-only evaluation, or on the
// reference kernels that PassContext::evaluate stands for.
#include "src/packer/error.h"
#include "src/packer/passes/passes.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {
namespace {

// What one run may create: a small file could pad or broadcast a constant to any size.
constexpr int64_t kMaxFoldedBytes = int64_t{256} << 20;

using Constants = std::vector<ir::ConstantRef>;

std::optional<Constants> evaluate(pattern::Rebuild& r, pattern::PreNode node, const PassContext& context) {
  if (node.op() == nullptr || node.num_operands() == 0) return std::nullopt;
  Constants operands;
  for (const pattern::PostValue operand : r.operands(node)) {
    operands.push_back(r.post().constant(operand));
    if (operands.back() == nullptr) return std::nullopt;
  }
  if (node.op()->evaluate != nullptr) return node.op()->evaluate(node.node(), operands);
  if (!context.evaluate) return std::nullopt;
  return context.evaluate(node.node(), operands);
}

}  // namespace

std::unique_ptr<ir::Function> run_fold_constants(const ir::Module&, const ir::Function& pre,
                                                 PassContext& context) {
  int64_t budget = kMaxFoldedBytes;
  return pattern::rebuild(pre, [&](pattern::Rebuild& r, pattern::PreNode node) {
    int64_t bytes = 0;
    for (size_t i = 0; i < node.num_results(); ++i) {
      const int64_t size = r.pre().type(node.result(i)).size_bytes();
      if (size > budget - bytes) return false;
      bytes += size;
    }
    const std::optional<Constants> results = evaluate(r, node, context);
    if (!results) return false;
    if (results->size() != node.num_results()) {
      throw PackError(QPLAN_INTERNAL, "fold_constants: '" + node.name() + "' was evaluated to " +
                                          std::to_string(results->size()) + " results, expected " +
                                          std::to_string(node.num_results()));
    }
    for (size_t i = 0; i < results->size(); ++i) {
      r.replace(node.result(i), r.post().constant_value((*results)[i], r.pre().name(node.result(i))));
    }
    budget -= bytes;
    context.fired("fold_constants", node.name(), node.op()->name + " of constants");
    return true;
  });
}

}  // namespace qplan::passes
