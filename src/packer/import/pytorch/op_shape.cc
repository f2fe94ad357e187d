// Shapes: operators that move or reshape a tensor and those that leave it unchanged, whose quantisation
// stays.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {
namespace {

Ref reshape(OpContext& op, const Flow& input, const std::vector<int64_t>& shape) {
  return op.result(input, op.reshape(input.value, shape));
}

Ref permute(OpContext& op, const Flow& input, const std::vector<int64_t>& axes) {
  return op.result(input, op.emit("transpose", {input.value}, {{"axes", axes}}));
}

// pad: [before, after] of the last axis, then of the one before it, ...
Ref pad(OpContext& op, double value) {
  const Flow input = op.flow(0);
  const std::vector<int64_t> pads = op.integers(1);
  const size_t rank = op.shape(input).size();
  if (pads.size() % 2 != 0 || pads.size() / 2 > rank) {
    invalid(cat("there are ", pads.size(), " pads for a tensor of rank ", rank));
  }
  std::vector<ir::Ints> widths(rank, ir::Ints{0, 0});
  for (size_t i = 0; i < pads.size(); ++i) {
    if (pads[i] < 0) throw Unsupported{"negative pads"};
    widths[rank - 1 - i / 2][i % 2] = pads[i];
  }
  ir::ValueId fill;
  if (input.quantization) {
    fill = op.zero_point(static_cast<int32_t>(quantize_value(value, *input.quantization, op.dtype(input))));
  } else {
    fill = op.scale(static_cast<float>(value));
  }
  return op.result(input, op.emit("nn.pad", {input.value, fill}, {{"pad_width", std::move(widths)}}));
}

// Argument 0 where it has the dtype; bools as 1 and 0.
Ref converted(OpContext& op, const Flow& input, ir::DType dtype) {
  if (!input.quantization && op.dtype(input) == dtype) return op.ref(0);
  if (op.dtype(input) == ir::kBool && dtype == ir::kFloat32)
    return op.result(emit_ones_where(op, input.value));
  throw Unsupported{"another dtype"};
}

}  // namespace

Ref import_pad(OpContext& op) {
  if (const std::string mode = op.text(2, "constant"); mode != "constant")
    throw Unsupported{"mode " + in_quotes(mode)};
  return pad(op, op.number(3, 0.0));
}

Ref import_constant_pad_nd(OpContext& op) { return pad(op, op.number(2, 0.0)); }

Ref import_flatten(OpContext& op) {
  const Flow input = op.flow(0);
  const ir::Shape shape = op.shape(input);
  if (shape.empty()) return reshape(op, input, {1});
  const auto first = static_cast<size_t>(OpContext::axis_of(op.integer(1, 0), shape.size()));
  const auto last = static_cast<size_t>(OpContext::axis_of(op.integer(2, -1), shape.size()));
  if (first > last) invalid(cat("start_dim ", first, " is after end_dim ", last));
  ir::Shape flat(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(first));
  flat.push_back(1);
  for (size_t i = first; i <= last; ++i) flat.back() *= shape[i];  // bounded by ir/types.h
  flat.insert(flat.end(), shape.begin() + static_cast<std::ptrdiff_t>(last) + 1, shape.end());
  return reshape(op, input, flat);
}

Ref import_reshape(OpContext& op) { return reshape(op, op.flow(0), op.integers(1)); }

Ref import_squeeze(OpContext& op) {
  const Flow input = op.flow(0);
  const ir::Shape shape = op.shape(input);
  std::vector<int64_t> axes;
  if (op.has(1)) axes = op.integers(1);
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, shape.size());
  ir::Shape squeezed;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool named = !op.has(1) || std::ranges::count(axes, static_cast<int64_t>(i)) > 0;
    if (shape[i] != 1 || !named) squeezed.push_back(shape[i]);
  }
  return reshape(op, input, squeezed);
}

Ref import_unsqueeze(OpContext& op) {
  const Flow input = op.flow(0);
  ir::Shape shape = op.shape(input);
  const int64_t axis = OpContext::axis_of(op.integer(1), shape.size() + 1);
  shape.insert(shape.begin() + axis, 1);
  return reshape(op, input, shape);
}

Ref import_permute(OpContext& op) {
  const Flow input = op.flow(0);
  std::vector<int64_t> axes = op.integers(1);
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, op.shape(input).size());
  return permute(op, input, axes);
}

Ref import_transpose(OpContext& op) {
  const Flow input = op.flow(0);
  const size_t rank = op.shape(input).size();
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<size_t>(OpContext::axis_of(op.integer(1), rank))],
            axes[static_cast<size_t>(OpContext::axis_of(op.integer(2), rank))]);
  return permute(op, input, axes);
}

