// Windows of convolutions and pools over any number of axes: their attributes, what these mean, and those
// that the IR does not have, made of those that it has.
#include <algorithm>
#include <numeric>

#include "src/base/checked.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"

namespace qplan::onnx {
namespace {

// Returns the attribute's `count` values, or nullopt if the node lacks it.
std::optional<ir::Ints> window_attr(const OpContext& op, const char* name, size_t count, int64_t least) {
  std::optional<ir::Ints> values = op.attr_ints(name);
  if (!values) return values;
  if (values->size() != count)
    invalid(cat("attribute '", name, "' has ", values->size(), " values, expected ", count));
  for (const int64_t value : *values) {
    if (value < 0 && least == 0) throw Unsupported{cat("negative ", name, "; cut the data with Slice")};
    if (value < least || value > kMaxWindow) {
      invalid(cat("attribute '", name, "' is ", to_text(*values), ", expected values from ", least, " to ",
                  kMaxWindow));
    }
  }
  return values;
}

// Pads for ceil(extent / stride) outputs, as SAME_UPPER and SAME_LOWER ask. The odd element of padding is
// after the data (is_upper) or before it.
void pad_same(bool is_upper, WindowAxis* axis) {
  const int64_t outputs = (axis->extent - 1) / axis->stride + 1;
  const int64_t total = (outputs - 1) * axis->stride + axis->covered() - axis->extent;
  axis->split_pads(std::max<int64_t>(total, 0), is_upper);
}

AutoPad auto_pad_of(const OpContext& op) {
  const std::string mode = op.attr_string("auto_pad", "NOTSET");
  if (mode == "NOTSET") return AutoPad::kNotSet;
  if (mode == "VALID") return AutoPad::kValid;
  if (mode == "SAME_UPPER") return AutoPad::kSameUpper;
  if (mode == "SAME_LOWER") return AutoPad::kSameLower;
  invalid(cat("attribute 'auto_pad' is ", in_quotes(mode),
              ", expected 'NOTSET', 'VALID', 'SAME_UPPER' or 'SAME_LOWER'"));
}

}  // namespace

Layout layout_of(const OpContext& op) {
  return op.attr_int("channels_last", 0) != 0 ? Layout::kNhwc : Layout::kNchw;
}

ir::Ints spatial(const ir::Shape& shape, Layout layout, const char* ranks) {
  if (shape.size() != 4)
    throw Unsupported{cat("data of rank ", shape.size(), "; reshape it to rank ", ranks)};
  return layout == Layout::kNchw ? ir::Ints{shape[2], shape[3]} : ir::Ints{shape[1], shape[2]};
}

Value with_height(const OpContext& op, const Value& value) {
  ir::Shape shape = op.shape(value);
  if (shape.size() != 3) return value;
  shape.insert(shape.begin() + 2, 1);
  return op.reshape(value, shape);
}

Value without_height(const OpContext& op, const Value& value, const Value& data) {
  ir::Shape shape = op.shape(value);
  if (op.shape(data).size() != 3) return value;
  shape.erase(shape.begin() + 2);
  return op.reshape(value, shape);
}

int64_t num_positions(int64_t outputs, int64_t kernel) {
  int64_t result = 0;
  if (!checked_mul(outputs, kernel, &result) || result > kMaxPositions)
    throw Unsupported{
        cat(outputs, " times ", kernel, " copies of frames; make the window or the clip shorter")};
  return result;
}

void WindowAxis::split_pads(int64_t total, bool is_odd_at_end) {
  pad_begin = is_odd_at_end ? total / 2 : total - total / 2;
  pad_end = total - pad_begin;
}

bool Window::has_ceil_pads() const {
  return std::ranges::any_of(axes, [](const WindowAxis& axis) { return axis.ceil_pad != 0; });
}

bool Window::has_dilations() const {
  return std::ranges::any_of(axes, [](const WindowAxis& axis) { return axis.dilation != 1; });
}

ir::Attrs Window::plane_attrs(const char* kernel_name) const {
  const WindowAxis &h = axes.at(axes.size() - 2), &w = axes.back();
  ir::Attrs attrs{{kernel_name, ir::Ints{h.kernel, w.kernel}},
                  {"strides", ir::Ints{h.stride, w.stride}},
                  {"padding", ir::Ints{h.pad_begin, w.pad_begin, h.pad_end, w.pad_end}}};
  if (h.dilation != 1 || w.dilation != 1) attrs.set("dilation", ir::Ints{h.dilation, w.dilation});
  return attrs;
}

WindowAttributes read_window_attributes(const OpContext& op, const ir::Ints& extents, const ir::Ints& kernel,
                                        int64_t least_pad) {
  const size_t count = extents.size();
  const auto shape = window_attr(op, "kernel_shape", count, 1),
             strides = window_attr(op, "strides", count, 1),
             dilations = window_attr(op, "dilations", count, 1),
             pads = window_attr(op, "pads", 2 * count, least_pad);
  if (!shape && kernel.empty()) invalid("attribute 'kernel_shape' is missing");
  if (shape && !kernel.empty() && *shape != kernel)
    invalid(cat("attribute 'kernel_shape' is ", to_text(*shape), ", but the weights have ", to_text(kernel)));
  WindowAttributes result{.axes = {}, .auto_pad = auto_pad_of(op)};
  const bool has_pads = result.auto_pad == AutoPad::kNotSet;
  const auto entry = [](const std::optional<ir::Ints>& values, size_t at, int64_t fallback) {
    return values ? (*values)[at] : fallback;
  };
  for (size_t i = 0; i < count; ++i) {
    const WindowAxis axis{.extent = extents[i],
                          .kernel = kernel.empty() ? (*shape)[i] : kernel[i],
                          .stride = entry(strides, i, 1),
                          .dilation = entry(dilations, i, 1),
                          .pad_begin = has_pads ? entry(pads, i, 0) : 0,
                          .pad_end = has_pads ? entry(pads, i + count, 0) : 0};
    if (axis.kernel < 1 || axis.kernel > kMaxWindow)
      invalid(cat("the weights have a window of ", axis.kernel, ", expected 1 to ", kMaxWindow));
    result.axes.push_back(axis);
  }
  return result;
}

Window read_window(const OpContext& op, const ir::Ints& extents, const ir::Ints& kernel) {
  WindowAttributes attributes = read_window_attributes(op, extents, kernel, 0);
  const bool is_upper = attributes.auto_pad == AutoPad::kSameUpper;
  const bool is_same = is_upper || attributes.auto_pad == AutoPad::kSameLower;
  const bool has_ceil = op.attr_int("ceil_mode", 0) != 0 && !is_same;
  Window window;
  for (WindowAxis& axis : attributes.axes) {
    if (is_same) pad_same(is_upper, &axis);
    if (axis.extent + axis.pad_begin + axis.pad_end < axis.covered()) {
      invalid(cat("a window of ", axis.covered(), " does not fit an axis of ", axis.extent, " with pads ",
                  axis.pad_begin, " and ", axis.pad_end));
    }
    if (has_ceil) {
      axis.ceil_pad =
          op::ceil_padding(axis.extent, axis.pad_begin, axis.pad_end, axis.covered(), axis.stride);
      axis.pad_end += axis.ceil_pad;
    }
    window.axes.push_back(axis);
  }
  return window;
}

Window read_plane_window(const OpContext& op, const ir::Ints& extents, const ir::Ints& kernel,
                         bool one_axis) {
  if (!one_axis) return read_window(op, extents, kernel);
  Window window = read_window(op, {extents[1]}, kernel.empty() ? ir::Ints{} : ir::Ints{kernel[1]});
  window.axes.insert(window.axes.begin(), WindowAxis{});
  return window;
}

// Average pools, and max pools with dilations, made of the pools of the IR, which have no dilations.
namespace {

constexpr const char* kOnlyPadding = "a window that lies in the padding; give it fewer pads";
constexpr int64_t kMostPhases = 64;  // 8 x 8: more than any atrous network has

// The greatest element of each window along one axis, with dilations: a window's positions in the padding
// name its first element inside instead, which changes no maximum.
Value dilated_max(const OpContext& op, const Value& data, size_t at, const WindowAxis& axis) {
  const int64_t outputs = axis.outputs();
  op.graph().charge(static_cast<uint64_t>(num_positions(outputs, axis.kernel)) * sizeof(int64_t));
  ir::Ints positions;
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t begin = o * axis.stride - axis.pad_begin;
    const int64_t skipped = begin < 0 ? (-begin + axis.dilation - 1) / axis.dilation : 0;
    const int64_t inside = begin + skipped * axis.dilation;
    if (skipped >= axis.kernel || inside >= axis.extent) throw Unsupported{kOnlyPadding};
    for (int64_t k = 0; k < axis.kernel; ++k) {
      const int64_t position = begin + k * axis.dilation;
      positions.push_back(position < 0 || position >= axis.extent ? inside : position);
    }
  }
  ir::Shape shape = op.shape(data);
  shape[at] = outputs;
  shape.insert(shape.begin() + static_cast<int64_t>(at) + 1, axis.kernel);
  const Value windows = op.reshape(taken(op, data, at, positions), shape);
  return op.emit("max", {windows}, {{"axis", ir::Ints{static_cast<int64_t>(at) + 1}}});
}

// An average cannot leave out its padding like that: its divisor is the number of elements inside. But the
// windows of every num_phases-th output read elements that are `dilation` apart, and among these they are
// windows without dilation.
struct Phase {
  int64_t begin, end;  // the elements begin, begin + dilation, ... before end
  WindowAxis window;   // over these elements
};

int64_t num_phases(const WindowAxis& axis) { return axis.dilation / std::gcd(axis.stride, axis.dilation); }

// index: of the phase's first output, below num_phases and outputs().
Phase phase_of(const WindowAxis& axis, int64_t index) {
  if (axis.dilation == 1) return {0, axis.extent, axis};
  const int64_t phases = num_phases(axis);
  Phase phase;
  WindowAxis& window = phase.window;
  window.kernel = axis.kernel;
  window.stride = axis.stride * phases / axis.dilation;
  const int64_t outputs = (axis.outputs() - index + phases - 1) / phases;
  const int64_t taps = (outputs - 1) * window.stride + window.kernel;  // of all its windows together
  const int64_t first = index * axis.stride - axis.pad_begin;
  window.pad_begin = first < 0 ? (-first + axis.dilation - 1) / axis.dilation : 0;
  phase.begin = first + window.pad_begin * axis.dilation;
  phase.end = std::min(axis.extent, first + (taps - 1) * axis.dilation + 1);
  if (window.pad_begin >= window.kernel || phase.begin >= phase.end) throw Unsupported{kOnlyPadding};
  window.extent = (phase.end - phase.begin + axis.dilation - 1) / axis.dilation;
  window.pad_end = taps - window.pad_begin - window.extent;
  if (window.pad_end >= window.kernel) throw Unsupported{kOnlyPadding};
  return phase;
}

std::vector<Phase> phases_of(const WindowAxis& axis) {
  std::vector<Phase> phases;
  const int64_t count = std::min({num_phases(axis), axis.outputs(), kMostPhases + 1});
  for (int64_t i = 0; i < count; ++i) phases.push_back(phase_of(axis, i));
  return phases;
}

Value elements_of(const OpContext& op, const Value& data, const Phase& h, int64_t h_step, const Phase& w,
                  int64_t w_step) {
  return op.emit("strided_slice", {data},
                 {{"begin", ir::Ints{h.begin, w.begin}},
                  {"end", ir::Ints{h.end, w.end}},
                  {"strides", ir::Ints{h_step, w_step}},
                  {"axes", ir::Ints{2, 3}}});
}

// Output o of the axis is output o / n of part o % n.
Value interleaved(const OpContext& op, const std::vector<Value>& parts, size_t axis) {
  if (parts.size() == 1) return parts[0];
  const Value all = op.emit("concatenate", parts, {{"axis", static_cast<int64_t>(axis)}});
  const int64_t outputs = op.shape(all)[axis];
  op.graph().charge(static_cast<uint64_t>(num_positions(outputs, 1)) * sizeof(int64_t));
  ir::Ints begins = {0}, positions;
  for (const Value& part : parts) begins.push_back(begins.back() + op.shape(part)[axis]);
  const auto count = static_cast<int64_t>(parts.size());
  for (int64_t o = 0; o < outputs; ++o)
    positions.push_back(begins[static_cast<size_t>(o % count)] + o / count);
  return taken(op, all, axis, positions);
}

Value average(const OpContext& op, const Value& data, const WindowAxis& h, const WindowAxis& w,
              bool include_padding) {
  ir::Attrs attrs = Window{.axes = {h, w}}.plane_attrs("pool_size");
  const ir::Ints padding = attrs.get_ints("padding", {});
  const bool is_padded = std::ranges::any_of(padding, [](int64_t pad) { return pad != 0; });
  if (include_padding && is_padded) attrs.set("count_include_pad", true);
  return op.emit("nn.avg_pool2d", {data}, std::move(attrs));
}

// count_include_pad counts the padding that the file names, not that which ceil_mode adds: pads the data, so
// that only the latter is left.
Value with_named_pads(const OpContext& op, const Value& data, WindowAxis* h, WindowAxis* w) {
  std::vector<ir::Ints> width = {{0, 0}, {0, 0}};
  for (WindowAxis* axis : {h, w}) {
    width.push_back({axis->pad_begin, axis->pad_end - axis->ceil_pad});
    axis->extent += width.back()[0] + width.back()[1];
    axis->pad_begin = 0;
    axis->pad_end = axis->ceil_pad;
  }
  const bool has_any = std::ranges::any_of(width, [](const ir::Ints& pads) {
    return pads != ir::Ints{0, 0};
  });
  return has_any ? op.emit("nn.pad", {data, ir::make_scalar(0.0f)}, {{"pad_width", width}}) : data;
}

}  // namespace

