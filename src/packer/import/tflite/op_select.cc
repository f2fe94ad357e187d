// Operators whose results are elements of their input by position, of any dtype: STRIDED_SLICE, SLICE,
// GATHER, TILE, BROADCAST_TO, REVERSE_V2, MIRROR_PAD, RESIZE_NEAREST_NEIGHBOR, SPACE_TO_DEPTH,
// DEPTH_TO_SPACE. What is not a slice with steps is a take: the positions that each axis reads are known on
// import.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "src/base/checked.h"
#include "src/packer/import/tflite/op_context.h"

namespace qplan::tfl {
namespace {

// The elements at `positions` of the axis; the value itself where these are all of them in their order.
ir::ValueId taken(OpContext& op, ir::ValueId data, size_t axis, const ir::Ints& positions) {
  bool identity = static_cast<int64_t>(positions.size()) == op.shape(data)[axis];
  for (size_t i = 0; identity && i < positions.size(); ++i)
    identity = positions[i] == static_cast<int64_t>(i);
  if (identity) return data;
  return op.emit("take", {data, op.int_vector(positions)}, {{"axis", static_cast<int64_t>(axis)}});
}

// Positions are lists of numbers: this many of an axis are none of a network.
constexpr int64_t kMaxPositions = int64_t{1} << 24;

ir::Ints checked_positions(const OpContext& op, int64_t count) {
  if (count < 1) throw Unsupported{"a result without elements"};
  if (count > kMaxPositions) invalid("an axis of " + std::to_string(count) + " elements");
  op.charge(static_cast<uint64_t>(count) * sizeof(int64_t));
  return ir::Ints(static_cast<size_t>(count));
}

// What a slice takes of one axis of the input.
struct Range {
  int64_t begin, step, count;
};

// ranges: of every axis. The slice, then the shape that other axes give it.
void define_slice(OpContext& op, ir::ValueId data, const std::vector<Range>& ranges, ir::Shape shape) {
  const ir::Shape extents = op.shape(data);
  ir::Ints begin, end, steps;
  bool whole = true, stepped = false;
  // What a loop has before its first round and after its last one: it may be joined with what is not empty.
  if (op.output().dtype && std::ranges::any_of(ranges, [](const Range& range) { return range.count == 0; }))
    return op.graph().define_empty(op.output());
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    if (range.count < 1) throw Unsupported{"a result without elements"};
    const int64_t last = range.begin + (range.count - 1) * range.step;
    begin.push_back(range.begin);
    // Before the first element there is no position but one that counts from the end.
    end.push_back(range.step > 0 ? last + 1 : last > 0 ? last - 1 : -extents[i] - 1);
    steps.push_back(range.count == 1 && range.step > 0 ? 1 : range.step);
    stepped = stepped || steps.back() != 1;
    whole = whole && range.begin == 0 && range.step == 1 && range.count == extents[i];
  }
  if (!whole) {
    ir::Attrs attrs{{"begin", begin}, {"end", end}};
    if (stepped) attrs.set("strides", steps);
    data = op.emit("strided_slice", {data}, std::move(attrs));
  }
  op.define(op.output(), op.reshaped(data, shape));
}

// Where a slice of this axis begins and ends: TFLite's StartForAxis and StopForAxis.
struct SparseEntry {
  int64_t begin, end, step;
  bool from_first, to_last, shrinks, end_is_size;
};

Range range_of(const SparseEntry& entry, int64_t extent) {
  if (entry.step == 0 || entry.step == INT64_MIN) invalid("a stride is " + std::to_string(entry.step));
  const bool forward = entry.step > 0;
  const auto clamped = [&](int64_t position) {
    if (position < 0) position = std::max(position, -extent - 1) + extent;
    return forward ? std::clamp<int64_t>(position, 0, extent) : std::clamp<int64_t>(position, -1, extent - 1);
  };
  const int64_t begin = entry.from_first ? (forward ? 0 : extent - 1) : clamped(entry.begin);
  if (entry.shrinks) {
    if (begin < 0 || begin >= extent)
      invalid("position " + std::to_string(entry.begin) + " of an axis of extent " + std::to_string(extent));
    return {begin, 1, 1};
  }
  int64_t stop = entry.end;
  if (entry.end_is_size && !checked_add(begin, entry.end, &stop)) invalid("an end is too large");
  const int64_t end = entry.to_last ? (forward ? extent : -1) : clamped(stop);
  const int64_t distance = forward ? end - begin : begin - end, size = forward ? entry.step : -entry.step;
  return {begin, entry.step, distance <= 0 ? 0 : (distance - 1) / size + 1};
}

}  // namespace

