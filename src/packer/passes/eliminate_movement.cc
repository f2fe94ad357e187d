// Movements that do nothing or undo each other: reshapes and transposes, slices and concatenations.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::passes {

// Reshapes and transposes that do nothing, or cancel: identities are dropped, chains become one, a transpose
// that only moves extents of 1 is a reshape, and so is one joined with it; concatenations and splits of one
// part are dropped; a recurrent layer of one sample takes either order of steps and samples.

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

// Slices and concatenations along one axis that undo each other, as loops leave them that write one row of a
// list in each round: concatenate(list[:i], row, list[i+1:]). Without them every round copies the list. All
// rows read what was built (post), so that one visit handles a list of any length.

namespace {

using pattern::any;
using pattern::op;

// Elements [begin, end) of one axis of `data`, the other axes whole.
struct Slice {
  PostValue data;
  size_t axis = 0;
  int64_t begin = 0, end = 0;
};

// nullopt: of several axes, or with steps.
std::optional<Slice> slice_of(const ir::Node& node, const ir::Shape& shape, PostValue data) {
  const std::vector<op::SliceRange> ranges = op::slice_ranges(node, shape);
  std::optional<Slice> slice;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].step != 1) return std::nullopt;
    if (ranges[i].count == shape[i]) continue;
    if (slice) return std::nullopt;
    slice = Slice{data, i, ranges[i].begin, ranges[i].begin + ranges[i].count};
  }
  return slice;
}

std::optional<Slice> slice_of(const Post& post, PostValue value) {
  const auto node = post.producer(value, "strided_slice");
  if (!node) return std::nullopt;
  return slice_of(node->node(), post.type(node->operand(0)).shape, node->operand(0));
}

// The slice, of what its data is a slice of.
PostValue sliced(Post& post, Slice slice, const std::string& name) {
  if (const std::optional<Slice> inner = slice_of(post, slice.data); inner && inner->axis == slice.axis)
    slice = {inner->data, slice.axis, inner->begin + slice.begin, inner->begin + slice.end};
  if (slice.begin == 0 && slice.end == post.type(slice.data).shape[slice.axis]) return slice.data;
  return post.call("strided_slice", {slice.data},
                   {{"begin", ir::Ints{slice.begin}},
                    {"end", ir::Ints{slice.end}},
                    {"axes", ir::Ints{static_cast<int64_t>(slice.axis)}}},
                   name);
}

size_t axis_of(const ir::Node& concatenate, const ir::Shape& shape) {
  return static_cast<size_t>(op::normalized_axis(op::attr_int(concatenate, "axis"), shape.size()));
}

std::optional<Slice> root_slice(const RewriteContext& context) {
  return slice_of(context.root.node(), context.pre().type(context.root.operand(0)).shape, context["data"]);
}

Result merge_slices(const RewriteContext& context, std::string* why) {
  const std::optional<Slice> slice = root_slice(context);
  if (!slice) return std::nullopt;
  const std::optional<Slice> inner = slice_of(context.post(), slice->data);
  if (!inner || inner->axis != slice->axis) {
    *why = "the data is no slice along the same axis";
    return std::nullopt;
  }
  *why = "merged with the slice before it";
  return sliced(context.post(), *slice, context.root.name());
}

// A slice of one part becomes a slice of that part's tensor; a slice of several whole parts concatenates
// those.
Result slice_of_concatenate(const RewriteContext& context, std::string* why) {
  const std::optional<Slice> slice = root_slice(context);
  if (!slice) return std::nullopt;
  Post& post = context.post();
  const auto joined = post.producer(slice->data, "concatenate");
  if (!joined || axis_of(joined->node(), post.type(slice->data).shape) != slice->axis) {
    *why = "the data is no concatenation along the same axis";
    return std::nullopt;
  }
  std::vector<PostValue> parts;
  int64_t begin = 0;
  for (size_t i = 0; i < joined->num_operands(); ++i) {
    const PostValue part = joined->operand(i);
    const int64_t end = begin + post.type(part).shape[slice->axis];
    if (begin <= slice->begin && slice->end <= end) {
      *why = "it is of one part";
      return sliced(post, {part, slice->axis, slice->begin - begin, slice->end - begin}, context.root.name());
    }
    if (slice->begin < end && begin < slice->end) {
      if (begin < slice->begin || slice->end < end) {
        *why = "it ends within a part";
        return std::nullopt;
      }
      parts.push_back(part);
    }
    begin = end;
  }
  *why = cat("it is ", parts.size(), " of ", joined->num_operands(), " parts");
  return post.call("concatenate", parts, joined->attrs(), context.root.name());
}

// Neighbours that are neighbours in what they are slices of.
Result join_slices(const RewriteContext& context, std::string* why) {
  Post& post = context.post();
  const size_t axis = axis_of(context.root.node(), context.pre().type(context.root.result()).shape);
  std::vector<PostValue> parts;
  std::optional<Slice> last;
  bool joins = false;
  const auto finish = [&] {
    if (last) parts.push_back(sliced(post, *last, context.root.name()));
    last.reset();
  };
  for (size_t i = 0; i < context.root.num_operands(); ++i) {
    const PostValue part = context.r[context.root.operand(i)];
    const std::optional<Slice> slice = slice_of(post, part);
    const bool fits = slice && slice->axis == axis;
    if (fits && last && last->data == slice->data && last->end == slice->begin) {
      last->end = slice->end;
      joins = true;
      continue;
    }
    finish();
    if (fits) {
      last = slice;
    } else {
      parts.push_back(part);
    }
  }
  finish();
  if (!joins) {
    *why = "no parts are neighbours in what they are slices of";
    return std::nullopt;
  }
  *why = cat("of ", count_text(parts.size(), "part"));
  if (parts.size() == 1) return parts[0];
  return post.call("concatenate", parts, context.root.attrs(), context.root.name());
}

}  // namespace

std::span<const Rewrite> simplify_slices_rewrites() {
  static const std::vector<Rewrite> kRewrites = {
      {"merge_slices", 0, op("strided_slice", {any().as("data")}), merge_slices},
      {"slice_of_concatenate", 0, op("strided_slice", {any().as("data")}), slice_of_concatenate},
      {"join_slices", 0, op("concatenate"), join_slices},
  };
  return kRewrites;
}

std::unique_ptr<ir::Function> run_simplify_slices(const ir::Module&, const ir::Function& pre,
                                                  PassContext& context) {
  return run_rewrites(simplify_slices_rewrites(), pre, context);
}

}  // namespace qplan::passes
