// Operators that put tensors together, take parts of them and repeat them: Concat, Split, Slice, Gather,
// Tile, Expand, Pad; DepthToSpace and SpaceToDepth.
#include <algorithm>
#include <numeric>

#include "src/base/checked.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"

namespace qplan::onnx {
namespace {

// Extents of the parts that Split makes; nothing was said of them.
ir::Ints equal_parts(int64_t extent, int64_t count, bool uneven) {
  if (count < 1) invalid(cat("attribute 'num_outputs' is ", count));
  if (!uneven && extent % count != 0)
    invalid(cat("extent ", extent, " does not split into ", count, " equal parts"));
  const int64_t part = (extent - 1) / count + 1;  // from opset 18 on the last one may be smaller
  ir::Ints parts(static_cast<size_t>(count), part);
  parts.back() = extent - part * (count - 1);
  return parts;
}

struct Pads {
  ir::Ints before, after;  // for every axis
};

Pads spread(const ir::Ints& pads, const std::optional<ir::Ints>& axes, size_t rank) {
  const size_t count = axes ? axes->size() : rank;
  if (pads.size() != 2 * count) invalid(cat("there are ", pads.size(), " pads, expected ", 2 * count));
  Pads all{ir::Ints(rank, 0), ir::Ints(rank, 0)};
  for (size_t i = 0; i < count; ++i) {
    const auto axis = axes ? static_cast<size_t>(OpContext::axis_of((*axes)[i], rank)) : i;
    all.before[axis] = pads[i];
    all.after[axis] = pads[i + count];
  }
  return all;
}

// A list of positions of this many repeats; its contents are the caller's.
ir::Ints positions_along(const OpContext& op, int64_t extent, int64_t repeats) {
  int64_t count = 0;
  if (!checked_mul(extent, repeats, &count) || count > kMaxPositions) {
    invalid(cat("an axis of ", extent, " elements ", repeats, " times"));
  }
  if (count == 0) throw Unsupported{"a result without elements"};
  op.graph().charge(static_cast<uint64_t>(count) * sizeof(int64_t));
  return ir::Ints(static_cast<size_t>(count));
}

Value pad_value(const OpContext& op, ir::DType dtype) {
  if (op.opset() < 11) return scalar_of(static_cast<double>(op.attr_float("value", 0)), dtype);
  if (!op.has_input(2)) return scalar_of(0, dtype);
  const Value value = op.constant(2, "pad values");
  if (op.type(value).num_elements() != 1) invalid(cat("the pad value is ", op.type(value)));
  return op.reshape(value, {});
}

}  // namespace

void import_concat(const OpContext& op) {
  op.expect_counts(1, OpContext::kMaxOperands);
  const Attribute* axis = op.find_attr("axis", AttributeKind::kInt);
  if (axis == nullptr) invalid("attribute 'axis' is missing");
  std::vector<Value> parts;
  for (size_t i = 0; i < op.num_inputs(); ++i) {
    if (op.type(op.input(i)).num_elements() > 0) parts.push_back(op.input(i));
  }
  if (parts.empty()) return op.define(0, op.input(0));
  if (parts.size() == 1) return op.define(0, parts[0]);
  const int64_t normalized = OpContext::axis_of(axis->i, op.shape(parts[0]).size());
  op.define(0, op.emit("concatenate", parts, {{"axis", normalized}}));
}

void import_split(const OpContext& op) {
  op.expect_counts(1, op.opset() < 13 ? 1 : 2, OpContext::kMaxOperands);
  const Value& data = op.input(0);
  const int64_t axis = OpContext::axis_of(op.attr_int("axis", 0), op.shape(data).size());
  const int64_t extent = op.shape(data)[static_cast<size_t>(axis)];
  const auto outputs = static_cast<int64_t>(op.num_outputs());
  const int64_t num_outputs = op.attr_int("num_outputs", outputs);
  if (num_outputs != outputs) {
    invalid(cat("attribute 'num_outputs' is ", num_outputs, ", but the node has ", outputs, " outputs"));
  }
  std::optional<ir::Ints> parts;
  if (op.opset() < 13) {
    parts = op.attr_ints("split");
  } else if (op.has_input(1)) {
    parts = op.ints(1, "sizes");
  }
  if (!parts) parts = equal_parts(extent, outputs, op.opset() >= 18);
  if (static_cast<int64_t>(parts->size()) != outputs) {
    invalid(cat("there are ", parts->size(), " sizes, but ", outputs, " outputs"));
  }
  ir::Ints ends;
  int64_t end = 0;
  for (const int64_t part : *parts) {
    if (part < 0 || part > extent - end) invalid(cat("sizes ", to_text(*parts), " do not make ", extent));
    if (part == 0) throw Unsupported{"a part without elements"};
    ends.push_back(end += part);
  }
  if (end != extent) invalid(cat("sizes ", to_text(*parts), " do not make ", extent));
  if (outputs == 1) return op.define(0, data);
  ends.pop_back();
  const bool equal = std::ranges::adjacent_find(*parts, std::ranges::not_equal_to()) == parts->end();
  const ir::AttrValue how = equal ? ir::AttrValue(outputs) : ir::AttrValue(ends);
  const auto results = op.emit_many("split", {data}, {{"indices_or_sections", how}, {"axis", axis}});
  for (size_t i = 0; i < results.size(); ++i) op.define(i, results[i]);
}

// Backwards, a start in front of the first element is that element; NumPy, and strided_slice, take nothing.
void clamp_backward_starts(const ir::Shape& shape, ir::Attrs* attrs) {
  ir::Ints begin = attrs->get_ints("begin", {});
  const ir::Ints steps = attrs->get_ints("strides", {}), axes = attrs->get_ints("axes", {});
  for (size_t i = 0; i < std::min(begin.size(), steps.size()); ++i) {
    const int64_t axis = i < axes.size() ? axes[i] : static_cast<int64_t>(i);
    const auto rank = static_cast<int64_t>(shape.size());
    if (steps[i] >= 0 || axis < -rank || axis >= rank) continue;
    begin[i] = std::max(begin[i], -shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)]);
  }
  attrs->set("begin", begin);
}

