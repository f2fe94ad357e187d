// nn.pad in front of a qnn.conv2d becomes part of the convolution's padding: only if it pads height and width
// alone, with the value that the convolution pads with (its input zero point, or pad_value), and nothing else
// reads it.
#include "src/packer/op/shape.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {
namespace {

// Height and width padding alone, with this value.
bool pads_spatially(const pattern::Pre& pre, PreNode pad, const op::DataLayout& layout, double value) {
  const std::vector<ir::Ints>& pads = op::attr_int_lists(pad.node(), "pad_width");
  for (const size_t axis : {layout.n, layout.c}) {
    if (pads[axis] != ir::Ints{0, 0}) return false;
  }
  return scalar_value(*pre.constant(pad.operand(1))) == value;
}

bool fold_pads(Rebuild& r, PreNode conv, PassContext& context) {
  const pattern::Pre& pre = r.pre();
  if (!conv.is("qnn.conv2d")) return false;
  const op::DataLayout layout = op::data_layout(op::attr_string(conv.node(), "data_layout"));
  const int64_t input_zero_point = pre.constant(conv.operand(2))->as<int32_t>()[0];
  const auto value = static_cast<double>(conv.attrs().get_int("pad_value", input_zero_point));
  op::Window2d window = op::conv2d_window(conv.node(), pre.type(conv.operand(1)));

  constexpr int64_t kMaxPadding = INT32_MAX;  // what a step can say
  pattern::PreValue data = conv.operand(0);
  while (const auto pad = pre.producer(data, "nn.pad")) {
    if (pre.num_uses(data) != 1 || !pads_spatially(pre, *pad, layout, value)) break;
    const std::vector<ir::Ints>& pads = op::attr_int_lists(pad->node(), "pad_width");
    const int64_t total = pads[layout.h][0] + pads[layout.h][1] + pads[layout.w][0] + pads[layout.w][1];
    if (window.pad_top + window.pad_bottom + window.pad_left + window.pad_right + total > kMaxPadding) break;
    window.pad_top += pads[layout.h][0];
    window.pad_bottom += pads[layout.h][1];
    window.pad_left += pads[layout.w][0];
    window.pad_right += pads[layout.w][1];
    data = pad->operand(0);
    context.fired("fold_pad", conv.name(), "took over the padding of '" + pad->name() + "'");
  }
  if (data == conv.operand(0)) return false;

  ir::Attrs attrs = conv.attrs();
  attrs.set("padding", ir::Ints{window.pad_top, window.pad_left, window.pad_bottom, window.pad_right});
  std::vector<pattern::PostValue> operands = r.operands(conv);
  operands[0] = r[data];
  r.replace(conv.result(), r.post().call("qnn.conv2d", operands, std::move(attrs), conv.name()));
  return true;
}

}  // namespace

std::unique_ptr<ir::Function> run_fold_pad(const ir::Module&, const ir::Function& pre, PassContext& context) {
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) { return fold_pads(r, node, context); });
}

// nn.pad of zero points before a requantisation moves after it, where the convolution that follows can take
// it over: the input's zero point is the output's zero point in every contract, since both stand for 0.
namespace {

Result pad_afterwards(const pattern::RewriteContext& c, std::string* why) {
  const int32_t zero_point = zero_point_of(c.pre(), c.matches["input_zero_point"]);
  if (scalar_value(*c.constant("pad_value")) != static_cast<double>(zero_point)) {
    *why = "the pad value is not the zero point " + std::to_string(zero_point);
    return std::nullopt;
  }
  std::vector<pattern::PostValue> operands = c.r.operands(c.root);
  operands[0] = c["data"];
  const pattern::PostValue requantized =
      c.post().call("qnn.requantize", operands, c.root.attrs(), c.root.name());
  const pattern::PreNode pad = c.node("pad");
  *why = "padded with the output's zero point afterwards";
  return c.post().call("nn.pad", {requantized, c.post().scalar(zero_point_of(c.pre(), c.root.operand(4)))},
                       pad.attrs(), pad.name());
}

}  // namespace

std::span<const pattern::Rewrite> move_pad_rewrites() {
  using pattern::any;
  using pattern::op;
  static const std::vector<pattern::Rewrite> rows = {
      {.name = "move_pad_behind_requantize",
       .pattern = op("qnn.requantize", {op("nn.pad", {any().dtypes({ir::kInt8, ir::kUint8}).as("data"),
                                                      pattern::constant().as("pad_value")})
                                            .attr("pad_mode", std::string("constant"))
                                            .as("pad")
                                            .one_use(),
                                        scalar_constant(), scalar_constant().as("input_zero_point"),
                                        scalar_constant(), scalar_constant()}),
       .build = pad_afterwards}};
  return rows;
}

std::unique_ptr<ir::Function> run_move_pad(const ir::Module&, const ir::Function& pre, PassContext& context) {
  return run_rewrites(move_pad_rewrites(), pre, context);
}

}  // namespace qplan::passes
