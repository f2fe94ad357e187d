#include <algorithm>

#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

// The largest number that the IR accepts; sums and products of such numbers do not wrap.
constexpr int64_t kMaxWindow = int64_t{1} << 31;

// one_axis: the file has the width's values; the height's are the fallback's.
ir::Ints window_attr(const OpContext& op, std::string_view name, const ir::Ints& fallback, int64_t least,
                     bool one_axis) {
  std::optional<ir::Ints> found = op.attr_ints(name);
  if (!found) return fallback;
  if (found->size() != fallback.size() / (one_axis ? 2 : 1)) {
    invalid(cat("attribute '", name, "' has ", found->size(), " values, expected ",
                fallback.size() / (one_axis ? 2 : 1)));
  }
  if (one_axis) {
    ir::Ints both = fallback;
    for (size_t i = 0; i < found->size(); ++i) both[2 * i + 1] = (*found)[i];
    found = both;
  }
  for (const int64_t value : *found) {
    if (value < 0 && least == 0) throw Unsupported{cat("negative ", name)};
    if (value < least || value > kMaxWindow) {
      invalid(cat("attribute '", name, "' is ", to_text(*found), ", expected values from ", least, " to ",
                  kMaxWindow));
    }
  }
  return *found;
}

// SAME_UPPER, SAME_LOWER: ceil(input / stride) outputs, with the odd element of padding after or before the
// input.
void pad_same(const ir::Ints& input, bool upper, Window* window) {
  for (size_t i = 0; i < 2; ++i) {
    const int64_t stride = window->strides[i];
    const int64_t covered = window->dilations[i] * (window->kernel[i] - 1) + 1;
    const int64_t outputs = (input[i] - 1) / stride + 1;
    const int64_t total = std::max<int64_t>((outputs - 1) * stride + covered - input[i], 0);
    window->padding[i] = upper ? total / 2 : total - total / 2;
    window->padding[i + 2] = total - window->padding[i];
  }
}

// Adds padding after the input for the last, incomplete window; a window that would begin in the padding is
// left out.
void pad_ceil(const ir::Ints& input, Window* window) {
  for (size_t i = 0; i < 2; ++i) {
    const int64_t stride = window->strides[i];
    const int64_t covered = window->dilations[i] * (window->kernel[i] - 1) + 1;
    const int64_t padded = input[i] + window->padding[i] + window->padding[i + 2];
    if (padded < covered) continue;  // the window does not fit: inference says so
    int64_t outputs = (padded - covered + stride - 1) / stride + 1;
    if ((outputs - 1) * stride >= input[i] + window->padding[i]) --outputs;
    const int64_t missing = (outputs - 1) * stride + covered - padded;
    if (missing <= 0) continue;
    window->padding[i + 2] += missing;
    window->ceil_padding = true;
  }
}

}  // namespace

Layout layout_of(const OpContext& op) {
  return op.attr_int("channels_last", 0) != 0 ? Layout::kNhwc : Layout::kNchw;
}

ir::Ints spatial(const ir::Shape& shape, Layout layout) {
  if (shape.size() != 4) throw Unsupported{cat("data of rank ", shape.size(), "; reshape it to rank 3 or 4")};
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

Window read_window(const OpContext& op, const ir::Ints& input, const ir::Ints& kernel, bool one_axis) {
  Window window;
  const ir::Ints missing = one_axis ? ir::Ints{1, 0} : ir::Ints{0, 0};
  window.kernel = window_attr(op, "kernel_shape", kernel.empty() ? missing : kernel, 1, one_axis);
  if (window.kernel == missing) invalid("attribute 'kernel_shape' is missing");
  if (!kernel.empty() && window.kernel != kernel) {
    invalid(cat("attribute 'kernel_shape' is ", to_text(window.kernel), ", but the weights have ",
                to_text(kernel)));
  }
  window.strides = window_attr(op, "strides", {1, 1}, 1, one_axis);
  window.dilations = window_attr(op, "dilations", {1, 1}, 1, one_axis);
  window.padding = window_attr(op, "pads", {0, 0, 0, 0}, 0, one_axis);
  if (window.kernel[0] > kMaxWindow || window.kernel[1] > kMaxWindow) invalid("the window is too large");

  const std::string auto_pad = op.attr_string("auto_pad", "NOTSET");
  const bool ceil_mode = op.attr_int("ceil_mode", 0) != 0;
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    pad_same(input, auto_pad == "SAME_UPPER", &window);
  } else if (auto_pad == "VALID") {
    window.padding = {0, 0, 0, 0};
  } else if (auto_pad != "NOTSET") {
    invalid("attribute 'auto_pad' is " + quoted(auto_pad));
  }
  if (ceil_mode && (auto_pad == "NOTSET" || auto_pad == "VALID")) pad_ceil(input, &window);
  return window;
}

}  // namespace qplan::onnx