void import_slice(const OpContext& op) {
  ir::Attrs attrs;
  const Value& data = op.input(0);
  if (op.opset() < 10) {
    op.expect_counts(1, 1);
    attrs.set("begin", op.attr_ints("starts").value_or(ir::Ints{}));
    attrs.set("end", op.attr_ints("ends").value_or(ir::Ints{}));
    attrs.set("axes", op.attr_ints("axes").value_or(ir::Ints{}));
  } else {
    op.expect_counts(3, 5);
    attrs.set("begin", op.ints(1, "starts"));
    attrs.set("end", op.ints(2, "ends"));
    if (op.has_input(3)) attrs.set("axes", op.ints(3, "axes"));
    if (op.has_input(4)) {
      attrs.set("strides", op.ints(4, "steps"));
      clamp_backward_starts(op.shape(data), &attrs);
    }
  }
  ir::Node node;
  node.op = &op::get_op("strided_slice");
  node.attrs = attrs;
  ir::Shape shape;
  for (const op::SliceRange& range : op::slice_ranges(node, op.shape(data))) shape.push_back(range.count);
  if (std::ranges::find(shape, 0) == shape.end())
    return op.define(0, op.emit("strided_slice", {data}, attrs));
  if (!data.is_constant()) throw Unsupported{"a result without elements"};
  op.define(0, ir::make_constant(op.type(data).dtype, shape, std::vector<uint8_t>()));
}

