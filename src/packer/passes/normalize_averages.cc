// One way of writing an average over height and width. Where scale and zero point change, and the window is
// the whole image, it is a mean: TFLite's average pool cannot change them, its converter writes MEAN, and
// under other contracts the two are the same arithmetic. A smaller window under TFLite's contract becomes a
// pool and a requantisation. Where nothing changes it is a pool; a mean under TFLite's contract stays one,
// since it rounds differently.
#include "src/packer/op/shape.h"
#include "src/packer/passes/passes.h"
#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
namespace {

using pattern::PostValue;

bool covers_all(const op::Window2d& window, const ir::Shape& shape, const op::DataLayout& layout) {
  return window.kernel_h == shape[layout.h] && window.kernel_w == shape[layout.w] &&
         (window.pad_top | window.pad_left | window.pad_bottom | window.pad_right) == 0;
}

std::optional<PostValue> rescaled_pool(const pattern::RewriteContext& c, std::string* why) {
  const pattern::PreNode pool = c.root;
  if (c.r[pool.operand(1)] == c.r[pool.operand(3)] && c.r[pool.operand(2)] == c.r[pool.operand(4)]) {
    *why = "scale and zero point stay the same";
    return std::nullopt;
  }
  const op::DataLayout layout = op::data_layout(op::attr_string(pool.node(), "layout"));
  const std::string contract = op::attr_string(pool.node(), "contract");
  std::vector<PostValue> operands = c.r.operands(pool);
  if (covers_all(op::pool2d_window(pool.node()), c.pre().type(pool.operand(0)).shape, layout)) {
    *why = "contract " + contract + ": a mean over height and width";
    const ir::Ints axes{static_cast<int64_t>(layout.h), static_cast<int64_t>(layout.w)};
    return c.post().call("qnn.mean", operands, {{"axis", axes}, {"keepdims", true}, {"contract", contract}},
                         pool.name());
  }
  if (contract != "tfl2") {
    *why = "contract " + contract + " has such pools";
    return std::nullopt;
  }
  *why = "contract " + contract + ": a pool, then a requantisation";
  const PostValue output_scale = operands[3], output_zero_point = operands[4];
  operands[3] = operands[1];
  operands[4] = operands[2];
  const PostValue pooled = c.post().call("qnn.avg_pool2d", operands, pool.attrs(), pool.name());
  return c.post().call(
      "qnn.requantize", {pooled, operands[1], operands[2], output_scale, output_zero_point},
      {{"out_dtype", ir::to_string(c.pre().type(pool.result()).dtype)}, {"contract", contract}}, pool.name());
}

std::optional<PostValue> mean_as_pool(const pattern::RewriteContext& c, std::string* why) {
  const pattern::PreNode mean = c.root;
  const ir::Shape& shape = c.pre().type(mean.operand(0)).shape;
  if (op::normalized_axes(op::attr_ints(mean.node(), "axis"), shape.size()) != ir::Ints{1, 2}) {
    *why = "it is not over height and width of NHWC";
    return std::nullopt;
  }
  if (!(c.r[mean.operand(1)] == c.r[mean.operand(3)] && c.r[mean.operand(2)] == c.r[mean.operand(4)])) {
    *why = "it changes scale or zero point";
    return std::nullopt;
  }
  *why = "a pool over the whole image";
  const PostValue pool = c.post().call("qnn.avg_pool2d", c.r.operands(mean),
                                       {{"pool_size", ir::Ints{shape[1], shape[2]}},
                                        {"layout", std::string("NHWC")},
                                        {"contract", op::attr_string(mean.node(), "contract")}},
                                       mean.name());
  if (op::attr_bool(mean.node(), "keepdims")) return pool;
  return c.post().call("reshape", {pool}, {{"newshape", c.pre().type(mean.result()).shape}}, mean.name());
}

}  // namespace

std::span<const pattern::Rewrite> normalize_averages_rewrites() {
  static const std::vector<pattern::Rewrite> rows = {
      {.name = "rescale_avg_pool", .pattern = pattern::op("qnn.avg_pool2d"), .build = rescaled_pool},
      {.name = "mean_as_avg_pool",
       .pattern = pattern::op("qnn.mean", {pattern::any().rank(4)}).attr("contract", std::string("f32e")),
       .build = mean_as_pool}};
  return rows;
}

std::unique_ptr<ir::Function> run_normalize_averages(const ir::Module&, const ir::Function& pre,
                                                     PassContext& context) {
  return run_rewrites(normalize_averages_rewrites(), pre, context);
}

}  // namespace qplan::passes
