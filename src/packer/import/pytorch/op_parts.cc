// Parts of a tensor (chunk, split, slice, narrow, select, unbind, embedding, flip) and repeated elements
// (expand, repeat, upsample_nearest2d, upsample_bilinear2d). The quantisation stays.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {
namespace {

struct Axis {
  int64_t index, extent;
};
Axis axis_at(OpContext& op, const Flow& input, size_t argument, int64_t fallback) {
  const ir::Shape& shape = op.shape(input);
  const int64_t index = OpContext::axis_of(op.integer(argument, fallback), shape.size());
  return {index, shape[static_cast<size_t>(index)]};
}

// A list of tensors, which have so many elements of the axis.
Ref list_of(OpContext& op, const Flow& input, Axis axis, const std::vector<int64_t>& sizes) {
  ir::Ints ends;
  int64_t end = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > axis.extent - end)
      invalid(cat("sizes ", to_text(sizes), " do not make ", axis.extent));
    if (size == 0) throw Unsupported{"a part without elements"};
    ends.push_back(end += size);
  }
  if (end != axis.extent) invalid(cat("sizes ", to_text(sizes), " do not make ", axis.extent));
  if (sizes.size() == 1) return op.add(List{{op.ref(0)}});
  const bool equal = std::ranges::adjacent_find(sizes, std::ranges::not_equal_to()) == sizes.end();
  ends.pop_back();
  const ir::AttrValue how = equal ? ir::AttrValue(static_cast<int64_t>(sizes.size())) : ir::AttrValue(ends);
  List list;
  for (const ir::ValueId part :
       op.emit_many("split", {input.value}, {{"indices_or_sections", how}, {"axis", axis.index}}))
    list.items.push_back(op.result(input, part));
  return op.add(std::move(list));
}

// Parts of this size; the last one has what is left.
Ref list_of_equal(OpContext& op, const Flow& input, Axis axis, int64_t size) {
  constexpr int64_t kMostParts = 4096;
  if (size < 1) invalid(cat("a part has ", size, " elements, expected at least 1"));
  const int64_t count = (axis.extent - 1) / size + 1;
  if (count > kMostParts) throw Unsupported{cat(count, " parts, more than ", kMostParts)};
  std::vector<int64_t> sizes(static_cast<size_t>(count), size);
  sizes.back() = axis.extent - (count - 1) * size;
  return list_of(op, input, axis, sizes);
}

// The elements begin, begin + step, ... before end.
ir::ValueId slice(OpContext& op, const Flow& input, Axis axis, int64_t begin, int64_t end, int64_t step) {
  return op.emit("strided_slice", {input.value},
                 {{"begin", ir::Ints{begin}},
                  {"end", ir::Ints{end}},
                  {"strides", ir::Ints{step}},
                  {"axes", ir::Ints{axis.index}}});
}

// A bound counts from the end where it is negative; bounds outside the axis are its ends.
int64_t bound(int64_t value, Axis axis) {
  return std::clamp<int64_t>(value < 0 ? value + axis.extent : value, 0, axis.extent);
}

// A list has no axis: its bounds and its step follow it.
Ref part_of_list(OpContext& op) {
  const std::vector<Ref> items = *items_of(op.values(), op.ref(0));
  const Axis axis{0, std::ssize(items)};
  const int64_t begin = bound(op.integer(1, 0), axis), end = bound(op.integer(2, axis.extent), axis);
  const int64_t step = op.integer(3, 1);
  if (step < 1) invalid(cat("the step is ", step, ", expected at least 1"));
  List part;
  for (int64_t i = begin; i < end; i += std::min(step, axis.extent))
    part.items.push_back(items[static_cast<size_t>(i)]);
  return op.add(std::move(part));
}

}  // namespace

// As many parts as asked for, or fewer, of ceil(extent / chunks) elements.
Ref import_chunk(OpContext& op) {
  const Flow input = op.flow(0);
  const Axis axis = axis_at(op, input, 2, 0);
  const int64_t chunks = op.integer(1);
  if (chunks < 1) invalid(cat("there are ", chunks, " chunks, expected at least 1"));
  return list_of_equal(op, input, axis, (axis.extent - 1) / chunks + 1);
}

