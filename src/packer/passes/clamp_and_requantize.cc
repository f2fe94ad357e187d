// Requantisations and clamps in their shortest form.
#include <algorithm>
#include <array>

#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::passes {

// Chains of requantisations where merging them is exact. A requantisation between int8 and uint8 with one
// scale and with zero points that are 128 apart moves every integer by 128 (requantize_sign): the operator
// before or after it can move its zero point instead. Other chains round twice, and stay.

namespace {

using pattern::any;
using pattern::one_of;
using pattern::op;

enum RequantizeOperand : size_t { kData, kInputScale, kInputZeroPoint, kOutputScale, kOutputZeroPoint };

// By how much the requantisation moves integers.
int32_t offset_of(const pattern::Pre& pre, PreNode requantize_sign) {
  return static_cast<int32_t>(pre.type(requantize_sign.result()).dtype.min() -
                              pre.type(requantize_sign.operand(kData)).dtype.min());
}

bool is_sign_requantization(const ir::Function& function, ir::ValueId value) {
  const ir::Node& node = *function.producer(value);
  const ir::DType from = function.type(node.operands[kData]).dtype, to = function.type(value).dtype;
  if (from.bits != 8 || to.bits != 8 || from == to) return false;
  const auto scalar = [&](RequantizeOperand operand) {
    return function.type(node.operands[operand]).shape.empty();
  };
  if (!scalar(kInputScale) || !scalar(kOutputScale) || !scalar(kInputZeroPoint) ||
      !scalar(kOutputZeroPoint)) {
    return false;
  }
  const auto scale = [&](RequantizeOperand operand) {
    return function.value(node.operands[operand]).constant->as<float>()[0];
  };
  const auto zero_point = [&](RequantizeOperand operand) {
    return function.value(node.operands[operand]).constant->as<int32_t>()[0];
  };
  return scale(kInputScale) == scale(kOutputScale) &&
         zero_point(kOutputZeroPoint) - zero_point(kInputZeroPoint) == to.min() - from.min();
}

// It reads data of either dtype, with a zero point, whatever the results are: conversions and layers.
bool reads_any_dtype(const op::OpDef* op) {
  return op != nullptr && !op->keeps_dtype && op::zero_point_of(*op, 0).has_value();
}

Pattern of_other_sign(Pattern data) {
  return op("qnn.requantize", {std::move(data)})
      .where("that a requantisation between int8 and uint8 made, with one scale and zero points 128 apart",
             is_sign_requantization);
}

PostValue moved_constant(const RewriteContext& context, pattern::PreValue value, int32_t offset) {
  const ir::Constant& old = *context.pre().constant(value);
  return context.post().constant_value(moved_zero_points(old, offset));
}

// requantize sign(first(x)): first makes the other dtype itself.
Result into_producer(const RewriteContext& context, std::string* why) {
  const PreNode first = context.node("first");
  const size_t zero_point = *op::zero_point_of(*first.op(), op::kResult);
  std::vector<PostValue> operands = context.r.operands(first);
  operands[zero_point] =
      moved_constant(context, first.operand(zero_point), offset_of(context.pre(), context.root));
  ir::Attrs attrs = first.attrs();
  const ir::DType dtype = context.pre().type(context.root.result()).dtype;
  attrs.set(op::attr_with(first.op(), op::AttrRole::kDtype)->name, ir::to_string(dtype));
  *why = cat("exact: '", first.name(), "' makes ", dtype, " itself");
  return context.post().call(first.op()->name, operands, std::move(attrs), first.name());
}

// requantize_sign(clip(x)): the clip, in the other dtype, comes after it.
Result below_clip(const RewriteContext& context, std::string* why) {
  const PreNode clip = context.node("clip");
  const ir::DType from = context.pre().type(clip.result()).dtype;
  const int32_t offset = offset_of(context.pre(), context.root);
  const auto bound = [&](const char* name) {
    const auto least = static_cast<double>(from.min()), most = static_cast<double>(from.max());
    return std::clamp(op::attr_float(clip.node(), name), least, most) + offset;
  };
  std::vector<PostValue> operands = context.r.operands(context.root);
  operands[kData] = context.r[clip.operand(0)];
  *why = "exact: the clip comes after it";
  const PostValue value =
      context.post().call("qnn.requantize", operands, context.root.attrs(), context.root.name());
  return context.post().call("clip", {value}, {{"a_min", bound("a_min")}, {"a_max", bound("a_max")}},
                             clip.name());
}

// reader(requantize sign(x)): reads x itself, with its zero point in x's dtype.
Result into_reader(const RewriteContext& context, std::string* why) {
  const PreNode requantize_sign = context.node("resign");
  const pattern::Pre& pre = context.pre();
  const auto before = pre.producer(requantize_sign.operand(kData));
  // Both would make a second copy of what stands before: of an accumulator's requantisation, for instance.
  if (pre.num_uses(requantize_sign.result()) > 1 && pre.num_uses(requantize_sign.operand(kData)) == 1 &&
      before && (op::chooses_dtype(before->op()) || before->is("clip"))) {
    *why =
        cat("others read '", requantize_sign.name(), "' too: it goes into '", before->name(), "' before it");
    return std::nullopt;
  }
  const int32_t offset = offset_of(context.pre(), requantize_sign);
  std::vector<PostValue> operands = context.r.operands(context.root);
  operands[0] = context.r[requantize_sign.operand(kData)];
  const size_t zero_point = *op::zero_point_of(*context.root.op(), 0);
  operands[zero_point] = moved_constant(context, context.root.operand(zero_point), -offset);
  ir::Attrs attrs = context.root.attrs();
  const op::AttrDef* value = op::attr_with(context.root.op(), op::AttrRole::kDataValue);
  if (value != nullptr && attrs.has(value->name)) {
    attrs.set(value->name, op::attr_int(context.root.node(), value->name) - offset);
  }
  *why = cat("exact: reads what '", requantize_sign.name(), "' reads");
  return context.post().call(context.root.op()->name, operands, std::move(attrs), context.root.name());
}

}  // namespace

