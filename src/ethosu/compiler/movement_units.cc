// Operators that move bytes: reshapes, concatenations, parts, resizes to the nearest element, pads,
// transposes. Under which conditions they are copies of a few parts, or none, and these copies as kernels.
#include <algorithm>
#include <array>

#include "src/ethosu/compiler/target.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/op_def.h"

namespace qplan::ethosu::compiler {
namespace {

// ---- what the operators say, in the axes of the image: 0 height, 1 width, 2 channels

// nullopt: steps backwards, steps along the channels, or another axis than the image's.
std::optional<View> slice_view(const ir::Function& function, const ir::Node& slice) {
  const std::vector<op::SliceRange> ranges = op::slice_ranges(slice, function.type(slice.operands[0]).shape);
  View view;
  for (size_t axis = 0; axis < ranges.size(); ++axis) {
    const op::SliceRange& range = ranges[axis];
    const int64_t step = range.count == 1 ? 1 : range.step;
    if (axis + 3 < ranges.size()) {
      if (range.begin != 0 || step != 1) return std::nullopt;
      continue;
    }
    const size_t of_image = axis + 3 - ranges.size();
    if (step < 1 || step > kMaxExtent || (of_image == 2 && step != 1)) return std::nullopt;
    view.begin[of_image] = static_cast<uint32_t>(range.begin);
    view.step[of_image] = static_cast<uint32_t>(step);
  }
  return view;
}

// The positions that a take reads; nullopt: they are no list of constants, or out of range.
std::optional<std::vector<uint32_t>> taken_positions(const ir::Function& function, const ir::Node& take) {
  const ir::ConstantRef& indices = function.value(take.operands[1]).constant;
  const ir::Shape& shape = function.type(take.operands[0]).shape;
  if (indices == nullptr || indices->type().shape.size() != 1) return std::nullopt;
  const auto extent =
      shape[static_cast<size_t>(op::normalized_axis(op::attr_int(take, "axis"), shape.size()))];
  std::vector<uint32_t> positions;
  for (int64_t i = 0; i < indices->type().num_elements(); ++i) {
    const auto at = static_cast<size_t>(i);
    int64_t index =
        indices->type().dtype == ir::kInt32 ? indices->as<int32_t>()[at] : indices->as<int64_t>()[at];
    if (index < 0) index += extent;
    if (index < 0 || index >= extent) return std::nullopt;
    positions.push_back(static_cast<uint32_t>(index));
  }
  return positions;
}

// Outputs to + i * to_step are inputs from + i * from_step, for i below count. Steps are at least 1.
struct Run {
  uint32_t from = 0, from_step = 1, to = 0, to_step = 1, count = 1;
};
// Greedy: from the first output that is left, the longest sequence of equal steps.
std::vector<Run> runs_of(const std::vector<uint32_t>& positions) {
  constexpr uint32_t kMaxStep = 16;  // of the output: the largest factor of a resize that is taken
  std::vector<bool> is_done(positions.size());
  std::vector<Run> runs;
  for (uint32_t first = 0; first < positions.size(); ++first) {
    if (is_done[first]) continue;
    Run best;
    best.from = positions[first], best.to = first;
    for (uint32_t step = 1; step <= kMaxStep && first + step < positions.size(); ++step) {
      if (positions[first + step] <= positions[first]) continue;
      Run run = best;
      run.to_step = step, run.from_step = positions[first + step] - positions[first], run.count = 1;
      for (uint32_t at = first + step; at < positions.size() && !is_done[at]; at += step, ++run.count) {
        if (positions[at] != run.from + run.count * run.from_step) break;
      }
      if (run.count > best.count) best = run;
    }
    for (uint32_t i = 0; i < best.count; ++i) is_done[best.to + i * best.to_step] = true;
    runs.push_back(best);
  }
  return runs;
}

struct AxisPad {
  uint32_t before = 0, after = 0;
};
// nullopt: another axis than the image's is padded.
std::optional<std::array<AxisPad, 3>> pads_of(const ir::Node& pad) {
  const auto& widths = op::attr_int_lists(pad, "pad_width");
  std::array<AxisPad, 3> pads;
  for (size_t axis = 0; axis < widths.size(); ++axis) {
    const ir::Ints& width = widths[axis];
    if (axis + 3 < widths.size()) {
      if (width[0] != 0 || width[1] != 0) return std::nullopt;
      continue;
    }
    pads[axis + 3 - widths.size()] = {static_cast<uint32_t>(width[0]), static_cast<uint32_t>(width[1])};
  }
  return pads;
}

// For each axis of the output's image the axis of the input's; nullopt: axes beside the image are not 1.
std::optional<std::array<size_t, 3>> transposed_axes(const ir::Function& function,
                                                     const ir::Node& transpose) {
  if (!image_of(function.type(transpose.operands[0])) || !image_of(function.type(transpose.results[0])))
    return std::nullopt;
  const ir::Ints& axes = op::attr_ints(transpose, "axes");
  std::array<size_t, 3> sources = {0, 1, 2};
  for (size_t axis = 0; axis < 3; ++axis) {
    if (axis + axes.size() < 3) continue;
    const auto from = static_cast<size_t>(axes[axis + axes.size() - 3]) + 3;
    // Axes beside the image have one element: it does not matter where they are read.
    sources[axis] = from >= axes.size() ? from - axes.size() : axis;
  }
  return sources;
}

// ---- under which conditions they are copies of a few parts, or none

// Kernels of one node: more of them are better on the CPU.
constexpr int64_t kMaxKernels = 64;

// The axis is one of the image's.
Constraint parts_axis(const std::string& prefix) {
  return {prefix + "axis", "along one of the last three axes", kNothingToChange,
          [](const Candidate& c) -> std::string {
            const auto rank = static_cast<int64_t>(c.function().type(c.root().results[0]).shape.size());
            const int64_t axis = op::attr_int(c.root(), "axis");
            const int64_t positive = axis < 0 ? axis + rank : axis;
            return positive + 3 >= rank ? "" : cat("along axis ", positive, " of ", rank);
          }};
}

// Kernels that fill a box from an input: each takes a part that is no larger than it along any axis.
int64_t pieces(const std::array<int64_t, 3>& box, const std::array<int64_t, 3>& input) {
  int64_t count = 1;
  for (size_t axis = 0; axis < 3; ++axis) count = product(count, (box[axis] + input[axis] - 1) / input[axis]);
  return count;
}

// Whether the take reads each element of an axis twice, one after the other.
bool doubles(const ir::Function& function, const ir::Node& take) {
  const auto positions = taken_positions(function, take);
  const ir::Shape& shape = function.type(take.operands[0]).shape;
  const auto axis = static_cast<size_t>(op::normalized_axis(op::attr_int(take, "axis"), shape.size()));
  if (!positions || static_cast<int64_t>(positions->size()) != 2 * shape[axis]) return false;
  for (size_t i = 0; i < positions->size(); ++i) {
    if ((*positions)[i] != i / 2) return false;
  }
  return true;
}

}  // namespace

Rows reshape_constraints() { return activation_rows("ethosu.reshape.", "", 1); }

Rows concatenate_constraints() {
  Rows rows = activation_rows("ethosu.concatenate.", "", 0);
  rows.push_back(parts_axis("ethosu.concatenate."));
  return rows;
}

Rows split_constraints() {
  Rows rows = activation_rows("ethosu.split.", "", 1);
  rows.push_back(parts_axis("ethosu.split."));
  return rows;
}

Rows slice_constraints() {
  const std::string prefix = "ethosu.strided_slice.";
  Rows rows = activation_rows(prefix, "", 1);
  rows.push_back({prefix + "steps", "no steps backwards, and none along the channels", kNothingToChange,
                  [](const Candidate& c) -> std::string {
                    return slice_view(c.function(), c.root())
                               ? ""
                               : cat("strides ", op::to_text(op::attr_ints(c.root(), "strides")));
                  }});
  return rows;
}

Rows take_constraints() {
  const std::string prefix = "ethosu.take.";
  Rows rows = activation_rows(prefix, "", 1);
  rows.push_back(parts_axis(prefix));
  rows.push_back(
      {prefix + "positions",
       cat("a list of constant positions that at most ", kMaxKernels,
           " kernels copy, each with one step in the input and one in the output; channels in sequence"),
       kNothingToChange, [](const Candidate& c) -> std::string {
         const auto positions = taken_positions(c.function(), c.root());
         if (!positions) return "positions that are computed, or out of range";
         const std::vector<Run> runs = runs_of(*positions);
         if (std::ssize(runs) > kMaxKernels) return cat(runs.size(), " sequences of positions");
         const size_t rank = c.function().type(c.root().operands[0]).shape.size();
         const bool is_along_channels =
             op::normalized_axis(op::attr_int(c.root(), "axis"), rank) + 1 == static_cast<int64_t>(rank);
         const auto steps = [](const Run& run) {
           return run.count > 1 && (run.from_step | run.to_step) != 1;
         };
         return is_along_channels && std::ranges::any_of(runs, steps) ? "steps along the channels" : "";
       }});
  return rows;
}

Rows resize_nearest_constraints() {
  const std::string prefix = "ethosu.resize_nearest2x.";
  Rows rows = activation_rows(prefix, "", 1);
  rows.push_back({prefix + "factor", "each row and each column twice, one after the other (NHWC)",
                  "resize by 2 to the nearest element", [](const Candidate& c) -> std::string {
                    const ir::Node &inner = *c.node("inner"), &outer = c.root();
                    const size_t rank = c.function().type(outer.operands[0]).shape.size();
                    std::vector<size_t> axes;
                    for (const ir::Node* const take : {&inner, &outer}) {
                      axes.push_back(image_axis(op::attr_int(*take, "axis"), rank));
                      if (!doubles(c.function(), *take)) return "other positions";
                    }
                    std::ranges::sort(axes);
                    return axes == std::vector<size_t>{0, 1} ? "" : "other axes";
                  }});
  return rows;
}

Rows pad_constraints() {
  const std::string prefix = "ethosu.pad.";
  Rows rows = activation_rows(prefix, "", 1);
  rows.push_back({prefix + "mode", "a constant, around the last three axes", kNothingToChange,
                  [](const Candidate& c) -> std::string {
                    if (op::attr_string(c.root(), "pad_mode") != "constant" ||
                        c.function().value(c.root().operands[1]).constant == nullptr)
                      return "no constant";
                    return pads_of(c.root()) ? "" : "another axis";
                  }});
  rows.push_back({prefix + "extent",
                  cat("at most ", kMaxKernels, " parts, each no larger than the input, make the border"),
                  kNothingToChange, [](const Candidate& c) -> std::string {
                    const auto image = image_of(c.function().type(c.root().operands[0]));
                    const auto pads = pads_of(c.root());
                    if (!image || !pads) return "";
                    const std::array<int64_t, 3> input = {image->h, image->w, image->d};
                    std::array<int64_t, 3> box = input;
                    int64_t count = 1;
                    for (const size_t axis : {size_t{2}, size_t{1}, size_t{0}}) {
                      const int64_t whole = input[axis] + (*pads)[axis].before + (*pads)[axis].after;
                      for (const uint32_t extent : {(*pads)[axis].before, (*pads)[axis].after}) {
                        box[axis] = extent;
                        count = std::min(count + pieces(box, input), int64_t{INT32_MAX});
                      }
                      box[axis] = whole;
                    }
                    return count <= kMaxKernels ? "" : cat(count, " parts");
                  }});
  return rows;
}

Rows transpose_constraints() {
  const std::string prefix = "ethosu.transpose.";
  Rows rows = activation_rows(prefix, "", 1);
  rows.push_back({prefix + "extent",
                  cat("the channels stay the last axis, or one axis has at most ", kMaxKernels, " elements"),
                  kNothingToChange, [](const Candidate& c) -> std::string {
                    const auto sources = transposed_axes(c.function(), c.root());
                    if (!sources || (*sources)[2] == 2) return "";
                    const Image image = *image_of(c.function().type(c.root().results[0]));
                    const int64_t least = std::min({image.h, image.w, image.d});
                    return least <= kMaxKernels ? "" : cat("the shortest axis has ", least, " elements");
                  }});
  return rows;
}

// ---- the kernels

namespace {

bool is_same_place(const FeatureMap& a, const FeatureMap& b) {
  return a.region == b.region && a.base[0] == b.base[0] && a.stride_x == b.stride_x &&
         a.stride_y == b.stride_y;
}

uint32_t extent_of(const FeatureMap& map, size_t axis) {
  return axis == 0 ? map.h : axis == 1 ? map.w : map.d;
}
void set_extent(FeatureMap* map, size_t axis, uint32_t extent) {
  (axis == 0 ? map->h : axis == 1 ? map->w : map->d) = extent;
}

Unit unary(const ir::Node& node) {
  Unit unit;
  unit.name = node.name;
  unit.inputs = {node.operands[0]};
  return unit;
}

// A box of the output, from `begin` on and as large as `like`, that has one value: a copy of some part of the
// input that is clamped to it.
void fill(const UnitContext& context, const std::string& name, const View& begin, const FeatureMap& like,
          int32_t value) {
  const FeatureMap& input = context.inputs[0];
  FeatureMap piece = like;
  for (uint32_t y = 0; y < like.h; y += piece.h) {
    piece.h = std::min(like.h - y, input.h);
    for (uint32_t x = 0; x < like.w; x += piece.w) {
      piece.w = std::min(like.w - x, input.w);
      for (uint32_t c = 0; c < like.d; c += piece.d) {
        piece.d = std::min(like.d - c, input.d);
        const View at = {{begin.begin[0] + y, begin.begin[1] + x, begin.begin[2] + c}};
        Kernel k = copy_kernel(view_of(input, {}, piece), view_of(context.outputs[0], at, piece));
        k.min = k.max = value;
        add_kernel(context, name, k);
      }
    }
  }
}

}  // namespace

Unit read_reshape_unit(const Candidate& c) { return unary(c.root()); }

Unit read_concatenate_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  Unit unit;
  unit.name = node.name;
  unit.inputs = node.operands;
  unit.parts = Unit::Parts::kInputs;
  unit.axis = image_axis(op::attr_int(node, "axis"), c.function().type(node.results[0]).shape.size());
  unit.emit = [axis = unit.axis, name = node.name](const UnitContext& context) {
    View view;
    for (const FeatureMap& input : context.inputs) {
      const FeatureMap part = view_of(context.outputs[0], view, input);
      view.begin[axis] += extent_of(input, axis);
      if (!is_same_place(input, part)) add_kernel(context, name, copy_kernel(input, part));
    }
  };
  return unit;
}

