// requantize to int32, clip, cast to 8 bits: TVM's way of writing a requantisation to 8 bits. Exact: the clip
// does what the saturation does, or more; what it does more stays as a clip.
#include <algorithm>
#include <array>

#include "src/packer/ir/cat.h"
#include "src/packer/op/properties.h"
#include "src/packer/passes/passes.h"
#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
namespace {

using pattern::one_of;
using pattern::op;
using pattern::PostValue;
using pattern::PreNode;
using pattern::Rewrite;
using pattern::RewriteContext;

std::string range_text(ir::DType dtype) { return cat("[", dtype.min(), ", ", dtype.max(), "]"); }

bool zero_points_fit(const ir::Constant& zero_points, ir::DType dtype) {
  return std::ranges::all_of(zero_points.as<int32_t>(),
                             [dtype](int32_t value) { return value >= dtype.min() && value <= dtype.max(); });
}

std::optional<PostValue> fuse_clip(const RewriteContext& context, std::string* why) {
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
               " lets values beyond wrap");
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
  *why = cat("to ", dtype, " directly, the clip stays behind it");
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
