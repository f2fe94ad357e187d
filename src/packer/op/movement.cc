// reshape, transpose, concatenate, split: elements move, none is computed.
#include <algorithm>

#include "src/base/checked.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"
#include "src/packer/op/shape.h"

namespace qplan::op {
namespace {

// Far beyond what networks do; a hostile model could ask for 2^31 results with one number.
constexpr int64_t kMaxSplitResults = 4096;

std::vector<ir::TensorType> infer_reshape(const InferInput& input) {
  const ir::TensorType& data = input.type(0);
  ir::TensorType out{data.dtype, attr_ints(input.node, "newshape")};
  if (out.shape.size() > 64) invalid(cat("attribute 'newshape' has ", out.shape.size(), " extents"));
  const auto describe = [&] {
    return cat(data, " cannot be reshaped to ", to_text(attr_ints(input.node, "newshape")));
  };
  const auto open = std::ranges::find(out.shape, -1);
  int64_t known = 1;
  for (auto it = out.shape.begin(); it != out.shape.end(); ++it) {
    if (it == open) continue;
    if (*it < 1) {
      invalid(cat("attribute 'newshape' is ", to_text(out.shape),
                  ", expected extents of at least 1 and -1 once"));
    }
    if (!checked_mul(known, *it, &known)) invalid(describe());
  }
  const int64_t total = data.num_elements();
  if (open != out.shape.end()) {
    if (total % known != 0) invalid(describe());
    *open = total / known;
  } else if (known != total) {
    invalid(describe());
  }
  return {std::move(out)};
}

std::vector<ir::TensorType> infer_transpose(const InferInput& input) {
  const ir::TensorType& data = input.type(0);
  const ir::Ints& axes = attr_ints(input.node, "axes");
  const auto rank = static_cast<int64_t>(data.shape.size());
  ir::TensorType out{data.dtype, {}};
  std::vector<bool> seen(data.shape.size());
  for (const int64_t axis : axes) {
    if (axis < 0 || axis >= rank || seen[static_cast<size_t>(axis)]) break;
    seen[static_cast<size_t>(axis)] = true;
    out.shape.push_back(data.shape[static_cast<size_t>(axis)]);
  }
  if (out.shape.size() != data.shape.size() || axes.size() != data.shape.size()) {
    invalid(cat("attribute 'axes' is ", to_text(axes), ", expected a permutation of 0 to ", rank - 1));
  }
  return {std::move(out)};
}

std::vector<ir::TensorType> infer_concatenate(const InferInput& input) {
  ir::TensorType out = input.type(0);
  const auto axis = static_cast<size_t>(normalized_axis(attr_int(input.node, "axis"), out.shape.size()));
  for (size_t i = 1; i < input.node.operands.size(); ++i) {
    const ir::TensorType& part = input.type(i);
    ir::TensorType expected = input.type(0);
    if (part.shape.size() == expected.shape.size()) expected.shape[axis] = part.shape[axis];
    if (part != expected) {
      invalid(cat("operand ", i, " is ", part, ", but operand 0 is ", input.type(0),
                  ": they may differ along axis ", axis, " only"));
    }
    if (!checked_add(out.shape[axis], part.shape[axis], &out.shape[axis])) {
      invalid(cat("the extents along axis ", axis, " are too large"));
    }
  }
  return {std::move(out)};
}

std::vector<ir::TensorType> infer_split(const InferInput& input) {
  const ir::TensorType& data = input.type(0);
  const auto axis = static_cast<size_t>(normalized_axis(attr_int(input.node, "axis"), data.shape.size()));
  const int64_t extent = data.shape[axis];
  std::vector<ir::TensorType> results;
  const auto add = [&](int64_t part) {
    results.push_back(data);
    results.back().shape[axis] = part;
  };
  const ir::AttrValue& how = attr(input.node, "indices_or_sections");
  if (const auto* sections = std::get_if<int64_t>(&how)) {
    if (*sections < 1 || extent % *sections != 0) {
      invalid(
          cat("extent ", extent, " of axis ", axis, " does not split into ", *sections, " equal sections"));
    }
    if (*sections > kMaxSplitResults) invalid(cat(*sections, " results are more than ", kMaxSplitResults));
    for (int64_t i = 0; i < *sections; ++i) add(extent / *sections);
    return results;
  }
  const ir::Ints& indices = std::get<ir::Ints>(how);
  if (static_cast<int64_t>(indices.size()) >= kMaxSplitResults) {
    invalid(cat(indices.size() + 1, " results are more than ", kMaxSplitResults));
  }
  int64_t begin = 0;
  for (const int64_t index : indices) {
    if (index <= begin || index >= extent) {
      invalid(cat("attribute 'indices_or_sections' is ", to_text(indices),
                  ", expected increasing indices from 1 to ", extent - 1));
    }
    add(index - begin);
    begin = index;
  }
  add(extent - begin);
  return results;
}

}  // namespace

OpDef list::reshape() {
  return {.name = "reshape",
          .operands = {"data"},
          .attrs = {{"newshape", AttrKind::kInts}},
          .infer = infer_reshape};
}

OpDef list::transpose() {
  return {.name = "transpose",
          .operands = {"data"},
          .attrs = {{"axes", AttrKind::kInts}},
          .infer = infer_transpose};
}

OpDef list::concatenate() {
  return {.name = "concatenate",
          .operands = {"data"},
          .variadic = true,
          .attrs = {{"axis", AttrKind::kInt, 0}},
          .infer = infer_concatenate};
}

OpDef list::split() {
  return {.name = "split",
          .operands = {"data"},
          .attrs = {{"indices_or_sections", AttrKind::kIntOrInts}, {"axis", AttrKind::kInt, 0}},
          .infer = infer_split};
}

}  // namespace qplan::op
