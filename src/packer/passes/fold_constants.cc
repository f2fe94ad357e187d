// Nodes whose operands are all constants become constants: by the operator's host-only evaluation, or on the
// reference kernels that PassContext::evaluate stands for. Not so what says how a constant is quantised:
// qnn.dequantize, since integers under it are what layers are made of, and qnn.quantize, whose own pass
// counts what it saturates.
#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/op/properties.h"
#include "src/packer/op/shape.h"
#include "src/packer/passes/passes.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {
namespace {

using Constants = std::vector<ir::ConstantRef>;

// The operands, when all of them are constants.
std::optional<Constants> constant_operands(pattern::Rebuild& r, pattern::PreNode node) {
  if (node.op() == nullptr || node.num_operands() == 0) return std::nullopt;
  if (op::is_float_border(node.op())) return std::nullopt;
  Constants operands;
  for (const pattern::PostValue operand : r.operands(node)) {
    operands.push_back(r.post().constant(operand));
    if (operands.back() == nullptr) return std::nullopt;
  }
  return operands;
}

// Elements that an element of the result is computed from, where it is more than a few: convolutions and
// fully connected layers have no kernel by themselves, without the requantisation after them.
int64_t window_size(const pattern::Pre& pre, pattern::PreNode node) {
  const auto window = op::is_product(node.op()) ? std::nullopt : op::window_of(pre.function(), node.node());
  int64_t size = 0;
  if (!window) return 1;
  return checked_mul(window->kernel_h, window->kernel_w, &size) ? size : INT64_MAX;
}

// Takes from the budget what the node needs; false when it needs too much.
bool spend(const pattern::Pre& pre, pattern::PreNode node, const Constants& operands, FoldBudget* budget) {
  const int64_t window = window_size(pre, node);
  int64_t bytes = 0, work = 0;
  for (const ir::ConstantRef& operand : operands) {
    if (!checked_add(work, operand->type().size_bytes(), &work)) return false;
  }
  for (size_t i = 0; i < node.num_results(); ++i) {
    const int64_t size = pre.type(node.result(i)).size_bytes();
    int64_t covered = 0;
    if (!checked_add(bytes, size, &bytes) || !checked_mul(size, window, &covered) ||
        !checked_add(work, covered, &work)) {
      return false;
    }
  }
  if (bytes > budget->bytes || work > budget->work) return false;
  budget->bytes -= bytes;
  budget->work -= work;
  return true;
}

std::optional<Constants> evaluate_node(pattern::PreNode node, const Constants& operands,
                                       const PassContext& context) {
  if (node.op()->evaluate != nullptr) return node.op()->evaluate(node.node(), operands);
  if (!context.evaluate) return std::nullopt;
  return context.evaluate(node.node(), operands);
}

}  // namespace

std::unique_ptr<ir::Function> run_fold_constants(const ir::Module&, const ir::Function& pre,
                                                 PassContext& context) {
  return pattern::rebuild(pre, [&](pattern::Rebuild& r, pattern::PreNode node) {
    const std::optional<Constants> operands = constant_operands(r, node);
    if (!operands || !spend(r.pre(), node, *operands, &context.fold_budget)) return false;
    const std::optional<Constants> results = evaluate_node(node, *operands, context);
    if (!results) return false;
    if (results->size() != node.num_results()) {
      throw PackError(QPLAN_INTERNAL, "fold_constants: '" + node.name() + "' was evaluated to " +
                                          std::to_string(results->size()) + " results, expected " +
                                          std::to_string(node.num_results()));
    }
    for (size_t i = 0; i < results->size(); ++i) {
      r.replace(node.result(i), r.post().constant_value((*results)[i], r.pre().name(node.result(i))));
    }
    context.fired("fold_constants", node.name(), node.op()->name + " of constants");
    return true;
  });
}

}  // namespace qplan::passes
