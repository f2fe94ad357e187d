// What definitions of operators share: checks of operands and attributes with their refusals, and what
// attributes say of shapes: axes, windows, slices, broadcasts.
#include "src/packer/op/infer.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"

namespace qplan::op {
namespace {

std::string float_text(float value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end) + "f";
}

std::string join(std::initializer_list<ir::DType> dtypes) {
  std::string text;
  for (const ir::DType dtype : dtypes) text += (text.empty() ? "" : ", ") + ir::to_string(dtype);
  return text;
}

bool contains(std::initializer_list<ir::DType> dtypes, ir::DType dtype) {
  return std::ranges::find(dtypes, dtype) != dtypes.end();
}

void check_qparam_type(const InferInput& input, size_t operand, ir::DType dtype, PerAxis per_axis) {
  const ir::TensorType& type = input.type(operand);
  const bool scalar = type.shape.empty();
  const bool vector = per_axis && type.shape == ir::Shape{*per_axis};
  if (type.dtype == dtype && (scalar || vector)) return;
  std::string expected = ir::to_string(dtype);
  if (per_axis) expected += " or " + ir::to_string(ir::TensorType{dtype, {*per_axis}});
  invalid(cat(operand_name(input, operand), " is ", type, ", expected ", expected));
}

}  // namespace

std::string to_text(const ir::Ints& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  return text + "]";
}

void invalid(const std::string& text) { throw PackError(QPLAN_MODEL_INVALID, text); }
void unsupported(const std::string& text) { throw PackError(QPLAN_MODEL_UNSUPPORTED, text); }

std::string operand_name(const InferInput& input, size_t operand) {
  const OpDef& op = *input.node.op;
  if (op.variadic) return cat("'", op.operands.at(0).name, "' ", operand);
  return cat("'", op.operands.at(operand).name, "'");
}

void check_rank(const InferInput& input, size_t operand, size_t rank) {
  const ir::TensorType& type = input.type(operand);
  if (type.shape.size() == rank) return;
  invalid(cat(operand_name(input, operand), " is ", type, ", expected rank ", rank));
}

void check_dtype(const InferInput& input, size_t operand, std::initializer_list<ir::DType> allowed) {
  const ir::DType dtype = input.type(operand).dtype;
  if (contains(allowed, dtype)) return;
  unsupported(cat("dtype ", dtype, " of ", operand_name(input, operand), " is not supported, expected ",
                  allowed.size() > 1 ? "one of " : "", join(allowed)));
}

void check_8_bit(const InferInput& input, size_t operand) {
  check_dtype(input, operand, {ir::kInt8, ir::kUint8});
}

void check_quantized(const InferInput& input, size_t operand) {
  check_dtype(input, operand, {ir::kInt8, ir::kUint8, ir::kInt16});
}

void check_same_dtype(const InferInput& input, size_t operand, size_t as) {
  const ir::DType found = input.type(operand).dtype, expected = input.type(as).dtype;
  if (found == expected) return;
  invalid(cat(operand_name(input, operand), " is ", found, ", expected ", expected, " as ",
              operand_name(input, as)));
}

ir::DType dtype_attr(const ir::Node& node, std::string_view name, std::initializer_list<ir::DType> allowed) {
  const std::string& text = attr_string(node, name);
  const std::optional<ir::DType> dtype = ir::dtype_from_string(text);
  if (!dtype) invalid(cat("attribute '", name, "' names an unknown dtype '", text, "'"));
  if (!contains(allowed, *dtype)) {
    unsupported(cat("attribute '", name, "' is ", *dtype, ", expected ", allowed.size() > 1 ? "one of " : "",
                    join(allowed)));
  }
  return *dtype;
}

const std::string& choice_attr(const ir::Node& node, std::string_view name,
                               std::initializer_list<std::string_view> allowed) {
  const std::string& value = attr_string(node, name);
  if (std::ranges::find(allowed, value) != allowed.end()) return value;
  std::string expected;
  for (const std::string_view choice : allowed) expected += cat(expected.empty() ? "'" : ", '", choice, "'");
  unsupported(cat("attribute '", name, "' is '", value, "', expected ", allowed.size() > 1 ? "one of " : "",
                  expected));
}

void check_contract(const ir::Node& node) {
  choice_attr(node, "contract", {"tfl2", "tfl1", "f32e", "pot", "acc32"});
}