std::optional<Value> dilated_max_pool(const OpContext& op, const Value& data) {
  const ir::Shape& shape = op.shape(data);
  const auto dilations = op.attr_ints("dilations");
  const bool has_any = dilations && std::ranges::any_of(*dilations, [](int64_t d) { return d != 1; });
  if (shape.size() < 3 || !has_any) return std::nullopt;
  const Window window = read_window(op, {shape.begin() + 2, shape.end()}, {});
  Value result = data;
  for (size_t i = 0; i < window.axes.size(); ++i) result = dilated_max(op, result, i + 2, window.axes[i]);
  return result;
}

Value average_plane(const OpContext& op, Value data, WindowAxis h, WindowAxis w, bool include_padding) {
  if (include_padding && (h.ceil_pad != 0 || w.ceil_pad != 0)) {
    data = with_named_pads(op, data, &h, &w);
    include_padding = false;
  }
  if (h.dilation == 1 && w.dilation == 1) return average(op, data, h, w, include_padding);
  const std::vector<Phase> rows = phases_of(h), columns = phases_of(w);
  if (static_cast<int64_t>(rows.size() * columns.size()) > kMostPhases)
    throw Unsupported{cat("dilations with more than ", kMostPhases, " phases; make them smaller")};
  std::vector<Value> bands;
  for (const Phase& row : rows) {
    std::vector<Value> parts;
    for (const Phase& column : columns) {
      const Value elements = elements_of(op, data, row, h.dilation, column, w.dilation);
      parts.push_back(average(op, elements, row.window, column.window, include_padding));
    }
    bands.push_back(interleaved(op, parts, 3));
  }
  return interleaved(op, bands, 2);
}