void import_strided_slice(OpContext& op) {
  op.expect_counts(4, 4, 1);
  op.require_movable(op.input(0), op.output());
  const auto& options = op.options<tflite::StridedSliceOptions>();
  const ir::ValueId data = op.value(op.input(0));
  const ir::Shape extents = op.shape(data);
  const ir::Ints begin = op.constant_ints(op.input(1), "begin values");
  const ir::Ints end = op.constant_ints(op.input(2), "end values");
  const ir::Ints steps = op.constant_ints(op.input(3), "strides");
  const size_t count = begin.size();
  if (end.size() != count || steps.size() != count) {
    invalid("begin, end and strides have " + std::to_string(count) + ", " + std::to_string(end.size()) +
            " and " + std::to_string(steps.size()) + " values");
  }
  const auto has = [](int32_t mask, size_t i) { return (mask >> i & 1) != 0; };
  size_t num_sliced = 0;  // axes of the input that have an entry of their own
  for (size_t i = 0; i < count; ++i) {
    num_sliced += has(options.ellipsis_mask(), i) || has(options.new_axis_mask(), i) ? 0 : 1;
  }
  if (num_sliced > extents.size()) {
    invalid(std::to_string(num_sliced) + " axes are sliced, but the input has rank " +
            std::to_string(extents.size()));
  }
  std::vector<Range> ranges;
  ir::Shape shape;
  const auto take_whole = [&](size_t axes) {
    for (; axes > 0; --axes) {
      shape.push_back(extents[ranges.size()]);
      ranges.push_back({0, 1, shape.back()});
    }
  };
  bool has_ellipsis = false;
  for (size_t i = 0; i < count; ++i) {
    if (has(options.ellipsis_mask(), i)) {
      if (has_ellipsis) invalid("there are two ellipses");
      has_ellipsis = true;
      take_whole(extents.size() - num_sliced);
    } else if (has(options.new_axis_mask(), i)) {
      shape.push_back(1);
    } else {
      const bool shrinks = has(options.shrink_axis_mask(), i);
      ranges.push_back(range_of({begin[i], end[i], steps[i], has(options.begin_mask(), i),
                                 has(options.end_mask(), i), shrinks, options.offset()},
                                extents[ranges.size()]));
      if (!shrinks) shape.push_back(ranges.back().count);
    }
  }
  take_whole(extents.size() - ranges.size());
  define_slice(op, data, ranges, shape);
}

void import_slice(OpContext& op) {
  op.expect_counts(3, 3, 1);
  op.require_movable(op.input(0), op.output());
  const ir::ValueId data = op.value(op.input(0));
  const ir::Shape extents = op.shape(data);
  const ir::Ints begin = op.constant_ints(op.input(1), "begin values");
  const ir::Ints sizes = op.constant_ints(op.input(2), "sizes");
  if (begin.size() != extents.size() || sizes.size() != extents.size()) {
    invalid("there are " + std::to_string(begin.size()) + " begin values and " +
            std::to_string(sizes.size()) + " sizes, expected " + std::to_string(extents.size()));
  }
  std::vector<Range> ranges;
  ir::Shape shape;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (begin[i] < 0 || begin[i] > extents[i] || sizes[i] < -1 || sizes[i] > extents[i] - begin[i]) {
      invalid("begin " + std::to_string(begin[i]) + " and size " + std::to_string(sizes[i]) +
              " of an axis of extent " + std::to_string(extents[i]));
    }
    shape.push_back(sizes[i] == -1 ? extents[i] - begin[i] : sizes[i]);
    ranges.push_back({begin[i], 1, shape.back()});
  }
  define_slice(op, data, ranges, shape);
}

ir::ValueId int32_indices(OpContext& op) {
  const TensorInfo& indices = op.input(1);
  if (indices.dtype != ir::kInt32 && indices.dtype != ir::kInt64)
    throw Unsupported{type_name(indices.file_type) + " indices"};
  if (indices.dtype == ir::kInt64 && op.is_known(indices)) {
    for (const int64_t index : op.constant_ints(indices, "indices", kMaxPositions)) {
      if (index < INT32_MIN || index > INT32_MAX) invalid("index " + std::to_string(index));
    }
  }
  const ir::ValueId positions = op.value(indices);
  return indices.dtype == ir::kInt32 ? positions
                                     : op.emit("cast", {positions}, {{"dtype", std::string("int32")}});
}