void complete_out_layout(ir::Function*, ir::Node* node) {
  const ir::AttrValue* given = node->attrs.find("out_layout");
  if (given == nullptr) return;
  const AttrDef* def = attr_with(node->op, AttrRole::kLayout);
  const ir::AttrValue& own = attr(*node, def->name);
  if (*given != own && *given != ir::AttrValue("")) {
    unsupported(cat("attribute 'out_layout' differs from '", def->name,
                    "', which is not supported: write a transpose after the operator"));
  }
  node->attrs.erase("out_layout");
}

ir::Shape matmul_shape(const InferInput& input) {
  const ir::Shape& a = input.type(0).shape;
  ir::Shape b = input.type(1).shape;
  if (a.size() < 2 || b.size() < 2)
    invalid(cat("operands are ", input.type(0), " and ", input.type(1), ", expected rank 2 or more"));
  if (attr_bool(input.node, "transpose_b")) std::swap(b[b.size() - 1], b[b.size() - 2]);
  if (a.back() != b[b.size() - 2]) {
    invalid(cat("matrices of ", a[a.size() - 2], " x ", a.back(), " and ", b[b.size() - 2], " x ", b.back(),
                " cannot be multiplied"));
  }
  ir::Shape shape = broadcast_shape({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
  shape.push_back(a[a.size() - 2]);
  shape.push_back(b.back());
  return shape;
}

const ir::Constant& constant_operand(const InferInput& input, size_t operand) {
  const ir::Value& value = input.function.value(input.node.operands.at(operand));
  if (value.kind == ir::ValueKind::kConstant) return *value.constant;
  const bool param = value.kind == ir::ValueKind::kParam;
  invalid(cat(operand_name(input, operand), " must be a constant, got ",
              param ? cat("parameter '", value.name, "'") : std::string("the result of a node"),
              "; fold or bind it first"));
}

void check_scale(const InferInput& input, size_t operand, PerAxis per_axis) {
  check_qparam_type(input, operand, ir::kFloat32, per_axis);
  for (const float scale : constant_operand(input, operand).as<float>()) {
    if (std::isfinite(scale) && scale > 0) continue;
    invalid(cat(operand_name(input, operand), " has a value ", float_text(scale),
                ", expected positive and finite"));
  }
}

void check_zero_point(const InferInput& input, size_t operand, ir::DType dtype, PerAxis per_axis) {
  check_qparam_type(input, operand, ir::kInt32, per_axis);
  for (const int32_t zero_point : constant_operand(input, operand).as<int32_t>()) {
    if (zero_point >= dtype.min() && zero_point <= dtype.max()) continue;
    invalid(cat(operand_name(input, operand), " has a value ", zero_point, ", outside of ", dtype));
  }
}

void check_qparams(const InferInput& input, size_t operand, ir::DType dtype, PerAxis per_axis) {
  check_scale(input, operand, per_axis);
  check_zero_point(input, operand + 1, dtype, per_axis);
}

PerAxis per_axis_extent(const InferInput& input, size_t operand, const ir::TensorType& data) {
  if (input.type(operand).shape.empty() && input.type(operand + 1).shape.empty()) return std::nullopt;
  const int64_t axis = normalized_axis(attr_int(input.node, "axis"), data.shape.size());
  return data.shape[static_cast<size_t>(axis)];
}

// ---- shapes ----

namespace {

// Extents and strides beyond this mean nothing to a kernel, and their sums and products stay far from the
// limits of int64_t: dilation * (kernel - 1) < 2^62.
constexpr int64_t kMaxWindow = int64_t{1} << 31;

// Output positions of a window along one axis: (in + before + after - dilated) / stride + 1, where the
// dilated kernel covers dilation * (kernel - 1) + 1 elements.
int64_t out_extent(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t before,
                   int64_t after, std::string_view axis) {
  int64_t padded = 0;
  if (!checked_add(in, before, &padded) || !checked_add(padded, after, &padded)) {
    invalid(cat("padded ", axis, " of the input is too large"));
  }
  const int64_t covered = dilation * (kernel - 1) + 1;
  if (covered > padded) {
    invalid(cat("the window covers ", covered, " of the ", axis, " of the input, which is only ", padded,
                " with padding"));
  }
  return (padded - covered) / stride + 1;
}

void check_range(std::string_view name, const ir::Ints& values, int64_t least) {
  for (const int64_t value : values) {
    if (value < least || value > kMaxWindow) {
      invalid(cat("attribute '", name, "' is ", to_text(values), ", expected values from ", least, " to ",
                  kMaxWindow));
    }
  }
}

// One value for both axes, or height and width.
ir::Ints pair_attr(const ir::Node& node, std::string_view name) {
  const ir::Ints& values = attr_ints(node, name);
  check_range(name, values, 1);
  if (values.size() == 1) return {values[0], values[0]};
  if (values.size() == 2) return values;
  invalid(cat("attribute '", name, "' has ", values.size(), " values, expected 1 or 2"));
}

void read_common(const ir::Node& node, Window2d* window) {
  const ir::Ints strides = pair_attr(node, "strides");
  window->stride_h = strides[0];
  window->stride_w = strides[1];
  const ir::Ints& padding = attr_ints(node, "padding");
  check_range("padding", padding, 0);
  if (padding.size() == 1) {
    window->pad_top = window->pad_left = window->pad_bottom = window->pad_right = padding[0];
  } else if (padding.size() == 2) {
    window->pad_top = window->pad_bottom = padding[0];
    window->pad_left = window->pad_right = padding[1];
  } else if (padding.size() == 4) {
    window->pad_top = padding[0];
    window->pad_left = padding[1];
    window->pad_bottom = padding[2];
    window->pad_right = padding[3];
  } else {
    invalid(cat("attribute 'padding' has ", padding.size(), " values, expected 1, 2 or 4"));
  }
}

}  // namespace

int64_t normalized_axis(int64_t axis, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) {
    if (r == 0) invalid(cat("axis ", axis, " of a scalar does not exist"));
    invalid(cat("axis ", axis, " is out of range, expected from ", -r, " to ", r - 1));
  }
  return axis < 0 ? axis + r : axis;
}

ir::Ints normalized_axes(const ir::Ints& axes, size_t rank) {
  ir::Ints sorted;
  if (axes.empty()) {
    for (size_t i = 0; i < rank; ++i) sorted.push_back(static_cast<int64_t>(i));
    return sorted;
  }
  for (const int64_t axis : axes) sorted.push_back(normalized_axis(axis, rank));
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) invalid(cat("axis ", *twice, " is named twice"));
  return sorted;
}

