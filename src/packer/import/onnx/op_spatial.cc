// Operators over height and width: pools, float and quantised, and Resize, bilinear or to the nearest
// element. A pool over depth, too, is in window.cc.
#include <algorithm>
#include <cmath>

#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {

namespace {

// Ranks of the data of operators, for messages.
constexpr const char* kFloatRanks = "3, 4 or 5";
constexpr const char* kQuantizedRanks = "4";

// data: of rank 4, while the model's may have one spatial axis.
Window pool_window(const OpContext& op, const Value& data, Layout layout, const char* ranks) {
  return read_plane_window(op, spatial(op.shape(data), layout, ranks), {}, op.shape(op.input(0)).size() == 3);
}

ir::Attrs average_attrs(const OpContext& op, const Value& data, Layout layout, const char* ranks) {
  const bool include = op.attr_int("count_include_pad", 0) != 0;
  const Window window = pool_window(op, data, layout, ranks);
  if (window.has_dilations()) throw Unsupported{"dilations, which the operator does not have"};
  if (include && window.has_ceil_pads())
    throw Unsupported{"count_include_pad together with ceil_mode; pad with Pad before it"};
  ir::Attrs attrs = window.plane_attrs("pool_size");
  const ir::Ints padding = attrs.get_ints("padding", {});
  const bool is_padded = std::ranges::any_of(padding, [](int64_t pad) { return pad != 0; });
  if (include && is_padded) attrs.set("count_include_pad", true);
  if (layout != Layout::kNchw) attrs.set("layout", layout_name(layout));
  return attrs;
}

ir::Attrs global_attrs(const OpContext& op, const Value& data, Layout layout, const char* ranks) {
  const ir::Ints whole = spatial(op.shape(data), layout, ranks);
  ir::Attrs attrs{{"pool_size", whole}};
  if (layout != Layout::kNchw) attrs.set("layout", layout_name(layout));
  return attrs;
}

void quantized_average(const OpContext& op, ir::Attrs attrs) {
  const QParams input = op.per_tensor_qparams(1), output = op.per_tensor_qparams(3);
  attrs.set("contract", std::string("f32e"));
  op.define(0, op.emit("qnn.avg_pool2d",
                       {op.input(0), input.scale, input.zero_point, output.scale, output.zero_point},
                       std::move(attrs)));
}

}  // namespace

void import_max_pool(const OpContext& op) {
  op.expect_counts(1, 1, 1);
  op.attr_int("storage_order", 0);  // of the indices, which are refused
  if (const auto dilated = dilated_max_pool(op, op.input(0))) return op.define(0, *dilated);
  if (op.shape(op.input(0)).size() == 5) return op.define(0, volume_max_pool(op, op.input(0)));
  const Value data = with_height(op, op.input(0));
  const Window window = pool_window(op, data, Layout::kNchw, kFloatRanks);
  const Value pooled = op.emit("nn.max_pool2d", {data}, window.plane_attrs("pool_size"));
  op.define(0, without_height(op, pooled, op.input(0)));
}

void import_average_pool(const OpContext& op) {
  op.expect_counts(1, 1);
  if (op.shape(op.input(0)).size() == 5) return op.define(0, volume_average_pool(op, op.input(0)));
  const Value data = with_height(op, op.input(0));
  const Window window = pool_window(op, data, Layout::kNchw, kFloatRanks);
  const bool include = op.attr_int("count_include_pad", 0) != 0;
  const Value pooled = average_plane(op, data, window.axes[0], window.axes[1], include);
  op.define(0, without_height(op, pooled, op.input(0)));
}

namespace {

// Depth and height as one axis: a pool over the whole sees no difference.
Value with_two_axes(const OpContext& op, const Value& data) {
  const ir::Shape& s = op.shape(data);
  return s.size() == 5 ? op.reshape(data, {s[0], s[1], s[2] * s[3], s[4]}) : with_height(op, data);
}
Value with_all_axes(const OpContext& op, const Value& pooled, const Value& data) {
  ir::Shape shape = op.shape(data);
  std::fill(shape.begin() + 2, shape.end(), 1);
  return op.reshape(pooled, shape);
}

}  // namespace

void import_global_average_pool(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value data = with_two_axes(op, op.input(0));
  spatial(op.shape(data), Layout::kNchw, kFloatRanks);
  op.define(0, with_all_axes(op, op.emit("nn.global_avg_pool2d", {data}), op.input(0)));
}