namespace {

void check_known_indices(const OpContext& op, int64_t extent) {
  if (!op.is_known(op.input(1))) return;
  for (const int64_t index : op.constant_ints(op.input(1), "indices", kMaxPositions)) {
    if (index < 0 || index >= extent)
      invalid("index " + std::to_string(index) + " of an axis of extent " + std::to_string(extent));
  }
}

// The first `batch` axes are of both the data and the indices. Those and the ones up to the axis become one,
// along which each list of indices begins where its part of the data does.
void gather_in_batches(OpContext& op, ir::ValueId data, size_t axis, size_t batch) {
  const ir::Shape shape = op.shape(data);
  const ir::ValueId indices = int32_indices(op);
  const ir::Shape of_indices = op.shape(indices);
  const auto at = [](const ir::Shape& extents, size_t i) {
    return extents.begin() + static_cast<ptrdiff_t>(i);
  };
  if (batch > axis || batch > of_indices.size() ||
      !std::equal(shape.begin(), at(shape, batch), of_indices.begin())) {
    invalid("batch_dims " + std::to_string(batch) + " of data " + importer::to_text(shape) + ", axis " +
            std::to_string(axis) + " and indices " + importer::to_text(of_indices));
  }
  check_known_indices(op, shape[axis]);
  const auto product = [](auto begin, auto end) {
    return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
  };
  const int64_t batches = product(shape.begin(), at(shape, batch));
  const int64_t between = product(at(shape, batch), at(shape, axis));
  if (batches * between > kMaxPositions / shape[axis])
    throw Unsupported{"batch_dims and data of " + importer::to_text(shape)};
  ir::Ints begins = checked_positions(op, batches * between);
  for (size_t i = 0; i < begins.size(); ++i) begins[i] = static_cast<int64_t>(i) * shape[axis];

  const ir::ValueId lists =
      op.reshaped(indices, {batches, 1, product(at(of_indices, batch), of_indices.end())});
  const ir::ValueId places =
      op.emit("add", {lists, op.constant(integers_as(begins, {batches, between, 1}, ir::kInt32))}, {});
  ir::Shape joined(at(shape, axis), shape.end());
  joined[0] *= batches * between;
  ir::Shape result(shape.begin(), at(shape, axis));
  result.insert(result.end(), at(of_indices, batch), of_indices.end());
  result.insert(result.end(), at(shape, axis + 1), shape.end());
  op.define(
      op.output(),
      op.reshaped(op.emit("take", {op.reshaped(data, joined), places}, {{"axis", int64_t{0}}}), result));
}

}  // namespace

void import_gather(OpContext& op) {
  op.expect_counts(2, 2, 1);
  op.require_movable(op.input(0), op.output());
  const auto* options = op.optional_options<tflite::GatherOptions>();
  const ir::ValueId data = op.value(op.input(0));
  ir::Shape shape = op.shape(data);
  const auto axis =
      static_cast<size_t>(OpContext::axis_of(options == nullptr ? 0 : options->axis(), shape.size()));
  const TensorInfo& indices = op.input(1);
  if (options != nullptr && options->batch_dims() != 0) {
    int64_t batch = options->batch_dims();
    if (batch < 0) batch += std::ssize(op.shape(op.value(indices)));  // counted from the rank of the indices
    if (batch < 0) invalid("batch_dims is " + std::to_string(options->batch_dims()));
    return gather_in_batches(op, data, axis, static_cast<size_t>(batch));
  }
  if (!op.is_known(indices)) {
    return op.define(op.output(),
                     op.emit("take", {data, int32_indices(op)}, {{"axis", static_cast<int64_t>(axis)}}));
  }
  check_known_indices(op, shape[axis]);
  const ir::Ints positions = op.constant_ints(indices, "indices", kMaxPositions);
  if (positions.empty()) throw Unsupported{"a result without elements"};
  const ir::ValueId result = taken(op, data, axis, positions);
  const ir::Shape replaced = op.known_contents(indices)->type().shape;
  shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis), replaced.begin(), replaced.end());
  op.define(op.output(), op.reshaped(result, shape));
}

