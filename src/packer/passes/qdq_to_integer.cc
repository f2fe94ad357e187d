// dequantize -> float operators -> quantize becomes operators on integers (pass.h lists the rows,
// qdq_to_integer_movement.cc has those that move). Lowering: the contract in which a float operator is meant
// is that of the quantize after it.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/op/requantize_bytes.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
namespace {

std::vector<Rewrite> all_rows() {
  std::vector<Rewrite> rows;
  for (auto make : {movement_rewrites, layer_rewrites, elementwise_rewrites}) {
    for (Rewrite& row : make()) rows.push_back(std::move(row));
  }
  return rows;
}

// As sink_dequantize, for the one movement with several results, which no row can replace.
std::unique_ptr<ir::Function> sink_below_split(const ir::Function& pre, PassContext& context) {
  constexpr const char* kName = "sink_dequantize";
  if (context.skipped(kName)) return nullptr;
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) {
    if (!node.is("split")) return false;
    const auto dequantize = r.post().producer(r[node.operand(0)], "qnn.dequantize");
    if (!dequantize || !r.post().type(dequantize->operand(1)).shape.empty() ||
        !r.post().type(dequantize->operand(2)).shape.empty()) {
      return false;
    }
    const auto parts = r.post().call_all("split", {dequantize->operand(0)}, node.attrs(), node.name());
    for (size_t i = 0; i < parts.size(); ++i) {
      r.replace(node.result(i),
                r.post().call("qnn.dequantize", {parts[i], dequantize->operand(1), dequantize->operand(2)},
                              dequantize->attrs(), dequantize->name()));
    }
    context.fired(kName, node.name(), "exact: the dequantisation comes after it");
    return true;
  });
}

}  // namespace

std::span<const Rewrite> qdq_to_integer_rewrites() {
  static const std::vector<Rewrite> kRewrites = all_rows();
  return kRewrites;
}

std::unique_ptr<ir::Function> run_qdq_to_integer(const ir::Module&, const ir::Function& pre,
                                                 PassContext& context) {
  if (context.keep_float) return nullptr;
  std::unique_ptr<ir::Function> split = sink_below_split(pre, context);
  std::unique_ptr<ir::Function> rest = run_rewrites(qdq_to_integer_rewrites(), split ? *split : pre, context);
  return rest != nullptr ? std::move(rest) : std::move(split);
}