Unit read_split_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  Unit unit = unary(node);
  unit.parts = Unit::Parts::kOutputs;
  unit.axis = image_axis(op::attr_int(node, "axis"), c.function().type(node.operands[0]).shape.size());
  unit.emit = [axis = unit.axis, name = node.name](const UnitContext& context) {
    View view;
    for (const FeatureMap& output : context.outputs) {
      const FeatureMap part = view_of(context.inputs[0], view, output);
      view.begin[axis] += extent_of(output, axis);
      if (!is_same_place(output, part)) add_kernel(context, name, copy_kernel(part, output));
    }
  };
  return unit;
}

Unit read_slice_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  Unit unit = unary(node);
  unit.parts = Unit::Parts::kView;
  unit.view = *slice_view(c.function(), node);
  unit.emit = [view = unit.view, name = node.name](const UnitContext& context) {
    const FeatureMap part = view_of(context.inputs[0], view, context.outputs[0]);
    if (!is_same_place(part, context.outputs[0]))
      add_kernel(context, name, copy_kernel(part, context.outputs[0]));
  };
  return unit;
}

Unit read_take_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  Unit unit = unary(node);
  unit.needs_whole_maps = true;
  const size_t rank = c.function().type(node.operands[0]).shape.size();
  unit.emit = [runs = runs_of(*taken_positions(c.function(), node)), name = node.name,
               axis = image_axis(op::attr_int(node, "axis"), rank)](const UnitContext& context) {
    for (const Run& run : runs) {
      FeatureMap like = context.outputs[0];
      set_extent(&like, axis, run.count);
      View from, to;
      from.begin[axis] = run.from, from.step[axis] = run.from_step;
      to.begin[axis] = run.to, to.step[axis] = run.to_step;
      add_kernel(context, name,
                 copy_kernel(view_of(context.inputs[0], from, like), view_of(context.outputs[0], to, like)));
    }
  };
  return unit;
}

