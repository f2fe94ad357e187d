// Under which conditions operators that move bytes are copies of a few parts, or none.
#include <algorithm>

#include "src/ethosu/compiler/unit.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/op_def.h"
#include "src/packer/op/shape.h"

namespace qplan::ethosu::compiler {
namespace {

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

}  // namespace qplan::ethosu::compiler