// quantize(f(dequantize(x), ...)) becomes qnn.f, for the operators with an OpDef::quantized_form: sums,
// differences and products, pools and means, softmax and sigmoid; without f it is a requantisation, or
// nothing. The contract is the quantize's.
namespace {

const std::string& contract_of(const RewriteContext& context) {
  return op::attr_string(context.root.node(), "contract");
}

// 8-bit data with its scale and zero point, as operands of a quantised operator.
struct QuantizedOperand {
  PostValue data, scale, zero_point;
};

// The dequantised operand in the dtype of the result: the operators want one dtype. int8 and uint8 stand for
// the same reals when the zero point moves along, so that this changes no value.
QuantizedOperand operand_of(const RewriteContext& context, PreNode dequantize) {
  pattern::Post& post = context.post();
  const ir::DType from = context.pre().type(dequantize.operand(0)).dtype;
  const ir::DType to = context.pre().type(context.root.result()).dtype;
  QuantizedOperand operand{context.r[dequantize.operand(0)], context.r[dequantize.operand(1)],
                           context.r[dequantize.operand(2)]};
  if (from == to) return operand;
  const int32_t zero_point = zero_point_of(context.pre(), dequantize.operand(2));
  const PostValue moved = post.scalar(zero_point + static_cast<int32_t>(to.min() - from.min()));
  operand.data =
      post.call("qnn.requantize", {operand.data, operand.scale, operand.zero_point, operand.scale, moved},
                {{"out_dtype", ir::to_string(to)}, {"contract", contract_of(context)}}, dequantize.name());
  operand.zero_point = moved;
  return operand;
}

QuantizedOperand result_of(const RewriteContext& context) {
  return {{}, context.r[context.root.operand(1)], context.r[context.root.operand(2)]};
}

// The 8-bit operator takes the data, then scale and zero point of each input and of the output; its
// attributes are the float operator's and the contract.
Rewrite unary_row(const std::string& name, const op::OpDef& op) {
  const auto build = [quantized_op = op.quantized_form](const RewriteContext& context,
                                                        std::string* why) -> Result {
    const PreNode node = context.node("node");
    const QuantizedOperand x = operand_of(context, context.node("dq_x")), y = result_of(context);
    ir::Attrs attrs = node.attrs();
    attrs.set("contract", contract_of(context));
    *why = cat("contract ", contract_of(context));
    return context.post().call(quantized_op, {x.data, x.scale, x.zero_point, y.scale, y.zero_point},
                               std::move(attrs), node.name());
  };
  return {name, 0, quantized(pattern::op(op.name, {dequantized("x")}).one_use().as("node")), build};
}

Rewrite binary_row(const std::string& name, const op::OpDef& op) {
  const auto build = [quantized_op = op.quantized_form](const RewriteContext& context,
                                                        std::string* why) -> Result {
    const PreNode node = context.node("node");
    const QuantizedOperand a = operand_of(context, context.node("dq_a")),
                           b = operand_of(context, context.node("dq_b"));
    const QuantizedOperand y = result_of(context);
    *why = cat("contract ", contract_of(context));
    ir::Attrs attrs = node.attrs();
    attrs.set("contract", contract_of(context));
    return context.post().call(
        quantized_op, {a.data, b.data, a.scale, a.zero_point, b.scale, b.zero_point, y.scale, y.zero_point},
        std::move(attrs), node.name());
  };
  return {name, 0, quantized(pattern::op(op.name, {dequantized("a"), dequantized("b")}).one_use().as("node")),
          build};
}

// TFLite's sigmoid and softmax have one output scale, whatever the real one. With another a sigmoid is a
// table (fuse_unary_chain), and a softmax stays what it is.
Rewrite row_of_scale_1_256(const std::string& name, const op::OpDef& op) {
  Rewrite row = unary_row(name, op);
  const auto build = [any_scale = row.build, kind = std::string(op::plain_name(op))](
                         const RewriteContext& context, std::string* why) -> Result {
    const float scale = scale_of(context.pre(), context.root.operand(1));
    const int32_t zero_point = zero_point_of(context.pre(), context.root.operand(2));
    const ir::DType dtype = context.pre().type(context.root.result()).dtype;
    if (contract_of(context) != "f32e" && (scale != 1.0f / 256.0f || zero_point != dtype.min())) {
      *why = cat("contract ", contract_of(context), " has a ", kind,
                 " with output scale 1/256 and zero point ", dtype.min(), " only");
      return std::nullopt;
    }
    return any_scale(context, why);
  };
  row.build = build;
  return row;
}

// A qnn.quantize under tfl2 that names that contract's own rule: TFLite's importer says so of QUANTIZE, whose
// source computes the operators before it in float32.
bool means_float(const RewriteContext& context) {
  return contract_of(context) == "tfl2" && op::attr_string(context.root.node(), "rule") == "div_away";
}

Result lower_requantize(const RewriteContext& context, std::string* why) {
  const PreNode input = context.node("dq_x");
  const ir::TensorType& from = context.pre().type(input.operand(0));
  const ir::TensorType& to = context.pre().type(context.root.result());
  const QuantizedOperand y = result_of(context);
  const PostValue x = context["x"], scale = context.r[input.operand(1)],
                  zero_point = context.r[input.operand(2)];
  if (from == to && scale == y.scale && zero_point == y.zero_point) {
    *why = "exact: quantised as it was before, both dropped";
    return x;
  }
  ir::Attrs attrs = {{"out_dtype", ir::to_string(to.dtype)}, {"contract", contract_of(context)}};
  if (means_float(context)) {
    const auto quantization = [&](ir::DType dtype, PreNode node) {
      return op::ByteQuantization{dtype, scale_of(context.pre(), node.operand(1)),
                                  zero_point_of(context.pre(), node.operand(2))};
    };
    const op::ByteQuantization before = quantization(from.dtype, input),
                               after = quantization(to.dtype, context.root);
    const op::ByteTable wanted = op::requantized_in_float(before, after);
    const bool is_tfl2 = op::tfl2_requantizes_to(wanted, before, after);
    if (!is_tfl2) attrs.set("multiplier", std::string("none"));
    *why = cat("exact: the bytes of the float operators, ", is_tfl2 ? "which tfl2 gives" : "by a table");
  } else {
    *why = cat("contract ", contract_of(context));
  }
  return context.post().call("qnn.requantize", {x, scale, zero_point, y.scale, y.zero_point},
                             std::move(attrs), context.root.name());
}

}  // namespace