std::span<const Rewrite> merge_requantize_rewrites() {
  static const std::array<Rewrite, 3> kRewrites = [] {
    const Pattern first =
        one_of(op::names_where(op::chooses_dtype)).dtypes({ir::kInt8, ir::kUint8}).one_use().as("first");
    return std::array<Rewrite, 3>{
        Rewrite{"merge_resign_into_producer", 0, of_other_sign(first), into_producer},
        Rewrite{"move_resign_above_clip", 0, of_other_sign(op("clip").one_use().as("clip")), below_clip},
        Rewrite{"merge_resign_into_reader", 0,
                one_of(op::names_where(reads_any_dtype), {of_other_sign(any()).as("resign")}), into_reader},
    };
  }();
  return kRewrites;
}

std::unique_ptr<ir::Function> run_merge_requantize(const ir::Module&, const ir::Function& pre,
                                                   PassContext& context) {
  return run_rewrites(merge_requantize_rewrites(), pre, context);
}

// Clamps: bounds within the dtype, chains merged, what does nothing dropped (a clip to
// the whole dtype, an 8-bit requantisation to the same scale and zero point, a cast to the same dtype). What
// is left of a clip comes directly after the operator into whose output range lowering folds it.

namespace {

struct Bounds {
  double min, max;
  bool operator==(const Bounds&) const = default;
};

template <typename Node>
Bounds bounds_of(const Node& clip) {
  return {op::attr_float(clip.node(), "a_min"), op::attr_float(clip.node(), "a_max")};
}

// Why the node changes nothing; null when it may.
const char* identity_reason(Rebuild& r, PreNode node) {
  const auto same_constant = [&](size_t a, size_t b) { return r[node.operand(a)] == r[node.operand(b)]; };
  const auto& pre = r.pre();
  if (node.is("cast")) {
    return pre.type(node.operand(0)) == pre.type(node.result()) ? "a cast to the same dtype, dropped"
                                                                : nullptr;
  }
  if (node.is("qnn.requantize")) {
    // A multiplier of 1 is exact in every contract; beyond 24 bits F32E would round.
    const ir::TensorType& type = pre.type(node.operand(0));
    const bool identity =
        type.dtype.bits == 8 && type == pre.type(node.result()) && same_constant(1, 3) && same_constant(2, 4);
    return identity ? "the same scale and zero point, dropped" : nullptr;
  }
  return nullptr;
}

bool rewrite_clip(Rebuild& r, PreNode node, PassContext& context) {
  const ir::DType dtype = r.pre().type(node.result()).dtype;
  const Bounds old = bounds_of(node);
  // Clamps of floats lower differently, and a double cannot hold every bound of 64 bits.
  if (dtype.is_float() || dtype.bits > 32) return false;
  const Bounds whole{static_cast<double>(dtype.min()), static_cast<double>(dtype.max())};
  // Bounds that keep nothing of the dtype are left to whoever executes them.
  if (old.min > whole.max || old.max < whole.min) return false;
  Bounds bounds{std::max(old.min, whole.min), std::min(old.max, whole.max)};

  PostValue data = r[node.operand(0)];
  const auto inner = r.post().producer(data, "clip");
  if (inner) {
    // clamp after clamp is the clamp to the inner bounds, clamped to the outer ones.
    const Bounds within = bounds_of(*inner);
    bounds = {std::clamp(within.min, bounds.min, bounds.max), std::clamp(within.max, bounds.min, bounds.max)};
    if (bounds == within) {
      r.replace(node.result(), data);
      context.fired("fuse_activation", node.name(), "a clip within the bounds of the one before it, dropped");
      return true;
    }
    data = inner->operand(0);
  }
  if (bounds == whole) {
    r.replace(node.result(), data);
    context.fired("fuse_activation", node.name(), "a clip to the whole dtype, dropped");
    return true;
  }
  if (!inner && bounds == old) return false;
  r.replace(node.result(),
            r.post().call("clip", {data}, {{"a_min", bounds.min}, {"a_max", bounds.max}}, node.name()));
  context.fired("fuse_activation", node.name(),
                inner ? "merged with the clip before it" : "bounds limited to the dtype");
  return true;
}

}  // namespace

