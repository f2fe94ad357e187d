// What moves or compares elements without computing commutes with qnn.dequantize and qnn.quantize, exactly:
// scales are positive, both are monotone and elementwise. So dequantisations sink towards the operators that
// need floats and quantisations rise towards the ones that make them; where they meet they are one
// requantisation, or nothing.
#include <algorithm>
#include <cmath>

#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
namespace {

using pattern::any;
using pattern::one_of;
using pattern::op;

float pad_value(const Pre& pre, PreNode pad) {
  // float32 or int32, says inference.
  const size_t value = *op::operand_with(*pad.op(), op::OperandRole::kDataValue);
  return static_cast<float>(scalar_value(*pre.constant(pad.operand(value))).value_or(0.0));
}

// ---- sinking: tried at the movement; the qnn.dequantize is looked for in the new function, so that one
// visit sinks through a chain of any length ----

struct Dequantize {
  PostNode node;
  PostValue data() const { return node.operand(0); }
  float scale = 0;
  int32_t zero_point = 0;
  bool per_axis = false;
};

std::optional<Dequantize> find_dequantize(const RewriteContext& context, PreValue value, std::string* why) {
  pattern::Post& post = context.post();
  const auto node = post.producer(context.r[value], "qnn.dequantize");
  if (!node) {
    *why = cat("its operand ", describe(context.pre(), value), " is no qnn.dequantize");
    return std::nullopt;
  }
  const auto scale = post.constant(node->operand(1))->as<float>();
  const auto zero_point = post.constant(node->operand(2))->as<int32_t>();
  return Dequantize{*node, scale[0], zero_point[0], scale.size() > 1 || zero_point.size() > 1};
}

PostValue dequantized_like(const RewriteContext& context, const Dequantize& dequantize, PostValue data,
                           ir::Attrs attrs) {
  return context.post().call("qnn.dequantize", {data, dequantize.node.operand(1), dequantize.node.operand(2)},
                             std::move(attrs), dequantize.node.name());
}

// The integer that stands for the float exactly; nullopt: none does, as for -0.
std::optional<int32_t> exact_integer(float value, const Dequantize& dequantize, ir::DType dtype) {
  if (value == 0.0f && std::signbit(value)) return std::nullopt;
  const Quantized quantized = Quantizer{dequantize.scale, dequantize.zero_point, dtype}(value);
  const double steps = static_cast<double>(quantized.value) - dequantize.zero_point;
  if (quantized.saturated || static_cast<float>(steps) * dequantize.scale != value) return std::nullopt;
  return quantized.value;
}

// Where the quantisation axis of the data stands in the result; nullopt: nowhere.
std::optional<int64_t> moved_axis(const RewriteContext& context, const Dequantize& dequantize) {
  const ir::Shape& from = context.post().type(dequantize.data()).shape;
  const ir::Shape& to = context.pre().type(context.root.result()).shape;
  const auto axis =
      static_cast<size_t>(op::normalized_axis(op::attr_int(dequantize.node.node(), "axis"), from.size()));
  if (context.root.is("transpose")) {
    const ir::Ints& axes = op::attr_ints(context.root.node(), "axes");
    return std::ranges::find(axes, static_cast<int64_t>(axis)) - axes.begin();
  }
  if (context.root.is("strided_slice")) {
    const op::SliceRange range = op::slice_ranges(context.root.node(), from)[axis];
    const bool is_whole = range.begin == 0 && range.step == 1 && range.count == from[axis];
    return is_whole ? std::optional<int64_t>(static_cast<int64_t>(axis)) : std::nullopt;
  }
  if (context.root.op()->movement != op::Movement::kReshape) return std::nullopt;
  // As many elements before it, and the same extent: the same position.
  int64_t outer = 1, before = 1;
  for (size_t i = 0; i < axis; ++i) outer *= from[i];
  for (size_t i = 0; i < to.size(); ++i) {
    if (before == outer && to[i] == from[axis]) return static_cast<int64_t>(i);
    before *= to[i];
  }
  return std::nullopt;
}

Result sink_movement(const RewriteContext& context, std::string* why) {
  const auto dequantize = find_dequantize(context, context.root.operand(0), why);
  if (!dequantize) return std::nullopt;
  const ir::DType dtype = context.post().type(dequantize->data()).dtype;
  ir::Attrs attrs = dequantize->node.attrs();
  if (dequantize->per_axis) {
    const auto axis = moved_axis(context, *dequantize);
    if (!axis) {
      *why =
          cat("the axis of its operand's scales is not one of ", context.pre().type(context.root.result()));
      return std::nullopt;
    }
    attrs.set("axis", *axis);
  }
  std::vector<PostValue> operands = context.r.operands(context.root);
  operands[0] = dequantize->data();
  if (const auto padding = op::operand_with(*context.root.op(), op::OperandRole::kDataValue)) {
    const float value = pad_value(context.pre(), context.root);
    const std::optional<int32_t> integer = exact_integer(value, *dequantize, dtype);
    if (!integer) {
      *why = "its pad value is not exactly an integer";
      return std::nullopt;
    }
    operands[*padding] = context.post().scalar(*integer);
  }
  if (context.root.op()->kind == op::OpKind::kReduction && dtype == ir::kInt32) {
    *why = "it has no int32 form";
    return std::nullopt;
  }
  *why = "exact: the dequantisation comes after it";
  const PostValue moved =
      context.post().call(context.root.op()->name, operands, context.root.attrs(), context.root.name());
  return dequantized_like(context, *dequantize, moved, std::move(attrs));
}

Result sink_concatenate(const RewriteContext& context, std::string* why) {
  std::vector<PostValue> operands;
  std::optional<Dequantize> first;
  for (size_t i = 0; i < context.root.num_operands(); ++i) {
    const auto part = find_dequantize(context, context.root.operand(i), why);
    if (!part) return std::nullopt;
    if (!first) first = part;
    pattern::Post& post = context.post();
    if (part->per_axis || part->node.operand(1) != first->node.operand(1) ||
        part->node.operand(2) != first->node.operand(2) ||
        post.type(part->data()).dtype != post.type(first->data()).dtype) {
      *why = cat("operand ", i, " has another scale, zero point or dtype than operand 0");
      return std::nullopt;
    }
    operands.push_back(part->data());
  }
  *why = "exact: the dequantisation comes after it";
  const PostValue joined =
      context.post().call("concatenate", operands, context.root.attrs(), context.root.name());
  return dequantized_like(context, *first, joined, first->node.attrs());
}

// Bounds that integers stand for, or that nothing reaches.
Result sink_clip(const RewriteContext& context, std::string* why) {
  const auto dequantize = find_dequantize(context, context.root.operand(0), why);
  if (!dequantize) return std::nullopt;
  const ir::DType dtype = context.post().type(dequantize->data()).dtype;
  if (dequantize->per_axis || dtype.bits != 8) {
    *why = "its operand is not 8 bits with one scale";
    return std::nullopt;
  }
  const auto value_of = [&](int64_t q) {
    return static_cast<float>(q - dequantize->zero_point) * dequantize->scale;
  };
  const auto bound = [&](const char* name, int64_t limit, bool reached) -> std::optional<double> {
    if (!reached) return static_cast<double>(limit);
    const auto integer =
        exact_integer(static_cast<float>(op::attr_float(context.root.node(), name)), *dequantize, dtype);
    if (!integer) *why = cat("no integer equals its ", name, " exactly");
    return integer ? std::optional<double>(*integer) : std::nullopt;
  };
  const auto min =
      bound("a_min", dtype.min(),
            op::attr_float(context.root.node(), "a_min") > static_cast<double>(value_of(dtype.min())));
  const auto max =
      bound("a_max", dtype.max(),
            op::attr_float(context.root.node(), "a_max") < static_cast<double>(value_of(dtype.max())));
  if (!min || !max) return std::nullopt;
  *why = cat("exact: a clip to [", static_cast<int64_t>(*min), ", ", static_cast<int64_t>(*max),
             "] before the dequantisation");
  const PostValue clipped = context.post().call("clip", {dequantize->data()},
                                                {{"a_min", *min}, {"a_max", *max}}, context.root.name());
  return dequantized_like(context, *dequantize, clipped, dequantize->node.attrs());
}

// ---- rising: tried at the qnn.quantize ----

Quantizer quantizer_of(const RewriteContext& context) {
  const PreNode quantize = context.root;
  return {scale_of(context.pre(), quantize.operand(1)), zero_point_of(context.pre(), quantize.operand(2)),
          context.pre().type(quantize.result()).dtype, quantize_rounding(quantize.node())};
}

PostValue quantized_like(const RewriteContext& context, PostValue data) {
  const PreNode quantize = context.root;
  return context.post().call("qnn.quantize",
                             {data, context.r[quantize.operand(1)], context.r[quantize.operand(2)]},
                             quantize.attrs(), quantize.name());
}

bool all_finite(const ir::Constant& constant) {
  return std::ranges::all_of(constant.as<float>(), [](float value) { return std::isfinite(value); });
}

// Whether finite numbers make finite ones; with usual scales no sum of products leaves float32.
bool keeps_numbers(PreNode node) {
  switch (node.op() == nullptr ? op::OpKind::kOpaque : node.op()->kind) {
    case op::OpKind::kBroadcast:
      return !node.is("divide") && !node.is("power");
    case op::OpKind::kProduct:
    case op::OpKind::kReduction:
    case op::OpKind::kMovement:
      return true;
    default:
      return node.is("clip");
  }
}

// Whether all that the value is made of are numbers that integers stand for, and finite constants.
bool is_never_nan(const Pre& pre, PreValue value) {
  constexpr size_t kMostVisited = 64;
  std::vector<PreValue> open = {value};
  for (size_t i = 0; i < open.size(); ++i) {
    if (!pre.type(open[i]).dtype.is_float()) continue;  // a condition, a position
    if (const ir::ConstantRef constant = pre.constant(open[i])) {
      if (!all_finite(*constant)) return false;
      continue;
    }
    const auto node = pre.producer(open[i]);
    if (node && node->is("qnn.dequantize")) continue;
    if (!node || !keeps_numbers(*node) || open.size() > kMostVisited) return false;
    for (size_t k = 0; k < node->num_operands(); ++k) open.push_back(node->operand(k));
  }
  return true;
}

Result raise_above_movement(const RewriteContext& context, std::string* why) {
  const Pre& pre = context.pre();
  std::vector<PreNode> chain;
  PreValue data = context.root.operand(0);
  for (auto node = pre.producer(data); node && op::chooses_elements(node->op()) && pre.num_uses(data) == 1;
       node = pre.producer(data)) {
    chain.push_back(*node);
    data = node->operand(0);
  }
  if (pre.producer(data, "qnn.dequantize")) {
    *why = "a qnn.dequantize comes before the movement and is moved after it";
    return std::nullopt;
  }
  const bool compares = std::ranges::any_of(
      chain, [](const PreNode& node) { return node.op()->kind == op::OpKind::kReduction; });
  if (compares && !is_never_nan(pre, data)) {
    *why = "NaN, which counts as 0 once it is quantised, would be compared as a number";
    return std::nullopt;
  }
  PostValue moved = quantized_like(context, context.r[data]);
  for (auto node = chain.rbegin(); node != chain.rend(); ++node) {
    std::vector<PostValue> operands = context.r.operands(*node);
    operands[0] = moved;
    if (const auto padding = op::operand_with(*node->op(), op::OperandRole::kDataValue)) {
      operands[*padding] = context.post().scalar(quantizer_of(context)(pad_value(pre, *node)).value);
    }
    moved = context.post().call(node->op()->name, operands, node->attrs(), node->name());
  }
  *why = cat("exact: quantised before ", count_text(chain.size(), "movement"));
  return moved;
}

Result raise_above_concatenate(const RewriteContext& context, std::string* why) {
  const PreNode concatenate = context.node("concatenate");
  std::vector<PostValue> parts;
  for (const PostValue part : context.r.operands(concatenate)) parts.push_back(quantized_like(context, part));
  *why = cat("exact: ", count_text(parts.size(), "part"), " quantised before they are joined");
  return context.post().call("concatenate", parts, concatenate.attrs(), concatenate.name());
}

// quantize is monotone: the larger of two is the larger of the quantised two. Both come from 8 bits; what one
// 8-bit value makes alone is a table (fuse_unary_chain).
Result raise_above_choice(const RewriteContext& context, std::string* why) {
  const PreNode choice = context.node("choice");
  std::vector<PostValue> parts;
  for (const PostValue part : context.r.operands(choice)) parts.push_back(quantized_like(context, part));
  *why = "exact: both quantised before one of them is chosen";
  return context.post().call(choice.op()->name, parts, choice.attrs(), choice.name());
}

// quantize is monotone: clamping before it is clamping after it to the quantised bounds. NaN passes a clip of
// floats and is quantised to the zero point, which must then be within the bounds, or no NaN come.
Result raise_above_clip(const RewriteContext& context, std::string* why) {
  const PreNode clip = context.node("clip");
  const Quantizer quantizer = quantizer_of(context);
  const auto bound = [&](const char* name) {
    return quantizer(static_cast<float>(op::attr_float(clip.node(), name))).value;
  };
  const int32_t min = bound("a_min"), max = bound("a_max");
  const bool keeps_nan = min <= quantizer.zero_point && quantizer.zero_point <= max;
  if (!keeps_nan && !is_never_nan(context.pre(), clip.operand(0))) {
    *why = cat("NaN would become an end of [", min, ", ", max, "] in place of the zero point ",
               quantizer.zero_point);
    return std::nullopt;
  }
  const PostValue data = quantized_like(context, context.r[clip.operand(0)]);
  *why = cat("exact: a clip to [", min, ", ", max, "] after the quantisation");
  if (min == quantizer.dtype.min() && max == quantizer.dtype.max()) return data;
  return context.post().call("clip", {data},
                             {{"a_min", static_cast<double>(min)}, {"a_max", static_cast<double>(max)}},
                             clip.name());
}

}  // namespace

