// quantize(bias_add(conv2d(dequantize(x), dequantize(w)), b)) becomes qnn.conv2d -> nn.bias_add ->
// qnn.requantize, and the same with dense. The integers are the source's own; what the rewrite decides is the
// contract by which the accumulator is scaled (the quantize's), and the integers of a bias that is a float or
// has another scale than the accumulator.
#include <cmath>

#include "src/packer/ir/cat.h"
#include "src/packer/op/properties.h"
#include "src/packer/op/shape.h"
#include "src/packer/passes/passes.h"
#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
namespace {

using pattern::constant;
using pattern::op;
using pattern::Pattern;
using pattern::PostValue;
using pattern::Pre;
using pattern::PreNode;
using pattern::PreValue;
using pattern::Rewrite;
using pattern::RewriteContext;

using Result = std::optional<PostValue>;

struct FloatLayer {
  PreNode quantize, product, weight;  // weight: its qnn.dequantize
  size_t channels, axis;              // of the result
  float input_scale;
  ir::ConstantRef weight_scale;

  double accumulator_scale(size_t o) const {
    return static_cast<double>(input_scale) * static_cast<double>(entry<float>(*weight_scale, o));
  }
};

// What must hold beside the pattern; false with the reason.
bool check_weight(const Pre& pre, const FloatLayer& layer, std::string* why) {
  const bool per_axis = pre.type(layer.weight.operand(1)).num_elements() > 1 ||
                        pre.type(layer.weight.operand(2)).num_elements() > 1;
  const ir::TensorType& type = pre.type(layer.weight.operand(0));
  const size_t outputs = op::weight_output_axis(layer.product.node());
  const int64_t axis =
      per_axis ? op::normalized_axis(op::attr_int(layer.weight.node(), "axis"), type.shape.size()) : 0;
  if (per_axis && static_cast<size_t>(axis) != outputs) {
    *why = cat("the weights ", type, " have a scale per index of axis ", axis,
               ", expected one per output channel (axis ", outputs, ")");
    return false;
  }
  return true;
}

// (float)(sx * sw), one or one per channel; null with the reason when float32 does not hold it.
ir::ConstantRef float_product_scale(const FloatLayer& layer, std::string* why) {
  std::vector<float> scales;
  for (const float weight_scale : layer.weight_scale->as<float>()) {
    scales.push_back(layer.input_scale * weight_scale);
    if (scales.back() > 0 && std::isfinite(scales.back())) continue;
    *why = "the product of input and weight scale is not a positive finite float32";
    return nullptr;
  }
  if (scales.size() == 1) return ir::make_scalar(scales[0]);
  return ir::make_constant(ir::kFloat32, layer.weight_scale->type().shape, scales);
}

// Bias in units of the accumulator, and in what words it came about.
struct Bias {
  std::vector<int32_t> values;
  std::string text;
};

Bias rounded(const FloatLayer& layer, const std::function<double(size_t)>& real) {
  Bias bias;
  uint64_t saturated = 0;
  for (size_t o = 0; o < layer.channels; ++o) {
    const Quantized quantized = round_to_int32(real(o) / layer.accumulator_scale(o));
    bias.values.push_back(quantized.value);
    saturated += quantized.saturated ? 1 : 0;
  }
  bias.text = cat(count_text(layer.channels, "value"), " rounded half to even, ", saturated, " saturated");
  return bias;
}

Bias integer_bias(const Pre& pre, const FloatLayer& layer, PreNode dequantize) {
  const ir::Constant& data = *pre.constant(dequantize.operand(0));
  const ir::Constant& scale = *pre.constant(dequantize.operand(1));
  const ir::Constant& zero_point = *pre.constant(dequantize.operand(2));
  const auto steps = [&](size_t o) { return int64_t{data.as<int32_t>()[o]} - entry<int32_t>(zero_point, o); };
  bool same = true;
  for (size_t o = 0; o < layer.channels; ++o) {
    const auto given = static_cast<double>(entry<float>(scale, o));
    same = same && op::means_product(given, layer.accumulator_scale(o)) && steps(o) >= INT32_MIN &&
           steps(o) <= INT32_MAX;
  }
  if (!same) {
    Bias bias = rounded(layer, [&](size_t o) {
      return static_cast<double>(steps(o)) * static_cast<double>(entry<float>(scale, o));
    });
    bias.text = "other scale than input times weights, " + bias.text;
    return bias;
  }
  Bias bias{{}, "as it is"};
  for (size_t o = 0; o < layer.channels; ++o) bias.values.push_back(static_cast<int32_t>(steps(o)));
  return bias;
}

// The nn.bias_add after the accumulator; nullopt with the reason.
Result add_bias(const RewriteContext& context, const FloatLayer& layer, PostValue accumulator,
                std::string* why) {
  const Pre& pre = context.pre();
  const PreNode bias_add = context.node("bias_add");
  const int64_t axis =
      op::normalized_axis(op::attr_int(bias_add.node(), "axis"), pre.type(bias_add.result()).shape.size());
  if (static_cast<size_t>(axis) != layer.axis) {
    *why = cat("its bias is along axis ", axis, ", the output channels are axis ", layer.axis);
    return std::nullopt;
  }
  Bias bias;
  PreValue source = context.matches["bias"];
  if (const auto dequantize = pre.producer(source, "qnn.dequantize")) {
    bias = integer_bias(pre, layer, *dequantize);
    source = dequantize->operand(0);
  } else {
    const auto values = pre.constant(source)->as<float>();
    bias = rounded(layer, [&](size_t o) { return static_cast<double>(values[o]); });
  }
  *why = cat(*why, "; bias ", bias.text);
  const PostValue constant = context.post().constant_value(
      ir::make_constant(ir::kInt32, {static_cast<int64_t>(layer.channels)}, bias.values), pre.name(source));
  return context.post().call("nn.bias_add", {accumulator, constant}, {{"axis", axis}}, bias_add.name());
}

ir::Attrs requantize_attrs(const Pre& pre, const FloatLayer& layer) {
  const std::string& contract = op::attr_string(layer.quantize.node(), "contract");
  ir::Attrs attrs = {{"out_dtype", ir::to_string(pre.type(layer.quantize.result()).dtype)},
                     {"contract", contract}};
  if (layer.weight_scale->as<float>().size() > 1) attrs.set("axis", static_cast<int64_t>(layer.axis));
  return attrs;
}

Result lower_layer(const RewriteContext& context, std::string* why) {
  const Pre& pre = context.pre();
  const PreNode product = context.node("product"), input = context.node("dq_x"),
                weight = context.node("dq_w");
  const ir::Shape& shape = pre.type(product.result()).shape;
  const size_t axis = op::result_channel_axis(product.node(), shape.size());
  const FloatLayer layer{context.root,
                         product,
                         weight,
                         static_cast<size_t>(shape[axis]),
                         axis,
                         scale_of(pre, input.operand(1)),
                         pre.constant(weight.operand(1))};
  if (!check_weight(pre, layer, why)) return std::nullopt;
  const ir::ConstantRef accumulator_scale = float_product_scale(layer, why);
  if (accumulator_scale == nullptr) return std::nullopt;

  *why = cat("contract ", op::attr_string(context.root.node(), "contract"));
  pattern::Post& post = context.post();
  PostValue value =
      post.call(product.op()->quantized_form,
                {context["x"], context["w"], context.r[input.operand(2)], context.r[weight.operand(2)],
                 context.r[input.operand(1)], context.r[weight.operand(1)]},
                product.attrs(), product.name());
  if (context.has("bias")) {
    const Result biased = add_bias(context, layer, value, why);
    if (!biased) return std::nullopt;
    value = *biased;
  }
  return post.call("qnn.requantize",
                   {value, post.constant_value(accumulator_scale), post.scalar(int32_t{0}),
                    context.r[context.root.operand(1)], context.r[context.root.operand(2)]},
                   requantize_attrs(pre, layer), context.root.name());
}

Rewrite layer_row(const op::OpDef& product) {
  const Pattern weight =
      op("qnn.dequantize", {constant().dtypes({ir::kInt8, ir::kUint8}).as("w"), constant(), constant()})
          .as("dq_w");
  const Pattern float_bias = constant().dtype(ir::kFloat32);
  const Pattern int_bias = op("qnn.dequantize", {constant().dtype(ir::kInt32), constant(), constant()});
  const Pattern layer = op(product.name, {dequantized("x"), weight}).one_use().as("product");
  const Pattern biased =
      op("nn.bias_add", {layer, (float_bias | int_bias).as("bias")}).one_use().as("bias_add");
  return {cat("lower_", op::plain_name(product)), 0, quantized(biased | layer), lower_layer};
}

}  // namespace

std::vector<Rewrite> layer_rewrites() {
  std::vector<Rewrite> rows;
  for (const op::OpDef* op : op::all_ops()) {
    if (op::is_product(op) && !op->quantized_form.empty()) rows.push_back(layer_row(*op));
  }
  return rows;
}

}  // namespace qplan::passes
