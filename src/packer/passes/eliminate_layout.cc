// Reshapes and transposes that do nothing, or cancel: identities are dropped, chains become one, a transpose
// that only moves extents of 1 is a reshape, and so is one joined with it; concatenations and splits of one
// part are dropped; a recurrent layer of one sample takes either order of steps and samples.
#include <algorithm>
#include <numeric>

#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {
namespace {

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

// A layer on the reshape of one sample's sequence [1, steps, k] to [steps, 1, k] reads the sequence itself.
bool rewrite_time_major(Rebuild& r, PreNode node, PassContext& context) {
  const bool has_choice =
      node.op() != nullptr &&
      std::ranges::any_of(node.op()->attrs, [](const op::AttrDef& def) { return def.name == "time_major"; });
  if (!has_choice || !op::attr_bool(node.node(), "time_major")) return false;
  const auto moved = r.post().producer(r[node.operand(0)], "reshape");
  const ir::Shape& shape = r.pre().type(node.operand(0)).shape;  // [steps, batch, k]
  if (!moved || r.post().type(moved->operand(0)).shape != ir::Shape{shape[1], shape[0], shape[2]} ||
      shape[1] != 1)
    return false;
  std::vector<PostValue> operands = r.operands(node);
  operands[0] = moved->operand(0);
  ir::Attrs attrs = node.attrs();
  attrs.set("time_major", false);
  const std::vector<PostValue> results =
      r.post().call_all(node.op()->name, operands, std::move(attrs), node.name());
  const ir::Shape sequence = r.pre().type(node.result()).shape;
  r.replace(node.result(), reshaped(r, results[0], sequence, node.name()));
  for (size_t i = 1; i < results.size(); ++i) r.replace(node.result(i), results[i]);
  context.fired("eliminate_layout", node.name(), "one sample, read without the reshape before it");
  return true;
}

}  // namespace

std::unique_ptr<ir::Function> run_eliminate_layout(const ir::Module&, const ir::Function& pre,
                                                   PassContext& context) {
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) {
    if (node.is("reshape")) return rewrite_reshape(r, node, context);
    if (node.is("transpose")) return rewrite_transpose(r, node, context);
    if (rewrite_time_major(r, node, context)) return true;
    const bool one_part =
        (node.is("concatenate") && node.num_operands() == 1) || (node.is("split") && node.num_results() == 1);
    if (!one_part) return false;
    r.replace(node.result(), r[node.operand(0)]);
    context.fired("eliminate_layout", node.name(), node.op()->name + " of one part, dropped");
    return true;
  });
}

// A fully connected layer on a flattened tensor whose axes were transposed before: its weights' columns take
// the order of the untransposed elements instead, and the data is only reshaped. What is left of NCHW at a
// network's end.
namespace {

Result fold_transpose(const pattern::RewriteContext& c, std::string* why) {
  const ir::Ints& axes = op::attr_ints(c.node("transposed").node(), "axes");
  const ir::Shape transposed = c.pre().type(c.matches["transposed"]).shape;
  const ir::Shape flat = c.pre().type(c.matches["flat"]).shape;
  if (axes.empty() || axes[0] != 0 || flat[0] != transposed[0]) {
    *why = "the first axis is not kept";
    return std::nullopt;
  }
  // Columns as [units, transposed extents], then back in the order before the transpose.
  const int64_t units = c.pre().type(c.matches["weight"]).shape[0];
  ir::Shape columns = transposed;
  columns[0] = units;
  ir::Ints inverse(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) inverse[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
  const std::string& name = c.root.name();
  PostValue weight = c.post().call("reshape", {c["weight"]}, {{"newshape", columns}}, name);
  weight = c.post().call("transpose", {weight}, {{"axes", inverse}}, name);
  weight = c.post().call("reshape", {weight}, {{"newshape", c.pre().type(c.matches["weight"]).shape}}, name);

  std::vector<PostValue> operands = c.r.operands(c.root);
  operands[0] = c.post().call("reshape", {c["data"]}, {{"newshape", flat}}, name);
  operands[1] = weight;
  *why = "the transpose before it is in the order of the weights' columns now";
  return c.post().call("qnn.dense", operands, c.root.attrs(), name);
}

}  // namespace

std::span<const pattern::Rewrite> fold_transpose_into_dense_rewrites() {
  static const std::vector<pattern::Rewrite> rows = {
      {.name = "fold_transpose_into_dense",
       .pattern = pattern::op(
           "qnn.dense",
           {pattern::op("reshape", {pattern::op("transpose", {pattern::any().as("data")}).as("transposed")})
                .rank(2)
                .as("flat"),
            pattern::constant().as("weight")}),
       .build = fold_transpose}};
  return rows;
}

std::unique_ptr<ir::Function> run_fold_transpose_into_dense(const ir::Module&, const ir::Function& pre,
                                                            PassContext& context) {
  return run_rewrites(fold_transpose_into_dense_rewrites(), pre, context);
}

}  // namespace qplan::passes