std::vector<Rewrite> movement_rewrites() {
  const auto any_quantize = [](Pattern data) {
    return op("qnn.quantize", {std::move(data), scalar_constant(), scalar_constant()});
  };
  const std::vector<std::string> movements = op::names_where(op::chooses_elements);
  std::vector<Rewrite> rows = {
      {"sink_dequantize", 0, one_of(movements).dtype(ir::kFloat32), sink_movement},
      {"sink_dequantize_below_concatenate", 0, op("concatenate").dtype(ir::kFloat32), sink_concatenate},
      {"sink_dequantize_below_clip", 0, op("clip").dtype(ir::kFloat32), sink_clip},
      {"raise_quantize", 0, quantized(one_of(movements).one_use()), raise_above_movement},
      {"raise_quantize_above_concatenate", 0, quantized(op("concatenate").one_use().as("concatenate")),
       raise_above_concatenate},
      {"raise_quantize_above_clip", 0, any_quantize(op("clip").as("clip")), raise_above_clip},
  };
  for (const std::string& name : op::names_where(op::chooses_between)) {
    const Pattern choice = op(name, {dequantized("a"), dequantized("b")}).one_use().as("choice");
    rows.push_back({"raise_quantize_above_" + name, 0, quantized(choice), raise_above_choice});
  }
  return rows;
}

}  // namespace qplan::passes