// The data with `update` at a position that is known: along one axis.
void import_dynamic_update_slice(OpContext& op) {
  op.expect_counts(3, 3, 1);
  op.require_movable(op.input(0), op.output());
  const ir::ValueId data = op.value(op.input(0)), update = op.value(op.input(1));
  const ir::Shape &extents = op.shape(data), &part = op.shape(update);
  const ir::Ints starts = op.constant_ints(op.input(2), "begin values");
  if (starts.size() != extents.size() || part.size() != extents.size())
    invalid("data, update and begin values have different ranks");
  std::vector<size_t> axes;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (part[axis] > extents[axis]) invalid("the update is larger than the data");
    if (part[axis] != extents[axis]) axes.push_back(axis);
  }
  if (axes.empty()) return op.define(op.output(), update);
  if (axes.size() > 1) throw Unsupported{"an update that is smaller in several axes"};
  const size_t axis = axes[0];
  const int64_t begin = std::clamp<int64_t>(starts[axis], 0, extents[axis] - part[axis]);
  const auto slice = [&](int64_t from, int64_t to) {
    return op.emit(
        "strided_slice", {data},
        {{"begin", ir::Ints{from}}, {"end", ir::Ints{to}}, {"axes", ir::Ints{static_cast<int64_t>(axis)}}});
  };
  std::vector<ir::ValueId> parts;
  const int64_t end = begin + part[axis], extent = extents[axis];
  if (begin > 0) parts.push_back(slice(0, begin));
  parts.push_back(update);
  if (end < extent) parts.push_back(slice(end, extent));
  op.define(op.output(), op.emit("concatenate", parts, {{"axis", static_cast<int64_t>(axis)}}));
}

void import_tile(OpContext& op) {
  op.expect_counts(2, 2, 1);
  op.require_movable(op.input(0), op.output());
  ir::ValueId data = op.value(op.input(0));
  const ir::Shape extents = op.shape(data);
  const ir::Ints multiples = op.constant_ints(op.input(1), "multiples");
  if (multiples.size() != extents.size()) {
    invalid("there are " + std::to_string(multiples.size()) + " multiples, expected " +
            std::to_string(extents.size()));
  }
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    int64_t count = 0;
    if (!checked_mul(multiples[axis], extents[axis], &count))
      invalid("a multiple is " + std::to_string(multiples[axis]));
    if (multiples[axis] == 1) continue;
    ir::Ints positions = checked_positions(op, count);
    for (int64_t i = 0; i < count; ++i) positions[static_cast<size_t>(i)] = i % extents[axis];
    data = taken(op, data, axis, positions);
  }
  op.define(op.output(), data);
}

void import_broadcast_to(OpContext& op) {
  op.expect_counts(2, 2, 1);
  op.require_movable(op.input(0), op.output());
  ir::ValueId data = op.value(op.input(0));
  const ir::Shape wanted = op.constant_ints(op.input(1), "extents");
  ir::Shape extents = op.shape(data);
  if (extents.size() > wanted.size())
    invalid("rank " + std::to_string(extents.size()) + " becomes rank " + std::to_string(wanted.size()));
  extents.insert(extents.begin(), wanted.size() - extents.size(), 1);
  data = op.reshaped(data, extents);
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == wanted[axis]) continue;
    if (extents[axis] != 1) {
      invalid("shape " + importer::to_text(extents) + " does not broadcast to " + importer::to_text(wanted));
    }
    data = taken(op, data, axis, checked_positions(op, wanted[axis]));
  }
  op.define(op.output(), data);
}

void import_reverse(OpContext& op) {
  op.expect_counts(2, 2, 1);
  op.require_movable(op.input(0), op.output());
  const ir::ValueId data = op.value(op.input(0));
  std::vector<Range> ranges;
  for (const int64_t extent : op.shape(data)) ranges.push_back({0, 1, extent});
  for (const int64_t named : op.constant_ints(op.input(1), "axes")) {
    const int64_t axis = OpContext::axis_of(named, ranges.size());
    Range& range = ranges[static_cast<size_t>(axis)];
    if (range.step < 0) invalid("axis " + std::to_string(axis) + " is named twice");
    range = {range.count - 1, -1, range.count};
  }
  define_slice(op, data, ranges, op.shape(data));
}

