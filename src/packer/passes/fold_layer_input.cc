// What a layer has to know of its input enters the layer: padding in front of it, and the input's zero point.
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::passes {

// nn.pad in front of a qnn.conv2d becomes part of the convolution's padding: only if it pads height and width
// alone, with the value that the convolution pads with (its input zero point, or pad_value), and nothing else
// reads it.

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

// Gives convolutions and fully connected layers the input zero point z' that the target wants (PassContext)
// and corrects the bias:
//   sum (x - zx) * (w - zw) = sum (x - z') * (w - zw) - (zx - z') * sum (w - zw)
// Padded positions go on holding zx: their sum over the whole window is what the correction assumes, so
// pad_value keeps the old zero point. Sums are modulo 2^32, as in the accumulator. Weights must be constant.

namespace {

int32_t wanted_zero_point(ActivationZeroPoint wanted, ir::DType dtype) {
  const auto least = static_cast<int32_t>(dtype.min());
  switch (wanted) {
    case ActivationZeroPoint::kDtypeMinimum:
      return least;
    case ActivationZeroPoint::kDtypeMiddle:
      return dtype.bits == 8 ? least + 128 : 0;
    default:
      return 0;
  }
}

// Per output channel: factor * sum (w - zw), modulo 2^32. outer * channels * inner is the shape of the
// weights around the axis of the output channels.
std::vector<int32_t> scaled_weight_sums(const ir::Constant& weights, const ir::Constant& zero_points,
                                        size_t axis, int32_t factor) {
  const ir::Shape& shape = weights.type().shape;
  size_t outer = 1, inner = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != axis) (i < axis ? outer : inner) *= static_cast<size_t>(shape[i]);
  }
  const auto channels = static_cast<size_t>(shape[axis]);
  const bool is_signed = weights.type().dtype == ir::kInt8;
  std::vector<int32_t> sums(channels);
  for (size_t c = 0; c < channels; ++c) {
    int64_t sum = 0;  // at most 2^40 weights
    for (size_t o = 0; o < outer; ++o) {
      const uint8_t* row = weights.bytes().data() + (o * channels + c) * inner;
      for (size_t i = 0; i < inner; ++i) sum += is_signed ? static_cast<int8_t>(row[i]) : row[i];
    }
    const auto values = zero_points.as<int32_t>();
    sum -= int64_t{values[values.size() == 1 ? 0 : c]} * static_cast<int64_t>(outer * inner);
    sums[c] = static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(sum)) *
                                   static_cast<uint32_t>(factor));
  }
  return sums;
}

PostValue bias_value(Rebuild& r, const std::vector<int32_t>& bias) {
  return r.post().constant_value(ir::make_constant(ir::kInt32, {static_cast<int64_t>(bias.size())}, bias));
}

bool rewrite_layer(Rebuild& r, PreNode layer, PassContext& context) {
  const auto& pre = r.pre();
  const ir::ConstantRef weights = pre.constant(layer.operand(1));
  const int32_t old_zero_point = pre.constant(layer.operand(2))->as<int32_t>()[0];
  const int32_t zero_point =
      wanted_zero_point(context.activation_zero_point, pre.type(layer.operand(0)).dtype);
  if (weights == nullptr || old_zero_point == zero_point) return false;
  if (pre.type(layer.operand(0)).dtype.bits != 8) return false;  // int16 is symmetric

  ir::Attrs attrs = layer.attrs();
  const size_t out_axis = op::weight_output_axis(layer.node());
  const auto channel_axis =
      static_cast<int64_t>(op::result_channel_axis(layer.node(), pre.type(layer.result()).shape.size()));
  const auto window = op::window_of(pre.function(), layer.node());
  if (window && window->is_padded() && !attrs.has("pad_value")) {
    attrs.set("pad_value", int64_t{old_zero_point});
  }
  const std::vector<int32_t> correction =
      scaled_weight_sums(*weights, *pre.constant(layer.operand(3)), out_axis, zero_point - old_zero_point);
  std::vector<PostValue> operands = r.operands(layer);
  operands[2] = r.post().scalar(zero_point);
  const PostValue sum = r.post().call(layer.op()->name, operands, std::move(attrs), layer.name());
  r.replace(layer.result(), r.post().call("nn.bias_add", {sum, bias_value(r, correction)},
                                          {{"axis", channel_axis}}, layer.name()));
  context.fired("fold_zero_point", layer.name(),
                "input zero point " + std::to_string(old_zero_point) + " is now " +
                    std::to_string(zero_point) + ", the rest is bias");
  return true;
}

// Merges the layer's own bias, which comes after the correction: one addition with the sum of both.
bool merge_bias(Rebuild& r, PreNode node, PassContext& context) {
  const auto inner = r.post().producer(r[node.operand(0)], "nn.bias_add");
  const ir::ConstantRef second = r.pre().constant(node.operand(1));
  if (!inner || second == nullptr || second->type().dtype != ir::kInt32) return false;
  const ir::ConstantRef first = r.post().constant(inner->operand(1));
  const size_t rank = r.pre().type(node.result()).shape.size();
  const int64_t axis = op::normalized_axis(op::attr_int(node.node(), "axis"), rank);
  if (first == nullptr || axis != op::normalized_axis(op::attr_int(inner->node(), "axis"), rank))
    return false;
  std::vector<int32_t> sum(first->as<int32_t>().begin(), first->as<int32_t>().end());
  for (size_t i = 0; i < sum.size(); ++i) {
    sum[i] =
        static_cast<int32_t>(static_cast<uint32_t>(sum[i]) + static_cast<uint32_t>(second->as<int32_t>()[i]));
  }
  r.replace(node.result(),
            r.post().call("nn.bias_add", {inner->operand(0), bias_value(r, sum)}, node.attrs(), node.name()));
  context.fired("fold_zero_point", node.name(), "merged with the bias before it");
  return true;
}

}  // namespace

std::unique_ptr<ir::Function> run_fold_zero_point(const ir::Module&, const ir::Function& pre,
                                                  PassContext& context) {
  if (context.activation_zero_point == ActivationZeroPoint::kKeep) return nullptr;
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) {
    if (op::is_quantized_product(node.op())) return rewrite_layer(r, node, context);
    return node.is("nn.bias_add") && merge_bias(r, node, context);
  });
}

// uint8 weights w with zero point z become int8 weights w - 128 with zero point z - 128: w - z stays.
namespace {

constexpr int32_t kOffset = -128;

}  // namespace

std::unique_ptr<ir::Function> run_convert_uint8_weights(const ir::Module&, const ir::Function& pre,
                                                        PassContext& context) {
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) {
    if (!op::is_quantized_product(node.op())) return false;
    const size_t weight = *op::operand_with(*node.op(), op::OperandRole::kWeight);
    const size_t zero_point = *op::zero_point_of(*node.op(), weight);
    const ir::ConstantRef weights = r.pre().constant(node.operand(weight));
    if (weights == nullptr || weights->type().dtype != ir::kUint8) return false;
    std::vector<pattern::PostValue> operands = r.operands(node);
    operands[weight] =
        r.post().constant_value(other_signedness(*weights), r.pre().name(node.operand(weight)));
    operands[zero_point] =
        r.post().constant_value(moved_zero_points(*r.pre().constant(node.operand(zero_point)), kOffset));
    r.replace(node.result(), r.post().call(node.op()->name, operands, node.attrs(), node.name()));
    context.fired("convert_uint8_weights", node.name(), "weights are int8");
    return true;
  });
}

}  // namespace qplan::passes
