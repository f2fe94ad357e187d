// A fully connected layer on a flattened tensor whose axes were transposed before: its weights' columns take
// the order of the untransposed elements instead, and the data is only reshaped. What is left of NCHW at a
// network's end.
#include "src/packer/passes/passes.h"
#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
namespace {

using pattern::PostValue;

std::optional<PostValue> fold_transpose(const pattern::RewriteContext& c, std::string* why) {
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
