// Clamps in their shortest form: bounds within the dtype, chains merged, what does nothing dropped (a clip to
// the whole dtype, an 8-bit requantisation to the same scale and zero point, a cast to the same dtype). What
// is left of a clip comes directly after the operator into whose output range lowering folds it.
#include <algorithm>
#include <array>

#include "src/packer/ir/cat.h"
#include "src/packer/op/properties.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {
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
  // Float clamps lower differently; the range of 64 bits is none that doubles hold.
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