// The size of each part, or a list with the size of each.
Ref import_split(OpContext& op) {
  const Flow input = op.flow(0);
  const Axis axis = axis_at(op, input, 2, 0);
  if (items_of(op.values(), op.ref(1)) != nullptr) return list_of(op, input, axis, op.integers(1));
  return list_of_equal(op, input, axis, op.integer(1));
}

Ref import_slice(OpContext& op) {
  if (items_of(op.values(), op.ref(0)) != nullptr) return part_of_list(op);
  const Flow input = op.flow(0);
  const Axis axis = axis_at(op, input, 1, 0);
  const int64_t begin = bound(op.integer(2, 0), axis), end = bound(op.integer(3, axis.extent), axis);
  const int64_t step = op.integer(4, 1);
  if (step < 1) invalid(cat("the step is ", step, ", expected at least 1"));
  if (begin >= end) throw Unsupported{"a part without elements"};
  if (begin == 0 && end == axis.extent && step == 1) return op.ref(0);
  return op.result(input, slice(op, input, axis, begin, end, step));
}

Ref import_narrow(OpContext& op) {
  const Flow input = op.flow(0);
  const Axis axis = axis_at(op, input, 1, 0);
  const int64_t start = op.integer(2), length = op.integer(3);
  const int64_t begin = start < 0 ? start + axis.extent : start;
  if (begin < 0 || length < 0 || begin > axis.extent || length > axis.extent - begin)
    invalid(cat("elements ", start, " to ", start, " + ", length, " of an axis of ", axis.extent));
  if (length == 0) throw Unsupported{"a part without elements"};
  return op.result(input, slice(op, input, axis, begin, begin + length, 1));
}

// One position of an axis, which goes away.
Ref import_select(OpContext& op) {
  const Flow input = op.flow(0);
  const Axis axis = axis_at(op, input, 1, 0);
  const int64_t index = op.integer(2), begin = index < 0 ? index + axis.extent : index;
  if (begin < 0 || begin >= axis.extent) invalid(cat("position ", index, " of an axis of ", axis.extent));
  const ir::ValueId part = slice(op, input, axis, begin, begin + 1, 1);
  ir::Shape shape = op.shape(input);
  shape.erase(shape.begin() + axis.index);
  return op.result(input, op.reshape(part, shape));
}

// Each position of an axis, which goes away.
Ref import_unbind(OpContext& op) {
  const Flow input = op.flow(0);
  const Axis axis = axis_at(op, input, 1, 0);
  ir::Shape shape = op.shape(input);
  shape.erase(shape.begin() + axis.index);
  const Ref parts = list_of_equal(op, input, axis, 1);
  const std::vector<Ref> items = *items_of(op.values(), parts);
  List list;
  for (const Ref item : items)
    list.items.push_back(op.result(input, op.reshape(op.as_flow(item).value, shape)));
  return op.add(std::move(list));
}

// Rows of a table.
Ref import_embedding(OpContext& op) {
  const Flow table = op.float_flow(0), indices = op.flow(1);
  if (op.shape(table).size() != 2) invalid(cat("the table has rank ", op.shape(table).size()));
  if (op.dtype(indices) != ir::kInt64 && op.dtype(indices) != ir::kInt32)
    throw Unsupported{ir::to_string(op.dtype(indices)) + " indices"};
  const ir::Value& value = op.function().value(indices.value);
  if (op.dtype(indices) == ir::kInt64 && value.kind == ir::ValueKind::kParam) {
    std::string shape;
    for (const int64_t extent : op.shape(indices))
      shape += (shape.empty() ? "" : "x") + std::to_string(extent);
    op.warn(cat("targets read indices of int32 only; give them as such: --input-shape ", value.name, "=",
                shape, ":int32"));
  }
  return op.result(op.emit("take", {table.value, indices.value}, {{"axis", int64_t{0}}}));
}

