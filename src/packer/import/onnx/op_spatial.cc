// Operators over height and width: pools, float and quantised, Resize, bilinear or to the nearest element,
// and ConvTranspose. A pool over depth, too, is in window.cc.
#include <algorithm>
#include <cmath>

#include "src/base/checked.h"
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

// com.microsoft: of integers whose channels come last.
void import_nhwc_max_pool(const OpContext& op) {
  op.expect_counts(1, 1);
  op.attr_int("storage_order", 0);
  const Window window = pool_window(op, op.input(0), Layout::kNhwc, kQuantizedRanks);
  if (window.has_dilations()) throw Unsupported{"dilations"};
  ir::Attrs attrs = window.plane_attrs("pool_size");
  attrs.set("layout", layout_name(Layout::kNhwc));
  op.define(0, op.emit("nn.max_pool2d", {op.input(0)}, std::move(attrs)));
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

// How positions of the output are positions of the input; opset 10 knows one way. is_line: there is no
// height.
std::string coordinates(const OpContext& op, const ir::Shape& output, bool is_line) {
  if (op.opset() < 11) return "asymmetric";
  const std::string mode = op.attr_string("coordinate_transformation_mode", "half_pixel");
  if (mode == "half_pixel" || mode == "align_corners" || mode == "asymmetric") return mode;
  // Another position for a single output element only.
  if (mode == "pytorch_half_pixel" && (output[2] > 1 || is_line) && output[3] > 1) return "half_pixel";
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
  const auto is_given = [&](size_t at) {
    return op.has_input(at) && op.type(op.input(at)).num_elements() > 0;
  };
  const Attribute* attribute =  // of Upsample
      op.opset() < 9 ? op.find_attr("scales", AttributeKind::kFloats) : nullptr;
  if (attribute != nullptr || is_given(scales_at)) {
    if (is_given(3)) invalid("there are both scales and sizes, expected one of them");
    const ir::ConstantRef scales = attribute != nullptr ? make_vector(ir::kFloat32, attribute->floats)
                                                        : op.constant(scales_at, "scales");
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
  const std::string named = op.attr_string("nearest_mode", "round_prefer_floor");
  for (const char* known : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners"}) {
    if (mode == known || mode == "asymmetric") break;
    if (known == std::string_view("align_corners")) {
      throw Unsupported{"coordinate_transformation_mode " + in_quotes(mode) +
                        "; export it with half_pixel, align_corners or asymmetric"};
    }
  }
  if (named != "round_prefer_floor" && named != "round_prefer_ceil" && named != "floor" && named != "ceil") {
    invalid("attribute 'nearest_mode' is " + in_quotes(named));
  }
  Value result = data;
  const ir::Shape input = op.shape(data);
  for (size_t axis = 0; axis < input.size(); ++axis) {
    const int64_t in = input[axis], out = resized.shape[axis];
    if (in == out && resized.scales[axis] == 1.0f) continue;
    if (out > kMaxPositions) invalid(cat("an axis of ", out, " elements"));
    op.graph().charge(static_cast<uint64_t>(out) * sizeof(int64_t));
    // Opset 10 has no nearest_mode: ONNX's own cases round up where an axis shrinks, and down elsewhere.
    const std::string rounding = !first ? named : resized.scales[axis] < 1.0f ? "ceil" : "floor";
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

namespace {

// The shape with ones before its axes, so that height and width of rank 4 are what changes; is_line: [n, c,
// w] gets a height.
ir::Shape in_rank_4(ir::Shape shape, bool is_line) {
  if (is_line) return {shape[0], shape[1], 1, shape[2]};
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  return shape;
}

void resize_linearly(const OpContext& op, const Value& data) {
  const ir::Shape input = op.shape(data);
  if (input.size() < 2 || input.size() > 4)
    throw Unsupported{cat("data of rank ", input.size(), "; reshape it to rank 4")};
  const ir::Shape resized = resized_shape(op, input, true).shape;
  const bool is_line = input.size() == 3 && resized[1] == input[1];
  const ir::Shape from = in_rank_4(input, is_line), to = in_rank_4(resized, is_line);
  if (from[0] != to[0] || from[1] != to[1])
    throw Unsupported{"another axis than height and width; transpose it so that axes 2 and 3 change"};
  const Value result = op.emit("image.resize2d", {op.reshape(data, from)},
                               {{"size", ir::Ints{to[2], to[3]}},
                                {"coordinate_transformation_mode", coordinates(op, to, is_line)},
                                {"contract", std::string("f32e")}});
  op.define(0, op.reshape(result, resized));
}

// What is left to read of the node; opset 10 and Upsample have only mode and scales.
void resize(const OpContext& op) {
  const std::string mode = op.attr_string("mode", "nearest");
  if (mode != "linear" && mode != "nearest")
    throw Unsupported{"mode " + in_quotes(mode) + "; export it with linear or nearest"};
  if (mode == "linear") return resize_linearly(op, op.input(0));
  resize_to_nearest(op, op.input(0), resized_shape(op, op.shape(op.input(0)), false));
}

}  // namespace

void import_resize(const OpContext& op) {
  op.expect_counts(op.opset() < 11 ? 2 : 1, op.opset() < 11 ? 2 : 4);
  if (op.attr_int("antialias", 0) != 0) throw Unsupported{"attribute 'antialias'; export it without"};
  const std::string policy = op.attr_string("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch")
    throw Unsupported{"keep_aspect_ratio_policy " + in_quotes(policy) + "; export it with stretch"};
  // Attributes of other modes are read, so that they are not refused.
  op.attr_float("cubic_coeff_a", 0);
  op.attr_int("exclude_outside", 0);
  op.attr_float("extrapolation_value", 0);
  op.attr_string("nearest_mode", "");
  resize(op);
}

// Before opset 10, what Resize is there; opset 7 has the scales in an attribute.
void import_upsample(const OpContext& op) {
  if (op.opset() >= 10) invalid("the operator ended before opset 10; Resize took its place");
  const size_t inputs = op.opset() < 9 ? 1 : 2;
  op.expect_counts(inputs, inputs);
  resize(op);
}

// ConvTranspose: the convolution, with the weights turned around, of data that has zeros between its
// elements. Each of these steps has an integer form, so that it runs on integers between DequantizeLinear and
// QuantizeLinear.
namespace {

// The axis of the data, with the stride and the pads of the outputs. Negative pads are outputs that no window
// reaches.
struct Axis : WindowAxis {
  int64_t output_padding = 0;

  // How many outputs there are without pads.
  int64_t natural() const { return stride * (extent - 1) + output_padding + covered(); }
  // Elements of the spread data, [0, extent * stride), that outputs read before its first and after its last
  // one; negative where they read less than all.
  int64_t before() const { return covered() - 1 - pad_begin; }
  int64_t after() const { return covered() - 1 - pad_end + output_padding - (stride - 1); }
};

// Attribute output_padding.
ir::Ints output_padding_of(const OpContext& op, size_t count) {
  const ir::Ints padding = op.attr_ints("output_padding").value_or(ir::Ints(count, 0));
  if (padding.size() != count)
    invalid(cat("attribute 'output_padding' has ", padding.size(), " values, expected ", count));
  for (const int64_t value : padding) {
    if (value < 0 || value > kMaxWindow) {
      invalid(cat("attribute 'output_padding' is ", to_text(padding), ", expected values from 0 to ",
                  kMaxWindow));
    }
  }
  return padding;
}

// The extents that attribute output_shape asks for, of the `count` spatial axes; it may have all axes.
std::optional<ir::Ints> asked_extents(const OpContext& op, size_t count) {
  const auto shape = op.attr_ints("output_shape");
  if (!shape) return std::nullopt;
  if (shape->size() != count && shape->size() != count + 2) {
    invalid(
        cat("attribute 'output_shape' has ", shape->size(), " values, expected ", count, " or ", count + 2));
  }
  const ir::Ints extents(shape->end() - static_cast<int64_t>(count), shape->end());
  for (const int64_t extent : extents) {
    if (extent < 1 || extent >= kMaxWindow) {
      invalid(cat("attribute 'output_shape' is ", to_text(*shape), ", expected values from 1 to ",
                  kMaxWindow - 1));
    }
  }
  return extents;
}

// Chooses the pads that leave so many outputs. Where that is more than there are naturally, the others follow
// them, as in ONNX's conformance case convtranspose_output_shape and in ONNX Runtime; the operator's
// equations would make both pads negative.
void pad_for(int64_t outputs, bool is_odd_at_end, Axis* axis) {
  const int64_t total = axis->natural() - outputs;
  axis->split_pads(std::max<int64_t>(total, 0), is_odd_at_end);
  if (total < 0) axis->pad_end = total;
}

// Axes of height and width; of one axis the width.
std::vector<Axis> read_axes(const OpContext& op, const ir::Shape& data, const ir::Shape& weights) {
  const size_t count = data.size() - 2;
  const WindowAttributes window = read_window_attributes(op, {data.begin() + 2, data.end()},
                                                         {weights.begin() + 2, weights.end()}, -kMaxWindow);
  const ir::Ints padding = output_padding_of(op, count);
  const auto shape = asked_extents(op, count);
  const bool is_upper = window.auto_pad == AutoPad::kSameUpper;
  const bool is_same = is_upper || window.auto_pad == AutoPad::kSameLower;
  std::vector<Axis> axes;
  for (size_t i = 0; i < count; ++i) {
    Axis axis{window.axes[i], padding[i]};
    int64_t spread = 0;
    if (!checked_mul(axis.extent, axis.stride, &spread) || spread > kMaxWindow) {
      throw Unsupported{cat("an axis of ", axis.extent, " elements at stride ", axis.stride, ", more than ",
                            kMaxWindow, " with the zeros between them")};
    }
    if (axis.covered() > kMaxWindow)
      throw Unsupported{cat("a window of ", axis.covered(), ", more than ", kMaxWindow, " elements")};
    if (is_same && !shape && spread > axis.natural()) {
      throw Unsupported{cat("auto_pad SAME and a window of ", axis.covered(), " at stride ", axis.stride,
                            ", for which ONNX's operator and its shape inference have ", spread, " and ",
                            axis.natural(), " outputs; state output_shape or pads instead")};
    }
    if (shape || is_same) pad_for(shape ? (*shape)[i] : spread, is_upper, &axis);
    const int64_t outputs = axis.natural() - axis.pad_begin - axis.pad_end;
    if (outputs < 1) {
      throw Unsupported{cat("pads of ", axis.pad_begin, " and ", axis.pad_end, ", which leave nothing of ",
                            axis.natural(), " outputs")};
    }
    if (outputs >= kMaxWindow)
      throw Unsupported{cat("an output axis of ", outputs, " elements, more than ", kMaxWindow - 1)};
    axes.push_back(axis);
  }
  return axes;
}

// Zeros between the elements of the last two axes.
Value spread(const OpContext& op, const Value& data, const std::vector<Axis>& axes) {
  const ir::Shape s = op.shape(data);
  const int64_t h = axes[0].stride, w = axes[1].stride;
  if (h == 1 && w == 1) return data;
  const Value apart = op.reshape(data, {s[0], s[1], s[2], 1, s[3], 1});
  const std::vector<ir::Ints> width = {{0, 0}, {0, 0}, {0, 0}, {0, h - 1}, {0, 0}, {0, w - 1}};
  const Value padded = op.emit("nn.pad", {apart, ir::make_scalar(0.0f)}, {{"pad_width", width}});
  return op.reshape(padded, {s[0], s[1], s[2] * h, s[3] * w});
}

// [in, out / groups, h, w] as the weights [out, in / groups, h, w] of a convolution.
Value turned_weights(const OpContext& op, const Value& weights, int64_t groups) {
  const ir::Shape s = op.shape(weights);
  const Value turned = op.emit("strided_slice", {weights},
                               {{"begin", ir::Ints{s[2] - 1, s[3] - 1}},
                                {"end", ir::Ints{-s[2] - 1, -s[3] - 1}},
                                {"strides", ir::Ints{-1, -1}},
                                {"axes", ir::Ints{2, 3}}});
  if (groups == 1) return op.emit("transpose", {turned}, {{"axes", ir::Ints{1, 0, 2, 3}}});
  const Value grouped = op.reshape(turned, {groups, s[0] / groups, s[1], s[2], s[3]});
  const Value moved = op.emit("transpose", {grouped}, {{"axes", ir::Ints{0, 2, 1, 3, 4}}});
  return op.reshape(moved, {groups * s[1], s[0] / groups, s[2], s[3]});
}

}  // namespace

void import_conv_transpose(const OpContext& op) {
  op.expect_counts(2, 3);
  const size_t rank = op.shape(op.input(0)).size();
  if (rank != 3 && rank != 4) throw Unsupported{cat("data of rank ", rank, "; reshape it to rank 3 or 4")};
  if (op.shape(op.input(1)).size() != rank) invalid(cat("the weights are ", op.type(op.input(1))));
  std::vector<Axis> axes = read_axes(op, op.shape(op.input(0)), op.shape(op.input(1)));
  if (rank == 3) axes.insert(axes.begin(), Axis{});
  const Value data = with_height(op, op.input(0)), weights = with_height(op, op.input(1));
  const int64_t groups = op.attr_int("group", 1);
  if (groups < 1 || op.shape(data)[1] != op.shape(weights)[0] || op.shape(data)[1] % groups != 0)
    invalid(cat("the data is ", op.type(data), ", the weights ", op.type(weights), ", groups ", groups));
  const int64_t channels = groups * op.shape(weights)[1];

  Value wide = spread(op, data, axes);
  const auto cut = [](int64_t reach) { return std::max<int64_t>(-reach, 0); };
  const auto padded = [](int64_t reach) { return std::max<int64_t>(reach, 0); };
  const ir::Shape s = op.shape(wide);
  const ir::Ints begin = {cut(axes[0].before()), cut(axes[1].before())};
  const ir::Ints end = {s[2] - cut(axes[0].after()), s[3] - cut(axes[1].after())};
  if (begin[0] >= end[0] || begin[1] >= end[1]) throw Unsupported{"pads that leave nothing of the data"};
  if (begin != ir::Ints{0, 0} || end != ir::Ints{s[2], s[3]}) {
    wide = op.emit("strided_slice", {wide}, {{"begin", begin}, {"end", end}, {"axes", ir::Ints{2, 3}}});
  }
  Window window;
  for (const Axis& axis : axes) {
    window.axes.push_back({.kernel = axis.kernel,
                           .dilation = axis.dilation,
                           .pad_begin = padded(axis.before()),
                           .pad_end = padded(axis.after())});
  }
  ir::Attrs attrs = window.plane_attrs("kernel_size");
  attrs.set("channels", channels);
  if (groups != 1) attrs.set("groups", groups);
  Value result = op.emit("nn.conv2d", {wide, turned_weights(op, weights, groups)}, std::move(attrs));
  if (op.has_input(2)) result = op.emit("nn.bias_add", {result, op.input(2)}, {{"axis", int64_t{1}}});
  op.define(0, without_height(op, result, op.input(0)));
}

}  // namespace qplan::onnx