// Layers over depth, height and width become layers over height and width: the depth of a window becomes
// copies of frames, or a second window along the depth.
namespace {

ir::Ints axes_of(const ir::Shape& data) { return {data.begin() + 2, data.end()}; }

// [n, c, d, h, w] as [n * outputs, c * kernel, h, w]: the frames that each output of the depth reads.
Value gathered_frames(const OpContext& op, const Value& data, const WindowAxis& depth) {
  Value padded = data;
  if (depth.pad_begin != 0 || depth.pad_end != 0) {
    const std::vector<ir::Ints> width = {{0, 0}, {0, 0}, {depth.pad_begin, depth.pad_end}, {0, 0}, {0, 0}};
    padded = op.emit("nn.pad", {data, ir::make_scalar(0.0f)}, {{"pad_width", width}});
  }
  const int64_t outputs = depth.outputs();
  op.graph().charge(static_cast<uint64_t>(num_positions(outputs, depth.kernel)) * sizeof(int64_t));
  ir::Ints positions;
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t k = 0; k < depth.kernel; ++k) positions.push_back(o * depth.stride + k * depth.dilation);
  }
  const Value frames = taken(op, padded, 2, positions);
  const ir::Shape s = op.shape(data);
  const Value apart = op.reshape(frames, {s[0], s[1], outputs, depth.kernel, s[3], s[4]});
  const Value moved = op.emit("transpose", {apart}, {{"axes", ir::Ints{0, 2, 1, 3, 4, 5}}});
  return op.reshape(moved, {s[0] * outputs, s[1] * depth.kernel, s[3], s[4]});
}