// The elements before and after come from inside, the nearest first; REFLECT leaves the one at the edge out.
void import_mirror_pad(OpContext& op) {
  op.expect_counts(2, 2, 1);
  op.require_movable(op.input(0), op.output());
  const bool reflect = op.options<tflite::MirrorPadOptions>().mode() == tflite::MirrorPadMode_REFLECT;
  ir::ValueId data = op.value(op.input(0));
  const ir::Shape extents = op.shape(data);
  const ir::Ints paddings = op.constant_ints(op.input(1), "paddings");
  if (paddings.size() != 2 * extents.size()) {
    invalid("there are " + std::to_string(paddings.size()) + " paddings, expected " +
            std::to_string(2 * extents.size()) + ", two per dimension");
  }
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const int64_t extent = extents[axis], before = paddings[2 * axis], after = paddings[2 * axis + 1];
    const int64_t edge = reflect ? 1 : 0;
    if (before < 0 || after < 0 || before > extent - edge || after > extent - edge) {
      invalid("paddings " + std::to_string(before) + " and " + std::to_string(after) +
              " of an axis of extent " + std::to_string(extent) + ", which has " +
              std::to_string(extent - edge) + " elements to mirror");
    }
    ir::Ints positions = checked_positions(op, before + extent + after);
    for (int64_t i = 0; i < static_cast<int64_t>(positions.size()); ++i) {
      int64_t from = i - before;
      if (from < 0) from = -from - 1 + edge;
      if (from >= extent) from = 2 * extent - 1 - edge - from;
      positions[static_cast<size_t>(i)] = from;
    }
    data = taken(op, data, axis, positions);
  }
  op.define(op.output(), data);
}

// ---- RESIZE_NEAREST_NEIGHBOR: docs/numerics/data_movement.md ----

namespace {

// The input's position of each of the output's along an axis, in float32 as TFLite's GetNearestNeighbor.
ir::Ints nearest_positions(const OpContext& op, int64_t in, int64_t out, bool align_corners,
                           bool half_pixel) {
  ir::Ints positions = checked_positions(op, out);
  const float scale = align_corners && out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                                               : static_cast<float>(in) / static_cast<float>(out);
  const float offset = half_pixel ? 0.5f : 0.0f;
  for (int64_t i = 0; i < out; ++i) {
    const float place = (static_cast<float>(i) + offset) * scale;
    const float whole = align_corners ? std::round(place) : std::floor(place);
    positions[static_cast<size_t>(i)] = std::clamp<int64_t>(static_cast<int64_t>(whole), 0, in - 1);
  }
  return positions;
}

}  // namespace

void import_resize_nearest_neighbor(OpContext& op) {
  op.expect_counts(2, 2, 1);
  op.require_movable(op.input(0), op.output());
  const auto& options = op.options<tflite::ResizeNearestNeighborOptions>();
  ir::ValueId data = op.value(op.input(0));
  const ir::Shape extents = op.shape(data);
  const ir::Ints size = op.constant_ints(op.input(1), "size values");
  if (extents.size() != 4) invalid("the input has rank " + std::to_string(extents.size()) + ", expected 4");
  if (size.size() != 2)
    invalid("there are " + std::to_string(size.size()) + " size values, expected height and width");
  for (size_t i = 0; i < 2; ++i) {
    data = taken(op, data, i + 1,
                 nearest_positions(op, extents[i + 1], size[i], options.align_corners(),
                                   options.half_pixel_centers()));
  }
  op.define(op.output(), data);
}

// ---- blocks of pixels: a pixel of n * n times the channels, and n * n pixels ----

namespace {

void import_blocks(OpContext& op, int64_t block, bool to_depth) {
  op.expect_counts(1, 1, 1);
  op.require_movable(op.input(0), op.output());
  const ir::ValueId data = op.value(op.input(0));
  const ir::Shape s = op.shape(data);
  if (s.size() != 4) invalid("the input has rank " + std::to_string(s.size()) + ", expected 4");
  const bool fits = block >= 1 && block < (1 << 15) &&
                    (to_depth ? s[1] % block == 0 && s[2] % block == 0 : s[3] % (block * block) == 0);
  if (!fits)
    invalid("block_size " + std::to_string(block) + " does not divide shape " + importer::to_text(s));
  const ir::Shape split = to_depth ? ir::Shape{s[0], s[1] / block, block, s[2] / block, block, s[3]}
                                   : ir::Shape{s[0], s[1], s[2], block, block, s[3] / (block * block)};
  const ir::Shape joined = to_depth ? ir::Shape{s[0], s[1] / block, s[2] / block, s[3] * block * block}
                                    : ir::Shape{s[0], s[1] * block, s[2] * block, s[3] / (block * block)};
  const ir::ValueId moved =
      op.emit("transpose", {op.reshaped(data, split)}, {{"axes", ir::Ints{0, 1, 3, 2, 4, 5}}});
  op.define(op.output(), op.reshaped(moved, joined));
}

}  // namespace

void import_space_to_depth(OpContext& op) {
  import_blocks(op, op.options<tflite::SpaceToDepthOptions>().block_size(), true);
}
void import_depth_to_space(OpContext& op) {
  import_blocks(op, op.options<tflite::DepthToSpaceOptions>().block_size(), false);
}

}  // namespace qplan::tfl