namespace {

constexpr int64_t kMostRepeated = int64_t{1} << 20;

// These positions of an axis.
ir::ValueId taken(OpContext& op, ir::ValueId value, const ir::Ints& positions, size_t axis) {
  const int64_t count = std::ssize(positions);
  op.charge_elements(count);
  const ir::ConstantRef constant = ir::make_constant(ir::kInt64, {count}, positions);
  return op.emit("take", {value, op.constant(constant)}, {{"axis", static_cast<int64_t>(axis)}});
}

// With new first axes, as many as make this rank.
ir::ValueId with_leading_axes(OpContext& op, const Flow& input, size_t rank) {
  ir::Shape shape = op.shape(input);
  if (shape.size() == rank) return input.value;
  shape.insert(shape.begin(), rank - shape.size(), 1);
  return op.reshape(input.value, shape);
}

Ref expand(OpContext& op, const std::vector<int64_t>& sizes) {
  const Flow input = op.flow(0);
  const ir::Shape before = op.shape(input);
  if (sizes.size() < before.size()) invalid(cat("sizes ", to_text(sizes), " of a tensor ", to_text(before)));
  ir::ValueId value = with_leading_axes(op, input, sizes.size());
  const ir::Shape shape = op.shape(Flow{value});
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 || sizes[i] == shape[i]) continue;
    if (shape[i] != 1 || sizes[i] < 1 || sizes[i] > kMostRepeated)
      invalid(cat("sizes ", to_text(sizes), " of a tensor ", to_text(before)));
    value = taken(op, value, ir::Ints(static_cast<size_t>(sizes[i])), i);
  }
  return op.result(input, value);
}

}  // namespace

// Axes of extent 1 are repeated; -1 stands for the extent as it is, and new axes are the first ones.
Ref import_expand(OpContext& op) { return expand(op, op.integers(1)); }
Ref import_expand_as(OpContext& op) { return expand(op, ir::Shape(op.shape(op.flow(1)))); }

// The tensor so many times along each axis; new axes are the first ones.
Ref import_repeat(OpContext& op) {
  const Flow input = op.flow(0);
  const std::vector<int64_t> times = op.integers(1);
  const size_t rank = op.shape(input).size();
  if (times.size() < rank) invalid(cat(times.size(), " repeats of a tensor of rank ", rank));
  ir::ValueId value = with_leading_axes(op, input, times.size());
  for (size_t i = 0; i < times.size(); ++i) {
    const int64_t extent = op.shape(Flow{value})[i];
    if (times[i] == 1) continue;
    if (times[i] < 1 || times[i] > kMostRepeated / extent) throw Unsupported{cat(times[i], " repeats")};
    ir::Ints positions;
    for (int64_t o = 0; o < times[i] * extent; ++o) positions.push_back(o % extent);
    value = taken(op, value, positions, i);
  }
  return op.result(input, value);
}

Ref import_flip(OpContext& op) {
  const Flow input = op.flow(0);
  const ir::Shape shape = op.shape(input);
  ir::ValueId value = input.value;
  for (const int64_t given : op.integers(1)) {
    const int64_t index = OpContext::axis_of(given, shape.size());
    const int64_t extent = shape[static_cast<size_t>(index)];
    value = slice(op, Flow{value}, {index, extent}, extent - 1, -extent - 1, -1);
  }
  return op.result(input, value);
}

