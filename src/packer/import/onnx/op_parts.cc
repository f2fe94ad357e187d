// Operators that put tensors together and take parts of them: Concat, Split, Slice, Gather, Pad.
#include <algorithm>
#include <numeric>

#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/op/shape.h"

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

void import_gather(const OpContext& op) {
  op.expect_counts(2, 2);
  const int64_t axis = OpContext::axis_of(op.attr_int("axis", 0), op.shape(op.input(0)).size());
  op.define(0, op.emit("take", {op.input(0), op.input(1)}, {{"axis", axis}}));
}

void import_pad(const OpContext& op) {
  const bool as_inputs = op.opset() >= 11;
  op.expect_counts(as_inputs ? 2 : 1, op.opset() >= 18 ? 4 : as_inputs ? 3 : 1);
  if (const std::string mode = op.attr_string("mode", "constant"); mode != "constant") {
    throw Unsupported{"mode " + quoted(mode)};
  }
  const Value& data = op.input(0);
  std::optional<ir::Ints> axes;
  if (op.has_input(3)) axes = op.ints(3, "axes");
  const ir::Ints pads = as_inputs ? op.ints(1, "pads") : op.attr_ints("pads").value_or(ir::Ints{});
  const Pads all = spread(pads, axes, op.shape(data).size());
  std::vector<ir::Ints> width;
  bool any = false;
  for (size_t i = 0; i < all.before.size(); ++i) {
    if (all.before[i] < 0 || all.after[i] < 0) throw Unsupported{"negative pads"};
    any = any || all.before[i] > 0 || all.after[i] > 0;
    width.push_back({all.before[i], all.after[i]});
  }
  const Value value = pad_value(op, op.type(data).dtype);
  op.define(0, any ? op.emit("nn.pad", {data, value}, {{"pad_width", width}}) : data);
}

}  // namespace qplan::onnx