// The pool of height and width, and then the one of the depth. pool(value, h, w): over the last two axes.
template <typename Pool>
Value pooled_volume(const OpContext& op, const Value& data, const Window& window, const Pool& pool) {
  const ir::Shape s = op.shape(data);
  const Value planes =
      pool(op.reshape(data, {s[0], s[1] * s[2], s[3], s[4]}), window.axes[1], window.axes[2]);
  const int64_t h = op.shape(planes)[2], w = op.shape(planes)[3];
  const Value volume = pool(op.reshape(planes, {s[0], s[1], s[2], h * w}), window.axes[0], {.extent = h * w});
  return op.reshape(volume, {s[0], s[1], op.shape(volume)[2], h, w});
}

}  // namespace

Value volume_conv(const OpContext& op, const Value& data, const Value& weights) {
  const ir::Shape s = op.shape(data), k = op.shape(weights);
  if (k.size() != 5) invalid(cat("the weights are ", op.type(weights), ", expected rank 5"));
  const Window window = read_window(op, axes_of(s), {k[2], k[3], k[4]});
  const std::vector<WindowAxis>& axes = window.axes;
  ir::Attrs attrs = window.plane_attrs("kernel_size");
  if (const int64_t groups = op.attr_int("group", 1); groups != 1) attrs.set("groups", groups);
  attrs.set("channels", k[0]);
  const Value frames = gathered_frames(op, data, axes[0]);
  Value result =
      op.emit("nn.conv2d", {frames, op.reshape(weights, {k[0], k[1] * k[2], k[3], k[4]})}, std::move(attrs));
  if (op.has_input(2)) result = op.emit("nn.bias_add", {result, op.input(2)}, {{"axis", int64_t{1}}});
  const ir::Shape made = op.shape(result);
  const Value apart = op.reshape(result, {s[0], axes[0].outputs(), made[1], made[2], made[3]});
  return op.emit("transpose", {apart}, {{"axes", ir::Ints{0, 2, 1, 3, 4}}});
}

Value volume_average_pool(const OpContext& op, const Value& data) {
  const bool include = op.attr_int("count_include_pad", 0) != 0;
  const Window window = read_window(op, axes_of(op.shape(data)), {});
  return pooled_volume(op, data, window, [&](const Value& plane, const WindowAxis& h, const WindowAxis& w) {
    return average_plane(op, plane, h, w, include);
  });
}

Value volume_max_pool(const OpContext& op, const Value& data) {
  const Window window = read_window(op, axes_of(op.shape(data)), {});
  return pooled_volume(op, data, window, [&](const Value& plane, const WindowAxis& h, const WindowAxis& w) {
    return op.emit("nn.max_pool2d", {plane}, Window{.axes = {h, w}}.plane_attrs("pool_size"));
  });
}

}  // namespace qplan::onnx