Ref import_same(OpContext& op) { return op.ref(0); }

// A value of the wanted dtype. Argument 1 is that dtype, a tensor that has it, or a device, after
// which the dtype may stand.
Ref import_to(OpContext& op) {
  constexpr auto kFloat32 = static_cast<int64_t>(ScalarType::kFloat32);
  if (op.plain_number(0)) return number_to(op, op.integer(1, kFloat32));
  const Flow input = op.flow(0);
  if (op.has(1) && op.is_flow(1)) return converted(op, input, op.dtype(op.flow(1)));
  const bool names_device = op.has(1) && op.values().get<std::string>(op.ref(1)) != nullptr;
  const size_t wanted = names_device ? 2 : 1;
  if (!op.has(wanted)) return op.ref(0);
  // to(device, non_blocking, copy) has no dtype.
  if (names_device && op.values().get<bool>(op.ref(wanted)) != nullptr) return op.ref(0);
  const int64_t type = op.integer(wanted);
  for (const ScalarType known :
       {ScalarType::kFloat32, ScalarType::kBool, ScalarType::kInt64, ScalarType::kInt32}) {
    if (type == static_cast<int64_t>(known)) return converted(op, input, dtype_of(known));
  }
  throw Unsupported{"another dtype"};
}

Ref import_to_copy(OpContext& op) { return op.add(Value(op.values().at(import_to(op)))); }

// One extent becomes several, of which one may be -1.
Ref import_unflatten(OpContext& op) {
  const Flow input = op.flow(0);
  const ir::Shape& shape = op.shape(input);
  const int64_t axis = OpContext::axis_of(op.integer(1), shape.size());
  const std::vector<int64_t> sizes = op.integers(2);
  ir::Shape unflat(shape.begin(), shape.begin() + axis);
  unflat.insert(unflat.end(), sizes.begin(), sizes.end());
  unflat.insert(unflat.end(), shape.begin() + axis + 1, shape.end());
  return reshape(op, input, unflat);
}

// The two axes of a matrix; a vector stays as it is.
Ref import_t(OpContext& op) {
  const Flow input = op.flow(0);
  const size_t rank = op.shape(input).size();
  if (rank < 2) return op.ref(0);
  if (rank > 2) invalid(cat("a tensor of rank ", rank, " is no matrix"));
  return permute(op, input, {1, 0});
}

// Channels become positions: [n, c * r * r, h, w] to [n, c, h * r, w * r].
Ref import_pixel_shuffle(OpContext& op) {
  const Flow input = op.flow(0);
  const ir::Shape s = op.shape(input);
  const int64_t r = op.integer(1);
  if (s.size() != 4) throw Unsupported{cat("a tensor of rank ", s.size())};
  if (r < 1 || r > 1024 || s[1] % (r * r) != 0) invalid(cat(s[1], " channels cannot be parted by ", r));
  const ir::ValueId parts = op.reshape(input.value, ir::Ints{s[0], s[1] / (r * r), r, r, s[2], s[3]});
  const ir::ValueId moved = op.emit("transpose", {parts}, {{"axes", ir::Ints{0, 1, 4, 2, 5, 3}}});
  return op.result(input, op.reshape(moved, ir::Ints{s[0], s[1] / (r * r), s[2] * r, s[3] * r}));
}

// Tensors side by side along a new axis.
Ref import_stack(OpContext& op) {
  const std::vector<Flow> flows = op.flows(0);
  const ir::Shape first = op.shape(flows[0]);
  ir::Shape shape = first;
  const int64_t axis = OpContext::axis_of(op.integer(1, 0), shape.size() + 1);
  shape.insert(shape.begin() + axis, 1);
  std::vector<ir::ValueId> parts;
  for (const Flow& flow : flows) {
    if (flow.quantization != flows[0].quantization) throw Unsupported{"tensors of different types"};
    if (op.shape(flow) != first)
      invalid("tensors of shapes " + to_text(first) + " and " + to_text(op.shape(flow)));
    parts.push_back(op.reshape(flow.value, shape));
  }
  return op.result(flows[0], op.emit("concatenate", std::move(parts), {{"axis", axis}}));
}

// A value of its own: operators in place change one and not the other.
Ref import_clone(OpContext& op) { return op.add(Value(op.values().at(op.ref(0)))); }

Ref import_dropout(OpContext& op) {
  if (op.boolean(2, false)) throw Unsupported{"train=True"};
  return op.ref(0);
}

}  // namespace qplan::pt