DataLayout data_layout(std::string_view name) {
  if (name == "NHWC") return {.n = 0, .h = 1, .w = 2, .c = 3};
  if (name == "NCHW") return {.n = 0, .h = 2, .w = 3, .c = 1};
  unsupported(cat("data layout '", name, "' is not supported, expected 'NHWC' or 'NCHW'"));
}

WeightLayout weight_layout(std::string_view name) {
  if (name == "OHWI") return {.o = 0, .h = 1, .w = 2, .i = 3};
  if (name == "OIHW") return {.o = 0, .h = 2, .w = 3, .i = 1};
  if (name == "HWIO") return {.o = 3, .h = 0, .w = 1, .i = 2};
  unsupported(cat("kernel layout '", name, "' is not supported, expected 'OHWI', 'OIHW' or 'HWIO'"));
}

int64_t Window2d::out_h(int64_t in_h) const {
  return out_extent(in_h, kernel_h, stride_h, dilation_h, pad_top, pad_bottom, "height");
}

int64_t Window2d::out_w(int64_t in_w) const {
  return out_extent(in_w, kernel_w, stride_w, dilation_w, pad_left, pad_right, "width");
}

Window2d conv2d_window(const ir::Node& node, const ir::TensorType& weight) {
  const WeightLayout layout = weight_layout(attr_string(node, "kernel_layout"));
  Window2d window;
  window.kernel_h = weight.shape.at(layout.h);
  window.kernel_w = weight.shape.at(layout.w);
  check_range("kernel_size", {window.kernel_h, window.kernel_w}, 1);
  const ir::Ints& kernel_size = attr_ints(node, "kernel_size");
  if (!kernel_size.empty() && kernel_size != ir::Ints{window.kernel_h, window.kernel_w}) {
    invalid(cat("attribute 'kernel_size' is ", to_text(kernel_size), ", but 'weight' is ", weight,
                " in layout ", attr_string(node, "kernel_layout")));
  }
  const ir::Ints dilation = pair_attr(node, "dilation");
  window.dilation_h = dilation[0];
  window.dilation_w = dilation[1];
  read_common(node, &window);
  return window;
}

Window2d pool2d_window(const ir::Node& node) {
  Window2d window;
  const ir::Ints pool_size = pair_attr(node, "pool_size");
  window.kernel_h = pool_size[0];
  window.kernel_w = pool_size[1];
  read_common(node, &window);
  return window;
}