// Kernels read indices of int32, which name every element of an axis.
Value rows_of_table(const OpContext& op, const Value& table, const Value& indices, int64_t axis) {
  const bool is_wide = !indices.is_constant() && op.type(indices).dtype == ir::kInt64;
  return op.emit("take",
                 {table, is_wide ? op.emit("cast", {indices}, {{"dtype", std::string("int32")}}) : indices},
                 {{"axis", axis}});
}

void import_gather(const OpContext& op) {
  op.expect_counts(2, 2);
  const int64_t axis = OpContext::axis_of(op.attr_int("axis", 0), op.shape(op.input(0)).size());
  op.define(0, rows_of_table(op, op.input(0), op.input(1), axis));
}

void import_tile(const OpContext& op) {
  op.expect_counts(2, 2);
  Value data = op.input(0);
  const ir::Shape shape = op.shape(data);
  const ir::Ints repeats = op.ints(1, "repeats");
  if (repeats.size() != shape.size()) {
    invalid(cat("there are ", repeats.size(), " repeats, expected ", shape.size()));
  }
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (repeats[axis] < 0 || repeats[axis] > kMaxPositions) invalid(cat("repeats are ", to_text(repeats)));
    ir::Ints positions = positions_along(op, shape[axis], repeats[axis]);
    for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i) % shape[axis];
    data = taken(op, data, axis, positions);
  }
  op.define(0, data);
}

// Broadcasts both ways: an extent of 1 among those that are wanted keeps the data's.
void import_expand(const OpContext& op) {
  op.expect_counts(2, 2);
  Value data = op.input(0);
  const ir::Ints wanted = op.ints(1, "extents");
  check_extents(wanted);
  const ir::Shape shape = op::broadcast_shape(op.shape(data), wanted);
  if (std::ranges::find(shape, 0) != shape.end()) throw Unsupported{"a result without elements"};
  ir::Shape own = op.shape(data);
  own.insert(own.begin(), shape.size() - own.size(), 1);
  data = op.reshape(data, own);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (own[axis] != shape[axis]) data = taken(op, data, axis, positions_along(op, 1, shape[axis]));
  }
  op.define(0, data);
}

// Blocks of pixels as channels: NCHW, with the block's rows and columns before the channels, or after them.
namespace {

int64_t block_size(const OpContext& op, const ir::Shape& shape) {
  const Attribute* block = op.find_attr("blocksize", AttributeKind::kInt);
  if (block == nullptr) invalid("attribute 'blocksize' is missing");
  if (shape.size() != 4) invalid(cat("the data has rank ", shape.size(), ", expected 4"));
  if (block->i < 1 || block->i >= 1 << 15) invalid(cat("attribute 'blocksize' is ", block->i));
  return block->i;
}

[[noreturn]] void does_not_divide(int64_t block, const ir::Shape& shape) {
  invalid(cat("blocks of ", block, " do not divide shape ", to_text(shape)));
}

}  // namespace

void import_depth_to_space(const OpContext& op) {
  op.expect_counts(1, 1);
  const ir::Shape s = op.shape(op.input(0));
  const int64_t b = block_size(op, s);
  if (s[1] % (b * b) != 0) does_not_divide(b, s);
  const std::string mode = op.attr_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") invalid("attribute 'mode' is " + in_quotes(mode));
  const int64_t channels = s[1] / (b * b);
  const ir::Shape split = mode == "DCR" ? ir::Shape{s[0], b, b, channels, s[2], s[3]}
                                        : ir::Shape{s[0], channels, b, b, s[2], s[3]};
  const ir::Ints axes = mode == "DCR" ? ir::Ints{0, 3, 4, 1, 5, 2} : ir::Ints{0, 1, 4, 2, 5, 3};
  const Value moved = op.emit("transpose", {op.reshape(op.input(0), split)}, {{"axes", axes}});
  op.define(0, op.reshape(moved, {s[0], channels, s[2] * b, s[3] * b}));
}

