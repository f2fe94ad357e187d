// Several ways of saying one thing become one, before the passes that look for whole layers. All exact;
// docs/numerics/float32.md says what a maximum or minimum with one constant makes of NaN and of zeros.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
namespace {

using pattern::any;
using pattern::commutative;
using pattern::constant;
using pattern::one_of;
using pattern::op;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Result to_reshape(const RewriteContext& context, std::string* why) {
  *why = cat(context.root.op()->name, " is a reshape");
  const ir::Shape& shape = context.pre().type(context.root.result()).shape;
  return context.post().call("reshape", {context["data"]}, {{"newshape", shape}}, context.root.name());
}

// Positions of any shape are a list, and the result has their shape afterwards.
Result flatten_indices(const RewriteContext& context, std::string* why) {
  const Pre& pre = context.pre();
  const ir::TensorType& indices = pre.type(context.matches["indices"]);
  if (indices.shape.size() == 1) {
    *why = "its indices are a list";
    return std::nullopt;
  }
  *why = "its indices are a list now, and its result is reshaped";
  const ir::Shape& shape = pre.type(context.root.result()).shape;
  const std::string& name = context.root.name();
  const PostValue list = context.post().call("reshape", {context["indices"]},
                                             {{"newshape", ir::Ints{indices.num_elements()}}}, name);
  const PostValue taken = context.post().call("take", {context["data"], list}, context.root.attrs(), name);
  return context.post().call("reshape", {taken}, {{"newshape", shape}}, name);
}

Result drop_whole_slice(const RewriteContext& context, std::string* why) {
  const ir::Shape& shape = context.pre().type(context.matches["data"]).shape;
  for (const op::SliceRange& range : op::slice_ranges(context.root.node(), shape)) {
    if (range.begin != 0 || range.step != 1) return std::nullopt;
  }
  if (context.pre().type(context.root.result()).shape != shape) return std::nullopt;
  *why = "a slice of everything, dropped";
  return context["data"];
}

// Every output is then at an element of the input. Not in float32, where the other elements count 0 times: of
// an infinity that is a NaN.
Result drop_same_resize(const RewriteContext& context, std::string* why) {
  if (context.pre().type(context.root.result()) != context.pre().type(context.matches["data"])) {
    return std::nullopt;
  }
  *why = "a resize to the same size, dropped";
  return context["data"];
}

// Fewer elements are requantised before a resize that repeats one.
Result requantize_before_repeating(const RewriteContext& context, std::string* why) {
  const PreNode resize = context.node("resize");
  const op::DataLayout axes = op::data_layout(op::attr_string(resize.node(), "layout"));
  const ir::Shape& shape = context.pre().type(context.matches["data"]).shape;
  if (shape[axes.h] != 1 || shape[axes.w] != 1) {
    *why = "the resize interpolates";
    return std::nullopt;
  }
  std::vector<PostValue> operands = context.r.operands(context.root);
  operands[0] = context["data"];
  const PostValue value =
      context.post().call("qnn.requantize", operands, context.root.attrs(), resize.name());
  *why = "before a resize that repeats its input";
  return context.post().call("image.resize2d", {value}, resize.attrs(), context.root.name());
}

Result whole_window(const RewriteContext& context, std::string* why) {
  const std::string& layout = op::attr_string(context.root.node(), "layout");
  const op::DataLayout axes = op::data_layout(layout);
  const ir::Shape& shape = context.pre().type(context.matches["data"]).shape;
  *why = "a global pool is one with the window of its input's size";
  return context.post().call("nn.avg_pool2d", {context["data"]},
                             {{"pool_size", ir::Ints{shape[axes.h], shape[axes.w]}}, {"layout", layout}},
                             context.root.name());
}

// ---- clamps ----

PostValue clip_of(const RewriteContext& context, PostValue data, double min, double max) {
  return context.post().call("clip", {data}, {{"a_min", min}, {"a_max", max}}, context.root.name());
}

Result relu_to_clip(const RewriteContext& context, std::string* why) {
  *why = "a clip with no upper bound";
  return clip_of(context, context["data"], 0.0, kInfinity);
}

Result limit_to_clip(const RewriteContext& context, std::string* why) {
  const auto limit = static_cast<double>(context.constant("limit")->as<float>()[0]);
  const bool widens =
      context.pre().type(context.root.result()) != context.pre().type(context.matches["data"]);
  if (std::isnan(limit) || widens) return std::nullopt;
  *why = "a clip with one bound";
  const bool lower = context.root.is("maximum");
  return clip_of(context, context["data"], lower ? limit : -kInfinity, lower ? kInfinity : limit);
}

// The clip before it is looked for in the new function, so that one visit merges a chain of any length.
Result merge_clips(const RewriteContext& context, std::string* why) {
  const auto bounds = [](const auto& node) {
    return std::pair{op::attr_float(node.node(), "a_min"), op::attr_float(node.node(), "a_max")};
  };
  const auto [min, max] = bounds(context.root);
  const PostValue data = context["data"];
  if (min == -kInfinity && max == kInfinity) {
    *why = "limits nothing, dropped";
    return data;
  }
  const auto inner = context.post().producer(data, "clip");
  if (!inner) {
    *why = "there is no clip before it";
    return std::nullopt;
  }
  // clamp after clamp is the clamp to the inner bounds, clamped to the outer ones.
  const auto within = bounds(*inner);
  const std::pair merged{std::clamp(within.first, min, max), std::clamp(within.second, min, max)};
  *why = "merged with the clip before it";
  return merged == within ? data : clip_of(context, inner->operand(0), merged.first, merged.second);
}

// ---- what changes nothing ----

// Equal, the signs of zeros too.
bool all_are(const ir::Constant& constant, float value) {
  return std::ranges::all_of(constant.as<float>(), [value](float element) {
    return element == value && std::signbit(element) == std::signbit(value);
  });
}

// Integers without a sign of zero, and sums, which begin as +0: with a bias, too.
bool is_never_negative_zero(const Pre& pre, PreValue value) {
  auto node = pre.producer(value);
  if (node && node->is("nn.bias_add")) node = pre.producer(node->operand(0));
  return node && (node->is("qnn.dequantize") || op::is_float_product(node->op()));
}

// -0 + +0 is +0, and -0 - -0, too: the number that changes no number is -0 in a sum, +0 in a difference.
Result drop_neutral(const RewriteContext& context, std::string* why) {
  const bool factor = context.root.is("multiply") || context.root.is("divide");
  const ir::Constant& constant = *context.constant("neutral");
  const float neutral = factor ? 1.0f : context.root.is("add") ? -0.0f : 0.0f;
  if (!all_are(constant, neutral)) {
    if (factor || !all_are(constant, -neutral)) {
      *why = factor ? "the constant is not 1" : "the constant is not 0";
      return std::nullopt;
    }
    if (!is_never_negative_zero(context.pre(), context.matches["data"])) {
      *why = "the data may be -0, of which it makes +0";
      return std::nullopt;
    }
  }
  if (context.pre().type(context.root.result()) != context.pre().type(context.matches["data"])) {
    *why = "the constant widens the shape";
    return std::nullopt;
  }
  *why = cat(context.root.op()->name, " of ", factor ? "1" : "0", ", dropped");
  return context["data"];
}

Result drop_cast(const RewriteContext& context, std::string* why) {
  if (context.pre().type(context.root.result()) != context.pre().type(context.matches["data"]))
    return std::nullopt;
  *why = "a cast to the same dtype, dropped";
  return context["data"];
}

// A number is true where it is not 0, NaN too: what it would be as a byte says something else.
Result cast_to_bool(const RewriteContext& context, std::string* why) {
  if (context.pre().type(context.matches["data"]).dtype == ir::kBool) return std::nullopt;
  *why = "a cast to bool asks whether numbers are 0";
  const auto equals_zero = [&](PostValue value, ir::DType dtype) {
    const ir::TensorType scalar{dtype, {}};
    const auto zero = std::make_shared<const ir::Constant>(
        scalar, std::vector<uint8_t>(static_cast<size_t>(scalar.size_bytes())));
    return context.post().call("equal", {value, context.post().constant_value(zero)}, {},
                               context.root.name());
  };
  const ir::DType dtype = context.pre().type(context.matches["data"]).dtype;
  return equals_zero(equals_zero(context["data"], dtype), ir::kBool);
}

Result drop_zero_bias(const RewriteContext& context, std::string* why) {
  const ir::ConstantRef bias = context.constant("bias");
  // 0.0f is four zero bytes too; a bias of -0.0f is left, it is rare.
  if (!std::ranges::all_of(bias->bytes(), [](uint8_t byte) { return byte == 0; })) return std::nullopt;
  const PreValue data = context.matches["data"];
  if (context.pre().type(data).dtype.is_float() && !is_never_negative_zero(context.pre(), data)) {
    *why = "the data may be -0, of which it makes +0";
    return std::nullopt;
  }
  *why = "a bias of zeros, dropped";
  return context["data"];
}

// ---- one way of writing it ----

// An addend per channel after a layer is its bias.
Result add_to_bias_add(const RewriteContext& context, std::string* why) {
  const Pre& pre = context.pre();
  const PreNode product = context.node("product");
  const ir::Shape& shape = pre.type(context.root.result()).shape;
  const size_t axis =
      op::result_channel_axis(product.node(), pre.type(context.matches["product"]).shape.size());
  const ir::TensorType& addend = pre.type(context.matches["addend"]);
  if (shape != pre.type(context.matches["product"]).shape || !is_per_channel(addend.shape, shape, axis)) {
    *why = cat("the addend ", addend, " is not one per channel of ", pre.type(context.root.result()));
    return std::nullopt;
  }
  *why = "one addend per channel is a bias";
  const ir::Attrs newshape = {{"newshape", ir::Ints{shape[axis]}}};
  // Not folded here: a reshape of a constant is one for fold_constants.
  const PostValue bias = context.post().call("reshape", {context["addend"]}, newshape, context.root.name());
  return context.post().call("nn.bias_add", {context["product"], bias},
                             {{"axis", static_cast<int64_t>(axis)}}, context.root.name());
}

// Along an axis where the window covers the whole input, padding included, the stride says nothing.
Result unit_strides(const RewriteContext& context, std::string* why) {
  const PreNode node = context.root;
  const std::string& layout = op::attr_with(node.op(), op::AttrRole::kLayout)->name;
  const op::DataLayout axes = op::data_layout(op::attr_string(node.node(), layout));
  const ir::Shape& shape = context.pre().type(node.operand(0)).shape;
  op::Window2d window = *op::window_of(context.pre().function(), node.node());
  const ir::Ints strides = {window.stride_h, window.stride_w};
  window.stride_h = window.stride_w = 1;
  const ir::Ints unit = {window.out_h(shape[axes.h]) == 1 ? 1 : strides[0],
                         window.out_w(shape[axes.w]) == 1 ? 1 : strides[1]};
  if (unit == strides) return std::nullopt;
  *why = "one window has no stride";
  ir::Attrs attrs = node.attrs();
  attrs.set("strides", unit);
  return context.post().call(node.op()->name, context.r.operands(node), std::move(attrs), node.name());
}

// For integers Relay prints a float and TFLite has the dtype of the data.
Result pad_value_to_int32(const RewriteContext& context, std::string* why) {
  const ir::Constant& value = *context.constant("value");
  const ir::DType dtype = value.type().dtype;
  int32_t integer = 0;
  if (dtype == ir::kFloat32) {
    integer = static_cast<int32_t>(value.as<float>()[0]);
  } else if (dtype == ir::kInt8) {
    integer = value.as<int8_t>()[0];
  } else if (dtype == ir::kUint8) {
    integer = value.as<uint8_t>()[0];
  } else {
    return std::nullopt;
  }
  *why = "its pad value is int32";
  return context.post().call("nn.pad", {context["data"], context.post().scalar(integer)},
                             context.root.attrs(), context.root.name());
}

// Which axis of the operand each axis of the result is, -1 for one of extent 1 that comes from nowhere;
// nullopt: a reshape that does more than moving extents of 1.
std::optional<ir::Ints> axis_origins(const Pre& pre, PreNode movement) {
  if (movement.is("transpose")) return op::attr_ints(movement.node(), "axes");
  const ir::Shape& from = pre.type(movement.operand(0)).shape;
  ir::Ints origins;
  size_t next = 0;
  for (const int64_t extent : pre.type(movement.result()).shape) {
    while (extent != 1 && next < from.size() && from[next] == 1) ++next;
    if (extent != 1 && (next == from.size() || from[next] != extent)) return std::nullopt;
    origins.push_back(extent == 1 ? -1 : static_cast<int64_t>(next++));
  }
  return origins;
}

// Then a convolution finds the padding directly before it, and less is moved.
Result move_before_pads(const RewriteContext& context, std::string* why) {
  const Pre& pre = context.pre();
  // convert_layout pads with the channels last and puts this transpose after the pad.
  if (context.root.is("transpose") && op::attr_ints(context.root.node(), "axes") == kToNchw) {
    *why = "it makes NCHW of NHWC: the padding stays NHWC";
    return std::nullopt;
  }
  const std::optional<ir::Ints> origins = axis_origins(pre, context.root);
  if (!origins) {
    *why = "the reshape does more than moving extents of 1";
    return std::nullopt;
  }
  std::vector<PreNode> pads;
  pattern::PreValue data = context.root.operand(0);
  for (auto pad = pre.producer(data, "nn.pad"); pad && pre.num_uses(data) == 1;
       pad = pre.producer(data, "nn.pad")) {
    pads.push_back(*pad);
    data = pad->operand(0);
  }
  ir::Attrs attrs = context.root.attrs();
  if (context.root.is("reshape")) {
    ir::Ints shape;
    for (const int64_t axis : *origins) {
      shape.push_back(axis < 0 ? 1 : pre.type(data).shape[static_cast<size_t>(axis)]);
    }
    attrs.set("newshape", shape);
  }
  PostValue value =
      context.post().call(context.root.op()->name, {context.r[data]}, std::move(attrs), context.root.name());
  for (auto pad = pads.rbegin(); pad != pads.rend(); ++pad) {
    const std::vector<ir::Ints>& widths = op::attr_int_lists(pad->node(), "pad_width");
    std::vector<ir::Ints> moved;
    for (const int64_t axis : *origins) {
      moved.push_back(axis < 0 ? ir::Ints{0, 0} : widths[static_cast<size_t>(axis)]);
    }
    ir::Attrs pad_attrs = pad->attrs();
    pad_attrs.set("pad_width", moved);
    value =
        context.post().call("nn.pad", {value, context.r[pad->operand(1)]}, std::move(pad_attrs), pad->name());
  }
  *why = cat("before ", count_text(pads.size(), "padding"));
  return value;
}

// The inner concatenation is looked for in the new function, so that one visit merges a nest of any depth.
// More parts than this stay nested: a nest of thousands would be copied once for each of its levels.
constexpr size_t kMaxMergedParts = 64;

int64_t concatenate_axis(const ir::Node& node, const ir::Shape& shape) {
  return op::normalized_axis(op::attr_int(node, "axis"), shape.size());
}

Result merge_concatenates(const RewriteContext& context, std::string* why) {
  const ir::Shape& shape = context.pre().type(context.root.result()).shape;
  const int64_t axis = concatenate_axis(context.root.node(), shape);
  std::vector<PostValue> parts;
  for (size_t i = 0; i < context.root.num_operands(); ++i) {
    const pattern::PreValue operand = context.root.operand(i);
    const auto inner = context.post().producer(context.r[operand], "concatenate");
    if (inner && context.pre().num_uses(operand) == 1 && concatenate_axis(inner->node(), shape) == axis) {
      for (size_t k = 0; k < inner->num_operands(); ++k) parts.push_back(inner->operand(k));
    } else {
      parts.push_back(context.r[operand]);
    }
  }
  if (parts.size() <= context.root.num_operands()) {
    *why = "no part is a concatenation along the same axis that nothing else reads";
    return std::nullopt;
  }
  if (parts.size() > kMaxMergedParts) {
    *why = cat("together they have ", parts.size(), " parts, more than ", kMaxMergedParts);
    return std::nullopt;
  }
  *why = cat("of ", count_text(parts.size(), "part"));
  return context.post().call("concatenate", parts, context.root.attrs(), context.root.name());
}

// Other ways of writing a reshape.
bool is_other_reshape(const op::OpDef* op) {
  return op->movement == op::Movement::kReshape && op->name != "reshape";
}

bool has_window(const op::OpDef* op) { return op::attr_with(op, op::AttrRole::kWindow) != nullptr; }

std::vector<Rewrite> simplify_rows() {
  const Pattern data = any().as("data");
  const Pattern number = constant().dtype(ir::kFloat32);
  const Pattern one_number =
      number.where("of one element", [](const ir::Function& function, ir::ValueId value) {
        return function.type(value).num_elements() == 1;
      });
  const Pattern product = one_of(op::names_where(op::is_float_product)).as("product");
  const Pattern addend = (number | op("qnn.dequantize", {constant()})).as("addend");
  std::vector<Rewrite> rows = {
      {"squeeze_to_reshape", 0, one_of(op::names_where(is_other_reshape), {data}), to_reshape},
      {"flatten_indices", 0, op("take", {data, constant().as("indices")}), flatten_indices},
      {"drop_whole_slice", 0, op("strided_slice", {data}), drop_whole_slice},
      {"drop_same_resize", 0, op("image.resize2d", {data}).dtypes({ir::kInt8, ir::kUint8}), drop_same_resize},
      {"requantize_before_repeating", 0,
       op("qnn.requantize", {op("image.resize2d", {data}).one_use().as("resize"), constant(), constant(),
                             constant(), constant()})
           .dtypes({ir::kInt8, ir::kUint8}),
       requantize_before_repeating},
      {"global_to_avg_pool2d", 0, op("nn.global_avg_pool2d", {data}), whole_window},
      {"relu_to_clip", 0, op("nn.relu", {data}).dtypes({ir::kInt8, ir::kUint8, ir::kInt32, ir::kFloat32}),
       relu_to_clip},
      {"merge_clips", 0, op("clip", {data}).dtype(ir::kFloat32), merge_clips},
      {"drop_cast", 0, op("cast", {data}), drop_cast},
      {"cast_to_bool", 0, op("cast", {data}).dtype(ir::kBool), cast_to_bool},
      {"drop_zero_bias", 0, op("nn.bias_add", {data, constant().as("bias")}), drop_zero_bias},
      {"unit_strides", 0, one_of(op::names_where(has_window)), unit_strides},
      {"pad_value_to_int32", 0,
       op("nn.pad", {data, constant().as("value")}).dtypes({ir::kInt8, ir::kUint8, ir::kInt16, ir::kInt32}),
       pad_value_to_int32},
      {"merge_concatenates", 0, op("concatenate"), merge_concatenates},
      {"move_before_pad", 0, one_of({"transpose", "reshape"}, {op("nn.pad").one_use()}), move_before_pads},
  };
  // An addend of zeros is dropped, not made a bias.
  for (const char* name : {"add", "multiply"}) {
    rows.push_back(
        {cat("drop_neutral_", name), 1, commutative(name, {data, number.as("neutral")}), drop_neutral});
  }
  for (const char* name : {"subtract", "divide"}) {
    rows.push_back({cat("drop_neutral_", name), 1, op(name, {data, number.as("neutral")}), drop_neutral});
  }
  rows.push_back({"add_to_bias_add", 0, commutative("add", {product, addend}), add_to_bias_add});
  for (const char* name : {"maximum", "minimum"}) {
    rows.push_back(
        {cat(name, "_to_clip"), 0, commutative(name, {data, one_number.as("limit")}), limit_to_clip});
  }
  return rows;
}

}  // namespace

std::span<const Rewrite> simplify_rewrites() {
  static const std::vector<Rewrite> kRewrites = simplify_rows();
  return kRewrites;
}

std::unique_ptr<ir::Function> run_simplify(const ir::Module&, const ir::Function& pre, PassContext& context) {
  return run_rewrites(simplify_rewrites(), pre, context);
}

}  // namespace qplan::passes