int64_t ceil_padding(int64_t extent, int64_t pad_begin, int64_t pad_end, int64_t covered, int64_t stride) {
  const int64_t padded = extent + pad_begin + pad_end;
  int64_t outputs = (padded - covered + stride - 1) / stride + 1;
  if ((outputs - 1) * stride >= extent + pad_begin) --outputs;
  return std::max<int64_t>((outputs - 1) * stride + covered - padded, 0);
}

std::optional<Window2d> window_of(const ir::Function& function, const ir::Node& node) {
  if (attr_with(node.op, AttrRole::kWindow) == nullptr) return std::nullopt;
  return is_product(node.op) ? conv2d_window(node, function.type(node.operands[1])) : pool2d_window(node);
}

size_t weight_output_axis(const ir::Node& product) {
  const AttrDef* layout = attr_with(product.op, AttrRole::kWeightLayout);
  return layout == nullptr ? 0 : weight_layout(attr_string(product, layout->name)).o;
}

size_t result_channel_axis(const ir::Node& product, size_t result_rank) {
  const AttrDef* layout = attr_with(product.op, AttrRole::kLayout);
  return layout == nullptr ? result_rank - 1 : data_layout(attr_string(product, layout->name)).c;
}

void write_window(const Window2d& window, const char* kernel, ir::Attrs* attrs) {
  attrs->set(kernel, ir::Ints{window.kernel_h, window.kernel_w});
  attrs->set("strides", ir::Ints{window.stride_h, window.stride_w});
  attrs->set("padding", ir::Ints{window.pad_top, window.pad_left, window.pad_bottom, window.pad_right});
}

std::vector<SliceRange> slice_ranges(const ir::Node& node, const ir::Shape& shape) {
  const ir::Ints& begin = attr_ints(node, "begin");
  const ir::Ints& end = attr_ints(node, "end");
  const ir::Ints& strides = attr_ints(node, "strides");
  const ir::Ints& axes = attr_ints(node, "axes");
  const size_t n = begin.size();
  const auto check_length = [&](std::string_view name, const ir::Ints& values, bool may_be_empty) {
    if (values.size() == n || (may_be_empty && values.empty())) return;
    invalid(cat("attribute '", name, "' has ", values.size(), " values, but 'begin' has ", n));
  };
  check_length("end", end, false);
  check_length("strides", strides, true);
  check_length("axes", axes, true);
  if (axes.empty() && n > shape.size()) {
    invalid(cat("attribute 'begin' has ", n, " values, but 'data' has rank ", shape.size()));
  }
  std::vector<SliceRange> ranges;
  for (const int64_t extent : shape) ranges.push_back({.begin = 0, .step = 1, .count = extent});
  normalized_axes(axes, shape.size());  // refuses those that do not exist or stand twice
  for (size_t i = 0; i < n; ++i) {
    const auto axis = axes.empty() ? i : static_cast<size_t>(normalized_axis(axes[i], shape.size()));
    const int64_t step = strides.empty() ? 1 : strides[i], extent = shape[axis];
    if (step == 0 || step == INT64_MIN) invalid(cat("attribute 'strides' has ", step, " for axis ", axis));
    // Negative positions count from the end; then both lie within what the direction can reach.
    const auto position = [&](int64_t value) {
      const int64_t from_begin = value < 0 ? std::max(value, -extent - 1) + extent : value;
      return step > 0 ? std::clamp<int64_t>(from_begin, 0, extent)
                      : std::clamp<int64_t>(from_begin, -1, extent - 1);
    };
    const int64_t first = position(begin[i]), last = position(end[i]);
    const int64_t distance = step > 0 ? last - first : first - last;
    const int64_t size = step > 0 ? step : -step;
    ranges[axis] = {.begin = first, .step = step, .count = distance <= 0 ? 0 : (distance - 1) / size + 1};
  }
  return ranges;
}

ir::Shape broadcast_shape(const ir::Shape& a, const ir::Shape& b) {
  ir::Shape shape(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < shape.size(); ++i) {  // from the innermost axis outwards
    const int64_t extent_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t extent_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (extent_a != extent_b && extent_a != 1 && extent_b != 1) {
      invalid(cat("shapes ", to_text(a), " and ", to_text(b), " do not broadcast: extents ", extent_a,
                  " and ", extent_b));
    }
    shape[shape.size() - 1 - i] = extent_a == 1 ? extent_b : extent_a;
  }
  return shape;
}

}  // namespace qplan::op