void import_space_to_depth(const OpContext& op) {
  op.expect_counts(1, 1);
  const ir::Shape s = op.shape(op.input(0));
  const int64_t b = block_size(op, s);
  if (s[2] % b != 0 || s[3] % b != 0) does_not_divide(b, s);
  const Value split = op.reshape(op.input(0), {s[0], s[1], s[2] / b, b, s[3] / b, b});
  const Value moved = op.emit("transpose", {split}, {{"axes", ir::Ints{0, 3, 5, 1, 2, 4}}});
  op.define(0, op.reshape(moved, {s[0], s[1] * b * b, s[2] / b, s[3] / b}));
}

// Padding of an axis by elements of the data: "reflect" mirrors without the edge, "edge" repeats it, "wrap"
// begins at the other end.
namespace {

int64_t reflected(int64_t from, int64_t extent) {
  if (extent == 1) return 0;
  const int64_t period = 2 * (extent - 1);
  const int64_t at = ((from % period) + period) % period;
  return at < extent ? at : period - at;
}

Value padded_by_data(const OpContext& op, Value data, const Pads& pads, const std::string& mode) {
  const ir::Shape shape = op.shape(data);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int64_t extent = shape[axis], before = pads.before[axis], after = pads.after[axis];
    if (before > kMaxPositions || after > kMaxPositions) invalid(cat("pads ", before, " and ", after));
    ir::Ints positions = positions_along(op, 1, extent + before + after);
    for (size_t i = 0; i < positions.size(); ++i) {
      const int64_t from = static_cast<int64_t>(i) - before;
      positions[i] = mode == "reflect" ? reflected(from, extent)
                     : mode == "edge"  ? std::clamp<int64_t>(from, 0, extent - 1)
                                       : ((from % extent) + extent) % extent;
    }
    data = taken(op, data, axis, positions);
  }
  return data;
}

// Negative padding takes elements away before all else.
Value without_cut(const OpContext& op, const Value& data, Pads* pads) {
  const ir::Shape& shape = op.shape(data);
  ir::Ints begin(shape.size(), 0), end = shape;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    int64_t &before = pads->before[axis], &after = pads->after[axis];
    if (before < -shape[axis] || after < -shape[axis]) invalid(cat("pads ", before, " and ", after));
    begin[axis] -= std::min<int64_t>(before, 0);
    end[axis] += std::min<int64_t>(after, 0);
    if (begin[axis] >= end[axis]) throw Unsupported{"pads that leave nothing of the data"};
    before = std::max<int64_t>(before, 0);
    after = std::max<int64_t>(after, 0);
  }
  if (begin == ir::Ints(shape.size(), 0) && end == shape) return data;
  return op.emit("strided_slice", {data}, {{"begin", begin}, {"end", end}});
}

}  // namespace

void import_pad(const OpContext& op) {
  const bool as_inputs = op.opset() >= 11;
  op.expect_counts(as_inputs ? 2 : 1, op.opset() >= 18 ? 4 : as_inputs ? 3 : 1);
  const std::string mode = op.attr_string("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    throw Unsupported{"mode " + in_quotes(mode)};
  }
  Value data = op.input(0);
  std::optional<ir::Ints> axes;
  if (op.has_input(3)) axes = op.ints(3, "axes");
  const ir::Ints pads = as_inputs ? op.ints(1, "pads") : op.attr_ints("pads").value_or(ir::Ints{});
  Pads all = spread(pads, axes, op.shape(data).size());
  data = without_cut(op, data, &all);
  if (mode != "constant") return op.define(0, padded_by_data(op, data, all, mode));
  std::vector<ir::Ints> width;
  bool any = false;
  for (size_t i = 0; i < all.before.size(); ++i) {
    any = any || all.before[i] > 0 || all.after[i] > 0;
    width.push_back({all.before[i], all.after[i]});
  }
  const Value value = pad_value(op, op.type(data).dtype);
  op.define(0, any ? op.emit("nn.pad", {data, value}, {{"pad_width", width}}) : data);
}

}  // namespace qplan::onnx
