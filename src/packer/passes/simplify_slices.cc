// Slices and concatenations along one axis that undo each other, as loops leave them that write one row of a
// list in each round: concatenate(list[:i], row, list[i+1:]). Without them every round copies the list. All
// rows read what was built (post), so that one visit handles a list of any length.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/op/shape.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
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