void import_global_max_pool(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value data = with_two_axes(op, op.input(0));
  const Value pooled = op.emit("nn.max_pool2d", {data}, global_attrs(op, data, Layout::kNchw, kFloatRanks));
  op.define(0, with_all_axes(op, pooled, op.input(0)));
}

void import_qlinear_average_pool(const OpContext& op) {
  op.expect_counts(4, 5);
  quantized_average(op, average_attrs(op, op.input(0), layout_of(op), kQuantizedRanks));
}

void import_qlinear_global_average_pool(const OpContext& op) {
  op.expect_counts(4, 5);
  quantized_average(op, global_attrs(op, op.input(0), layout_of(op), kQuantizedRanks));
}

// Resize: of height and width, bilinear, what image.resize2d can say; of any axes to the nearest element.
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 31;

// How positions of the output are positions of the input; opset 10 knows one way.
std::string coordinates(const OpContext& op, const ir::Shape& output) {
  if (op.opset() < 11) return "asymmetric";
  const std::string mode = op.attr_string("coordinate_transformation_mode", "half_pixel");
  if (mode == "half_pixel" || mode == "align_corners" || mode == "asymmetric") return mode;
  // Another position for a single output element only.
  if (mode == "pytorch_half_pixel" && output[2] > 1 && output[3] > 1) return "half_pixel";
  throw Unsupported{"coordinate_transformation_mode " + in_quotes(mode) +
                    "; export it with half_pixel, align_corners or asymmetric"};
}

// The axes that sizes and scales belong to: all, or those of attribute axes.
ir::Ints resized_axes(const OpContext& op, size_t rank) {
  ir::Ints axes;
  if (const auto named = op.attr_ints("axes")) {
    for (const int64_t axis : *named) axes.push_back(OpContext::axis_of(axis, rank));
    return axes;
  }
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

// The extent that a scale gives. ONNX computes positions with the scale, the IR's bilinear operator with the
// extents: only where both are the same, which `whole` demands, it can be said.
int64_t scaled_extent(int64_t extent, float scale, bool whole) {
  const double exact = static_cast<double>(extent) * static_cast<double>(scale);
  if (!std::isfinite(exact) || exact < 1 || exact > static_cast<double>(kMaxExtent)) {
    invalid(cat("scale ", to_text(scale), " of extent ", extent));
  }
  if (whole && exact != std::floor(exact)) {
    throw Unsupported{cat("scale ", to_text(scale), " of extent ", extent,
                          ", which is no whole number; give it sizes instead of scales")};
  }
  return static_cast<int64_t>(std::floor(exact));
}

// The axes whose extents may change, and what Resize makes of them.
struct Resized {
  ir::Shape shape;
  std::vector<float> scales;  // by axis
};

// exact: the product of an extent and its scale must be a whole number; else it is rounded down.
Resized resized_shape(const OpContext& op, const ir::Shape& input, bool exact) {
  const size_t scales_at = op.opset() < 11 ? 1 : 2;
  const ir::Ints axes = resized_axes(op, input.size());
  Resized result{input, std::vector<float>(input.size(), 1.0f)};
  const auto check_count = [&](size_t count, const char* what) {
    if (count != axes.size()) invalid(cat("there are ", count, " ", what, ", expected ", axes.size()));
  };
  // An absent input may also be a constant without elements.
  if (op.has_input(scales_at) && op.type(op.input(scales_at)).num_elements() > 0) {
    const ir::ConstantRef scales = op.constant(scales_at, "scales");
    if (scales->type().dtype != ir::kFloat32) invalid(cat("the scales are ", scales->type()));
    const auto values = scales->as<float>();
    check_count(values.size(), "scales");
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto axis = static_cast<size_t>(axes[i]);
      result.shape[axis] = scaled_extent(result.shape[axis], values[i], exact);
      result.scales[axis] = values[i];
    }
    return result;
  }
  if (!op.has_input(3)) invalid("there are neither scales nor sizes");
  const ir::Ints sizes = op.ints(3, "sizes");
  check_count(sizes.size(), "sizes");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (sizes[i] < 1 || sizes[i] > kMaxExtent) invalid(cat("sizes are ", to_text(sizes)));
    const auto axis = static_cast<size_t>(axes[i]);
    result.shape[axis] = sizes[i];
    result.scales[axis] = static_cast<float>(sizes[i]) / static_cast<float>(input[axis]);
  }
  return result;
}

// ---- to the nearest element: docs/numerics/data_movement.md ----

