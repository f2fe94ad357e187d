// Windows of convolutions and pools over any number of axes: their attributes, and what these mean.
#include <algorithm>

#include "src/base/checked.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/shape.h"

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

}  // namespace qplan::onnx
