// Reshapes and transposes that do nothing, or cancel: identities are dropped, chains become one, a transpose
// that only moves extents of 1 is a reshape, and so is one joined with it; concatenations and splits of one
// part are dropped.
#include <algorithm>
#include <numeric>

#include "src/packer/passes/passes.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {
namespace {

using pattern::PostValue;
using pattern::PreNode;
using pattern::Rebuild;

bool is_identity(const ir::Ints& axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// The axes whose extents are larger than 1 keep their order, hence the elements do.
bool keeps_element_order(const ir::Shape& shape, const ir::Ints& axes) {
  int64_t last = -1;
  for (const int64_t axis : axes) {
    if (shape[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

// A value that has the elements of data in the same order, as `shape`.
PostValue reshaped(Rebuild& r, PostValue data, const ir::Shape& shape, const std::string& name) {
  while (const auto inner = r.post().producer(data, "reshape")) data = inner->operand(0);
  if (r.post().type(data).shape == shape) return data;
  return r.post().call("reshape", {data}, {{"newshape", shape}}, name);
}

bool rewrite_reshape(Rebuild& r, PreNode node, PassContext& context) {
  const ir::Shape& shape = r.pre().type(node.result()).shape;
  const PostValue data = r[node.operand(0)];
  const bool chain = r.post().producer(data, "reshape").has_value();
  const bool identity = r.post().type(data).shape == shape;
  const bool normal = op::attr_ints(node.node(), "newshape") == shape;
  if (!chain && !identity && normal) return false;
  r.replace(node.result(), reshaped(r, data, shape, node.name()));
  context.fired("eliminate_layout", node.name(),
                identity ? "a reshape to the same shape, dropped"
                : chain  ? "merged with the reshape before it"
                         : "new shape written out");
  return true;
}

bool rewrite_transpose(Rebuild& r, PreNode node, PassContext& context) {
  const ir::Shape& shape = r.pre().type(node.result()).shape;
  ir::Ints axes = op::attr_ints(node.node(), "axes");
  PostValue data = r[node.operand(0)];
  const auto inner = r.post().producer(data, "transpose");
  if (inner) {
    const ir::Ints& first = op::attr_ints(inner->node(), "axes");
    for (int64_t& axis : axes) axis = first[static_cast<size_t>(axis)];
    data = inner->operand(0);
  }
  if (is_identity(axes)) {
    r.replace(node.result(), data);
    context.fired("eliminate_layout", node.name(),
                  inner ? "undoes the transpose before it, both dropped" : "a transpose of no axes, dropped");
    return true;
  }
  if (keeps_element_order(r.post().type(data).shape, axes)) {
    r.replace(node.result(), reshaped(r, data, shape, node.name()));
    context.fired("eliminate_layout", node.name(), "a transpose of extents of 1, now a reshape");
    return true;
  }
  if (!inner) return false;
  r.replace(node.result(), r.post().call("transpose", {data}, {{"axes", axes}}, node.name()));
  context.fired("eliminate_layout", node.name(), "merged with the transpose before it");
  return true;
}

}  // namespace

std::unique_ptr<ir::Function> run_eliminate_layout(const ir::Module&, const ir::Function& pre,
                                                   PassContext& context) {
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) {
    if (node.is("reshape")) return rewrite_reshape(r, node, context);
    if (node.is("transpose")) return rewrite_transpose(r, node, context);
    const bool one_part =
        (node.is("concatenate") && node.num_operands() == 1) || (node.is("split") && node.num_results() == 1);
    if (!one_part) return false;
    r.replace(node.result(), r[node.operand(0)]);
    context.fired("eliminate_layout", node.name(), node.op()->name + " of one part, dropped");
    return true;
  });
}

}  // namespace qplan::passes