Unit read_resize_nearest_unit(const Candidate& c) {
  Unit unit;
  unit.name = c.root().name;
  unit.inputs = {c.matches["data"].id};
  unit.emit = [name = unit.name](const UnitContext& context) {
    Kernel k = copy_kernel(context.inputs[0], context.outputs[0]);
    k.upscale = Upscale::kNearest;
    add_kernel(context, name, k);
  };
  return unit;
}

Unit read_pad_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  Unit unit = unary(node);
  unit.needs_whole_maps = true;
  const int32_t value = layer::pad_value(*c.function().value(node.operands[1]).constant);
  unit.emit = [pads = *pads_of(node), value, name = node.name](const UnitContext& context) {
    const FeatureMap &input = context.inputs[0], &output = context.outputs[0];
    const View inside = {{pads[0].before, pads[1].before, pads[2].before}};
    add_kernel(context, name, copy_kernel(input, view_of(output, inside, input)));
    // What is before and after the input along an axis, as long as it is along the axes that are done.
    FeatureMap like = input;
    View begin = inside;
    for (const size_t axis : {size_t{2}, size_t{1}, size_t{0}}) {
      set_extent(&like, axis, pads[axis].before);
      begin.begin[axis] = 0;
      fill(context, name, begin, like, value);
      set_extent(&like, axis, pads[axis].after);
      begin.begin[axis] = pads[axis].before + extent_of(input, axis);
      fill(context, name, begin, like, value);
      set_extent(&like, axis, extent_of(output, axis));
      begin.begin[axis] = 0;
    }
  };
  return unit;
}