// Where output `i` of an axis lies in the input, in float32 as ONNX Runtime computes it.
float place_of(const std::string& mode, int64_t i, int64_t in, int64_t out, float scale) {
  const auto x = static_cast<float>(i);
  if (mode == "asymmetric") return x / scale;
  if (mode == "align_corners") {
    return out == 1 ? 0.0f : x * static_cast<float>(in - 1) / static_cast<float>(out - 1);
  }
  if (mode == "pytorch_half_pixel" && out == 1) return 0.0f;
  const float place = (x + 0.5f) / scale - 0.5f;
  if (mode != "half_pixel_symmetric") return place;
  const float adjustment = static_cast<float>(out) / (scale * static_cast<float>(in));
  return static_cast<float>(in) / 2.0f * (1.0f - adjustment) + place;
}

float nearest_of(const std::string& mode, float place) {
  if (mode == "floor") return std::floor(place);
  if (mode == "ceil") return std::ceil(place);
  const float below = std::floor(place), distance = place - below;
  const bool up = mode == "round_prefer_ceil" ? distance >= 0.5f : distance > 0.5f;
  return up ? below + 1.0f : below;
}

void resize_to_nearest(const OpContext& op, const Value& data, const Resized& resized) {
  const bool first = op.opset() < 11;  // that knows one way
  const std::string mode =
      first ? "asymmetric" : op.attr_string("coordinate_transformation_mode", "half_pixel");
  const std::string rounding = first ? "floor" : op.attr_string("nearest_mode", "round_prefer_floor");
  for (const char* known : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners"}) {
    if (mode == known || mode == "asymmetric") break;
    if (known == std::string_view("align_corners")) {
      throw Unsupported{"coordinate_transformation_mode " + in_quotes(mode) +
                        "; export it with half_pixel, align_corners or asymmetric"};
    }
  }
  if (rounding != "round_prefer_floor" && rounding != "round_prefer_ceil" && rounding != "floor" &&
      rounding != "ceil") {
    invalid("attribute 'nearest_mode' is " + in_quotes(rounding));
  }
  Value result = data;
  const ir::Shape input = op.shape(data);
  for (size_t axis = 0; axis < input.size(); ++axis) {
    const int64_t in = input[axis], out = resized.shape[axis];
    if (in == out && resized.scales[axis] == 1.0f) continue;
    if (out > kMaxPositions) invalid(cat("an axis of ", out, " elements"));
    op.graph().charge(static_cast<uint64_t>(out) * sizeof(int64_t));
    ir::Ints positions;
    for (int64_t i = 0; i < out; ++i) {
      const float nearest = nearest_of(rounding, place_of(mode, i, in, out, resized.scales[axis]));
      const float last = static_cast<float>(in - 1);
      positions.push_back(static_cast<int64_t>(std::min(std::max(nearest, 0.0f), last)));
    }
    result = taken(op, result, axis, positions);
  }
  op.define(0, result);
}

}  // namespace

void import_resize(const OpContext& op) {
  op.expect_counts(op.opset() < 11 ? 2 : 1, op.opset() < 11 ? 2 : 4);
  const std::string mode = op.attr_string("mode", "nearest");
  if (mode != "linear" && mode != "nearest")
    throw Unsupported{"mode " + in_quotes(mode) + "; export it with linear or nearest"};
  if (op.attr_int("antialias", 0) != 0) throw Unsupported{"attribute 'antialias'; export it without"};
  const std::string policy = op.attr_string("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch")
    throw Unsupported{"keep_aspect_ratio_policy " + in_quotes(policy) + "; export it with stretch"};
  // Attributes of other modes are read, so that they are not refused.
  op.attr_float("cubic_coeff_a", 0);
  op.attr_int("exclude_outside", 0);
  op.attr_float("extrapolation_value", 0);
  op.attr_string("nearest_mode", "");
  const Value& data = op.input(0);
  const ir::Shape input = op.shape(data);
  if (mode == "nearest") return resize_to_nearest(op, data, resized_shape(op, input, false));
  if (input.size() != 4) throw Unsupported{cat("data of rank ", input.size(), "; reshape it to rank 4")};
  const ir::Shape shape = resized_shape(op, input, true).shape;
  if (shape[0] != input[0] || shape[1] != input[1])
    throw Unsupported{"another axis than height and width; transpose it so that axes 2 and 3 change"};
  op.define(0, op.emit("image.resize2d", {data},
                       {{"size", ir::Ints{shape[2], shape[3]}},
                        {"coordinate_transformation_mode", coordinates(op, shape)},
                        {"contract", std::string("f32e")}}));
}

}  // namespace qplan::onnx