// Arguments as of upsample_nearest2d, after the size whether corners are aligned.
Ref import_upsample_bilinear2d(OpContext& op) {
  const Flow input = op.flow(0);
  const ir::Shape shape = op.shape(input);
  if (shape.size() != 4) throw Unsupported{cat("a tensor of rank ", shape.size())};
  const bool aligned = op.boolean(2);
  std::vector<int64_t> sizes;
  if (op.has(1)) sizes = op.pair(1);
  for (size_t i = 0; i < 2; ++i) {
    std::optional<double> factor;
    if (const auto* list = op.has(3) ? items_of(op.values(), op.ref(3)) : nullptr) {
      if (list->size() != 2) invalid(cat("there are ", list->size(), " factors, expected 2"));
      factor = op.as_number((*list)[i]);
    } else if (op.has(3 + i)) {
      factor = op.number(3 + i);
    }
    if (!factor) {
      if (sizes.size() < 2) invalid("there is neither a size nor a factor");
      continue;
    }
    if (!(*factor >= 0x1p-16 && *factor <= 0x1p16)) invalid("a factor is not from 2^-16 to 2^16");
    const double extent = static_cast<double>(shape[2 + i]) * *factor;
    if (!op.has(1)) sizes.push_back(static_cast<int64_t>(std::floor(extent)));
    // PyTorch computes positions with the factor, not with the extents.
    if (!aligned && static_cast<double>(sizes[i]) != extent)
      throw Unsupported{cat("a factor that makes no whole number of ", shape[2 + i])};
  }
  for (const int64_t size : sizes) {
    if (size < 1 || size > kMostRepeated)
      invalid(cat("the size is ", size, ", expected 1 to ", kMostRepeated));
  }
  const std::string mode = aligned ? "align_corners" : "half_pixel";
  ir::Attrs attrs = {
      {"size", sizes}, {"layout", std::string("NCHW")}, {"coordinate_transformation_mode", mode}};
  if (input.quantization) return interpolated(op, input, sizes, std::move(attrs), aligned);
  return op.result(op.emit("image.resize2d", {input.value}, std::move(attrs)));
}

namespace {

// The element that each output of an axis repeats: floor(o * scale) in float32, as PyTorch computes it.
ir::Ints repeated(int64_t extent, int64_t outputs, std::optional<double> factor) {
  const float scale = factor && *factor > 0 ? static_cast<float>(1.0 / *factor)
                                            : static_cast<float>(extent) / static_cast<float>(outputs);
  ir::Ints positions;
  for (int64_t o = 0; o < outputs; ++o) {
    const auto position = static_cast<int64_t>(std::floor(static_cast<float>(o) * scale));
    positions.push_back(std::min(position, extent - 1));
  }
  return positions;
}

}  // namespace

// Arguments as in both of its forms: output_size, or one of None and a list of two factors after it; or
// output_size and then the factors one by one.
Ref import_upsample_nearest2d(OpContext& op) {
  const Flow input = op.flow(0);
  const ir::Shape shape = op.shape(input);
  if (shape.size() != 4) throw Unsupported{cat("a tensor of rank ", shape.size())};
  std::optional<double> factors[2];
  for (size_t i = 0; i < 2; ++i) {
    if (const auto* list = op.has(2) ? items_of(op.values(), op.ref(2)) : nullptr) {
      if (list->size() != 2) invalid(cat("there are ", list->size(), " factors, expected 2"));
      factors[i] = op.as_number((*list)[i]);
    } else if (op.has(2 + i)) {
      factors[i] = op.number(2 + i);
    }
    if (factors[i] && !(*factors[i] >= 0x1p-16 && *factors[i] <= 0x1p16))
      invalid("a factor is not from 2^-16 to 2^16");
  }
  std::vector<int64_t> sizes;
  if (op.has(1)) {
    sizes = op.pair(1);
  } else {
    for (size_t i = 0; i < 2; ++i) {
      if (!factors[i]) invalid("there is neither a size nor a factor");
      sizes.push_back(static_cast<int64_t>(std::floor(static_cast<double>(shape[2 + i]) * *factors[i])));
    }
  }
  ir::ValueId value = input.value;
  // PyTorch's quantised kernels copy a tensor that keeps both extents. On an axis of a tensor of floats, or
  // beside one that changes, a factor above 1 may repeat elements and leave the extent as it is.
  const bool keeps_extents = sizes[0] == shape[2] && sizes[1] == shape[3];
  if (keeps_extents && input.quantization) return op.result(input, input.value);
  for (size_t i = 0; i < 2; ++i) {
    if (sizes[i] < 1 || sizes[i] > kMostRepeated)
      invalid(cat("the size is ", sizes[i], ", expected 1 to ", kMostRepeated));
    const ir::Ints positions = repeated(shape[2 + i], sizes[i], factors[i]);
    ir::Ints identity(static_cast<size_t>(shape[2 + i]));
    std::iota(identity.begin(), identity.end(), 0);
    if (positions == identity) continue;
    value = taken(op, value, positions, 2 + i);
  }
  return op.result(input, value);
}

}  // namespace qplan::pt