// One kernel where the channels stay; else one for each index of the shortest axis, over the other two.
Unit read_transpose_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  Unit unit = unary(node);
  unit.needs_whole_maps = true;
  unit.emit = [sources = *transposed_axes(c.function(), node), name = node.name](const UnitContext& context) {
    const FeatureMap &input = context.inputs[0], &output = context.outputs[0];
    const uint64_t of_input[] = {input.stride_y, input.stride_x, input.element_bytes()};
    const uint64_t of_output[] = {output.stride_y, output.stride_x, output.element_bytes()};
    const uint64_t from[] = {of_input[sources[0]], of_input[sources[1]], of_input[sources[2]]};
    FeatureMap in = view_of(input, {}, output), out = output;
    if (sources[2] == 2) {
      in.stride_y = from[0], in.stride_x = from[1];
      return add_kernel(context, name, copy_kernel(in, out));
    }
    size_t shortest = 0;
    for (const size_t axis : {size_t{1}, size_t{2}}) {
      if (extent_of(output, axis) < extent_of(output, shortest)) shortest = axis;
    }
    const size_t y = shortest == 0 ? 1 : 0, x = shortest == 2 ? 1 : 2;
    const auto plane = [&](FeatureMap* map, const uint64_t strides[3], uint32_t index) {
      map->h = extent_of(output, y), map->w = extent_of(output, x), map->d = 1;
      map->width0 = map->w, map->height0 = map->height1 = map->h;
      map->stride_y = strides[y], map->stride_x = strides[x];
      map->base[0] += index * strides[shortest];
    };
    for (uint32_t i = 0; i < extent_of(output, shortest); ++i) {
      FeatureMap from_plane = in, to_plane = out;
      plane(&from_plane, from, i);
      plane(&to_plane, of_output, i);
      add_kernel(context, name, copy_kernel(from_plane, to_plane));
    }
  };
  return unit;
}

}  // namespace qplan::ethosu::compiler