std::unique_ptr<ir::Function> run_fuse_activation(const ir::Module&, const ir::Function& pre,
                                                  PassContext& context) {
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) {
    if (node.is("clip")) return rewrite_clip(r, node, context);
    const char* reason = identity_reason(r, node);
    if (reason == nullptr) return false;
    r.replace(node.result(), r[node.operand(0)]);
    context.fired("fuse_activation", node.name(), reason);
    return true;
  });
}

// requantize to int32, clip, cast to 8 bits: TVM's way of writing a requantisation to 8 bits. Exact: the clip
// does what the saturation does, or more; what it does more stays as a clip.
namespace {

using pattern::one_of;
using pattern::op;

std::string range_text(ir::DType dtype) { return cat("[", dtype.min(), ", ", dtype.max(), "]"); }

bool zero_points_fit(const ir::Constant& zero_points, ir::DType dtype) {
  return std::ranges::all_of(zero_points.as<int32_t>(),
                             [dtype](int32_t value) { return value >= dtype.min() && value <= dtype.max(); });
}

Result fuse_clip(const RewriteContext& context, std::string* why) {
  const ir::DType dtype = context.pre().type(context.root.result()).dtype;
  if (!context.has("clip")) {
    *why = cat("nothing limits the int32 value to ", range_text(dtype), " before the cast to ", dtype,
               ", which lets it wrap");
    return std::nullopt;
  }
  const PreNode clip = context.node("clip"), source = context.node("source");
  const double min = op::attr_float(clip.node(), "a_min"), max = op::attr_float(clip.node(), "a_max");
  const auto least = static_cast<double>(dtype.min()), most = static_cast<double>(dtype.max());
  if (min < least || max > most) {
    *why = cat("the clip '", clip.name(), "' is wider than ", range_text(dtype), ": the cast to ", dtype,
               " lets larger values wrap around");
    return std::nullopt;
  }
  const size_t zero_point = *op::zero_point_of(*source.op(), op::kResult);
  if (!zero_points_fit(*context.pre().constant(source.operand(zero_point)), dtype)) {
    *why = cat("the zero point of '", source.name(), "' is outside of ", dtype);
    return std::nullopt;
  }
  ir::Attrs attrs = source.attrs();
  attrs.set(op::attr_with(source.op(), op::AttrRole::kDtype)->name, ir::to_string(dtype));
  pattern::Post& post = context.post();
  const PostValue value =
      post.call(source.op()->name, context.r.operands(source), std::move(attrs), source.name());
  if (min == least && max == most) {
    *why = cat("to ", dtype, " directly: the clip was its range");
    return value;
  }
  *why = cat("to ", dtype, " directly, the clip stays after it");
  return post.call("clip", {value}, {{"a_min", min}, {"a_max", max}}, clip.name());
}

}  // namespace

std::span<const Rewrite> fuse_clip_cast_rewrites() {
  static const std::array<Rewrite, 1> kRewrites = [] {
    const pattern::Pattern source =
        one_of(op::names_where(op::chooses_dtype)).dtype(ir::kInt32).one_use().as("source");
    const pattern::Pattern clipped = op("clip", {source}).one_use().as("clip");
    return std::array<Rewrite, 1>{Rewrite{
        "fuse_clip_cast", 0, op("cast", {clipped | source}).dtypes({ir::kInt8, ir::kUint8}), fuse_clip}};
  }();
  return kRewrites;
}

std::unique_ptr<ir::Function> run_fuse_clip_cast(const ir::Module&, const ir::Function& pre,
                                                 PassContext& context) {
  return run_rewrites(fuse_clip_cast_rewrites(), pre, context);
}

}  // namespace qplan::passes