std::vector<Rewrite> elementwise_rewrites() {
  std::vector<Rewrite> rows = {{"lower_requantize", 0, quantized(dequantized("x")), lower_requantize}};
  for (const op::OpDef* op : op::all_ops()) {
    if (op->quantized_form.empty() || op::is_product(op)) continue;
    const std::string name = "lower_" + std::string(op::plain_name(*op));
    const bool binary = op::num_data_operands(*op) == 2;
    const bool has_one_scale = op->name == "sigmoid" || op->name == "nn.softmax";
    rows.push_back(has_one_scale ? row_of_scale_1_256(name, *op)
                   : binary      ? binary_row(name, *op)
                                 : unary_row(name, *op));
  }
  return rows;
}

// quantize(bias_add(conv2d(dequantize(x), dequantize(w)), b)) becomes qnn.conv2d -> nn.bias_add ->
// qnn.requantize, and the same with dense. The integers are the source's own; what the rewrite decides is the
// contract by which the accumulator is scaled (the quantize's), and the integers of a bias that is a float or
// has another scale than the accumulator. A layer whose accumulator int32 might not hold stays as it is.

namespace {

using pattern::constant;
using pattern::op;

struct FloatLayer {
  PreNode quantize, product, input, weight;  // the last two: their qnn.dequantize
  size_t channels, axis;                     // of the result
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
  const auto zero_points = pre.constant(layer.weight.operand(2))->as<int32_t>();
  if (std::ranges::count(zero_points, zero_points[0]) != std::ssize(zero_points)) {
    *why = cat("the weights ", type, " have different zero points per channel, expected the same for all");
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

// By channel, and in what words it came about.
struct Bias {
  std::vector<double> reals;
  std::vector<int32_t> steps;  // of the accumulator; empty: the reals are to be rounded
  std::string text;

  double in_steps(const FloatLayer& layer, size_t o) const {
    return steps.empty() ? std::nearbyint(reals[o] / layer.accumulator_scale(o))
                         : static_cast<double>(steps[o]);
  }
};

Bias dequantized_bias(const Pre& pre, const FloatLayer& layer, PreNode dequantize) {
  const ir::Constant& data = *pre.constant(dequantize.operand(0));
  const ir::Constant& scale = *pre.constant(dequantize.operand(1));
  const ir::Constant& zero_point = *pre.constant(dequantize.operand(2));
  Bias bias{{}, {}, "as it is"};
  bool same = true;
  for (size_t o = 0; o < layer.channels; ++o) {
    const int64_t steps = int64_t{data.as<int32_t>()[o]} - entry<int32_t>(zero_point, o);
    const auto given = static_cast<double>(entry<float>(scale, o));
    same = same && op::means_product(given, layer.accumulator_scale(o)) && steps >= INT32_MIN &&
           steps <= INT32_MAX;
    bias.reals.push_back(static_cast<double>(steps) * given);
    bias.steps.push_back(static_cast<int32_t>(steps));
  }
  if (same) return bias;
  bias.steps.clear();
  bias.text = cat("other scale than input times weights, ", count_text(layer.channels, "value"),
                  " rounded half to even");
  return bias;
}

// nullopt with the reason.
std::optional<Bias> read_bias(const RewriteContext& context, const FloatLayer& layer, std::string* why) {
  const Pre& pre = context.pre();
  const PreNode bias_add = context.node("bias_add");
  const int64_t axis =
      op::normalized_axis(op::attr_int(bias_add.node(), "axis"), pre.type(bias_add.result()).shape.size());
  if (static_cast<size_t>(axis) != layer.axis) {
    *why = cat("its bias is along axis ", axis, ", the output channels are axis ", layer.axis);
    return std::nullopt;
  }
  const PreValue source = context.matches["bias"];
  if (const auto dequantize = pre.producer(source, "qnn.dequantize")) {
    return dequantized_bias(pre, layer, *dequantize);
  }
  const auto values = pre.constant(source)->as<float>();
  return Bias{
      {values.begin(), values.end()}, {}, cat(count_text(layer.channels, "value"), " rounded half to even")};
}

// The smallest of the doubled scales with which the bias is at most 2^30 steps: only for weights that are 0
// with any scale. Not finite if no scale does.
float scale_for_bias(const FloatLayer& layer, float weight_scale, double bias) {
  constexpr double kMostSteps = 1 << 30;
  const auto steps = [&] {
    return std::abs(bias) / (static_cast<double>(layer.input_scale) * static_cast<double>(weight_scale));
  };
  while (std::isfinite(weight_scale) && steps() > kMostSteps) weight_scale *= 2.0f;
  return weight_scale;
}

// Sees to it that int32 holds bias and products of each channel for all inputs. Dead channels, whose weights
// are their zero point, get another weight scale where it takes one. False with the reason.
bool make_room(const Pre& pre, FloatLayer* layer, Bias* bias, std::string* why) {
  double largest = 0;
  for (size_t o = 0; o < layer->channels; ++o) {
    const double steps = std::abs(bias->in_steps(*layer, o));
    largest = steps <= largest ? largest : steps;  // NaN too
  }
  const LayerInput input{pre.type(layer->input.operand(0)).dtype,
                         zero_point_of(pre, layer->input.operand(2))};
  const std::vector<ProductSums> sums =
      product_sums(*pre.constant(layer->weight.operand(0)), *pre.constant(layer->weight.operand(2)),
                   op::weight_output_axis(layer->product.node()), input, largest);
  std::vector<float> scales;
  uint64_t changed = 0;
  for (size_t o = 0; o < layer->channels; ++o) {
    scales.push_back(entry<float>(*layer->weight_scale, o));
    const double steps = bias->in_steps(*layer, o);
    if (sums[o].fits_with(steps)) continue;
    if (sums[o].is_dead() && std::isfinite(bias->reals[o])) {
      scales[o] = scale_for_bias(*layer, scales[o], bias->reals[o]);
      ++changed;
      continue;
    }
    *why = cat("int32 does not hold the accumulator of channel ", o, ": its bias ", bias->reals[o], " is ",
               steps, " steps of input scale times weight scale, and its products add from ", sums[o].least,
               " to ", sums[o].most);
    return false;
  }
  if (changed == 0) return true;
  layer->weight_scale = scales.size() == 1
                            ? ir::make_scalar(scales[0])
                            : ir::make_constant(ir::kFloat32, {static_cast<int64_t>(scales.size())}, scales);
  bias->text += cat(", for which ", count_text(changed, "channel"), " without weights ",
                    changed == 1 ? "has" : "have", " another scale");
  return true;
}

// The nn.bias_add after the accumulator.
PostValue add_bias(const RewriteContext& context, const FloatLayer& layer, const Bias& bias,
                   PostValue accumulator) {
  const Pre& pre = context.pre();
  PreValue source = context.matches["bias"];
  if (const auto dequantize = pre.producer(source, "qnn.dequantize")) source = dequantize->operand(0);
  std::vector<int32_t> steps;
  for (size_t o = 0; o < layer.channels; ++o) {
    steps.push_back(static_cast<int32_t>(bias.in_steps(layer, o)));
  }
  const PostValue constant = context.post().constant_value(
      ir::make_constant(ir::kInt32, {static_cast<int64_t>(layer.channels)}, steps), pre.name(source));
  return context.post().call("nn.bias_add", {accumulator, constant},
                             {{"axis", static_cast<int64_t>(layer.axis)}}, context.node("bias_add").name());
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
  FloatLayer layer{context.root,
                   product,
                   input,
                   weight,
                   static_cast<size_t>(shape[axis]),
                   axis,
                   scale_of(pre, input.operand(1)),
                   pre.constant(weight.operand(1))};
  if (!check_weight(pre, layer, why) || float_product_scale(layer, why) == nullptr) return std::nullopt;
  std::optional<Bias> bias = Bias{std::vector<double>(layer.channels), {}, "0"};
  if (context.has("bias")) bias = read_bias(context, layer, why);
  if (!bias || !make_room(pre, &layer, &*bias, why)) return std::nullopt;
  const ir::ConstantRef accumulator_scale = float_product_scale(layer, why);
  if (accumulator_scale == nullptr) return std::nullopt;

  *why = cat("contract ", op::attr_string(context.root.node(), "contract"));
  pattern::Post& post = context.post();
  const bool same_scale = layer.weight_scale == pre.constant(weight.operand(1));
  const PostValue weight_scale =
      same_scale ? context.r[weight.operand(1)] : post.constant_value(layer.weight_scale);
  PostValue value = post.call(product.op()->quantized_form,
                              {context["x"], context["w"], context.r[input.operand(2)],
                               context.r[weight.operand(2)], context.r[input.operand(1)], weight_scale},
                              product.attrs(), product.name());
  if (context.has("bias")) {
    value = add_bias(context, layer, *bias, value);
    *why += "; bias " + bias->text;
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
