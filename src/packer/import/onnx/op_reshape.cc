// Operators that change the shape and not the order of elements, and Transpose.
#include <algorithm>

#include "src/base/checked.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

// The extents that Reshape means: 0 keeps the one of the same axis, -1 is what is left.
ir::Shape resolved(const ir::Shape& from, const ir::Ints& wanted, bool allow_zero, int64_t total) {
  ir::Shape shape = wanted;
  const auto refuse = [&](const std::string& why) {
    invalid(cat("shape ", to_text(wanted), " for data of shape ", to_text(from), ": ", why));
  };
  int64_t known = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      if (open) refuse("-1 is given twice");
      open = i;
      continue;
    }
    if (shape[i] == 0 && !allow_zero) {
      if (i >= from.size()) refuse("0 is given for an axis that the data does not have");
      shape[i] = from[i];
    }
    if (shape[i] < 0) refuse("a negative extent");
    if (!checked_mul(known, shape[i], &known)) refuse("too many elements");
  }
  if (open) {
    if (known == 0 || total % known != 0) refuse("-1 would not be a whole number");
    shape[*open] = total / known;
    known = total;
  }
  if (known != total) refuse(cat(total, " elements become ", known));
  return shape;
}

Value reshaped(const OpContext& op, const Value& data, const ir::Shape& shape) {
  if (!data.is_constant() || op.type(data).num_elements() > 0) {
    if (std::ranges::find(shape, 0) != shape.end()) throw Unsupported{"a result without elements"};
    return op.emit("reshape", {data}, {{"newshape", shape}});
  }
  check_extents(shape);
  return ir::make_constant(op.type(data).dtype, shape, std::vector<uint8_t>());
}

// Axes of Squeeze and Unsqueeze: an attribute before opset 13, then an input. nullopt: absent.
std::optional<ir::Ints> axes_of(const OpContext& op) {
  if (op.opset() < 13) return op.attr_ints("axes");
  if (!op.has_input(1)) return std::nullopt;
  return op.ints(1, "axes");
}

std::vector<bool> marked(const ir::Ints& axes, size_t rank) {
  std::vector<bool> marks(rank, false);
  for (const int64_t axis : axes) {
    const auto at = static_cast<size_t>(OpContext::axis_of(axis, rank));
    if (marks[at]) invalid(cat("axis ", axis, " is listed twice in ", to_text(axes)));
    marks[at] = true;
  }
  return marks;
}

}  // namespace

void import_reshape(const OpContext& op) {
  ir::Ints wanted;
  if (op.opset() < 5) {
    op.expect_counts(1, 1);
    wanted = op.attr_ints("shape").value_or(ir::Ints{});
  } else {
    op.expect_counts(2, 2);
    wanted = op.ints(1, "shape values");
  }
  const bool allow_zero = op.attr_int("allowzero", 0) != 0;
  const Value& data = op.input(0);
  const int64_t total = op.type(data).num_elements();
  op.define(0, reshaped(op, data, resolved(op.shape(data), wanted, allow_zero, total)));
}

void import_flatten(const OpContext& op) {
  op.expect_counts(1, 1);
  const ir::Shape& shape = op.shape(op.input(0));
  const int64_t axis = op.attr_int("axis", 1);
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < -rank || axis > rank) invalid(cat("axis ", axis, " is out of range for rank ", rank));
  ir::Shape flat{1, 1};
  for (int64_t i = 0; i < rank; ++i) {
    flat[i < (axis < 0 ? axis + rank : axis) ? 0 : 1] *= shape[static_cast<size_t>(i)];
  }
  op.define(0, reshaped(op, op.input(0), flat));
}

void import_squeeze(const OpContext& op) {
  op.expect_counts(1, op.opset() < 13 ? 1 : 2);
  const ir::Shape& shape = op.shape(op.input(0));
  const std::optional<ir::Ints> axes = axes_of(op);
  std::vector<bool> removed(shape.size(), false);
  if (axes) {
    removed = marked(*axes, shape.size());
  } else {
    for (size_t i = 0; i < shape.size(); ++i) removed[i] = shape[i] == 1;
  }
  ir::Shape squeezed;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!removed[i]) squeezed.push_back(shape[i]);
    if (removed[i] && shape[i] != 1) {
      invalid(cat("axis ", i, " of ", op.type(op.input(0)), " is squeezed, but its extent is not 1"));
    }
  }
  op.define(0, reshaped(op, op.input(0), squeezed));
}

void import_unsqueeze(const OpContext& op) {
  op.expect_counts(op.opset() < 13 ? 1 : 2, op.opset() < 13 ? 1 : 2);
  const std::optional<ir::Ints> axes = axes_of(op);
  if (!axes) invalid("the axes are missing");
  const ir::Shape& shape = op.shape(op.input(0));
  const std::vector<bool> added = marked(*axes, shape.size() + axes->size());
  ir::Shape unsqueezed;
  size_t from = 0;
  for (const bool is_new : added) unsqueezed.push_back(is_new ? 1 : shape[from++]);
  op.define(0, reshaped(op, op.input(0), unsqueezed));
}

void import_transpose(const OpContext& op) {
  op.expect_counts(1, 1);
  const size_t rank = op.shape(op.input(0)).size();
  ir::Ints reversed;
  for (size_t i = rank; i-- > 0;) reversed.push_back(static_cast<int64_t>(i));
  ir::Ints axes = op.attr_ints("perm").value_or(reversed);
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, rank);
  op.define(0, op.emit("transpose", {op.input(0)}, {{"axes", axes}}));
}

}  // namespace qplan::onnx
