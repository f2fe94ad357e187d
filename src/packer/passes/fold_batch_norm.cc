// Factors and addends per channel after a layer fold into its weights' scales and its bias: batch
// normalisation, and the multiplications, divisions and additions that exporters write beside it (a network
// trained with folded batch normalisation has Conv -> Div -> BatchNormalization: the scale that the weights
// were multiplied with is taken away and put back). All of the chain at once, in double, so that the new
// scales and biases are rounded once. Lowering: float arithmetic in another order.
//
// The weights keep their integers: f * (s * (q - z)) = (f * s) * (q - z). A negative factor turns the
// integers around the zero point; a factor of 0 makes them the zero point.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
namespace {

using Values = std::vector<double>;

// factor * x + addend, per channel.
struct Affine {
  Values factor, addend;

  explicit Affine(size_t channels) : factor(channels, 1.0), addend(channels, 0.0) {}
  // What is applied before this one.
  void precede(size_t o, double f, double a) {
    addend[o] += factor[o] * a;
    factor[o] *= f;
  }
};

// The layer and what stands between it and the quantize, from the top down.
struct Chain {
  std::vector<PreNode> nodes;
  std::optional<PreNode> layer;  // nn.conv2d or nn.dense
  std::optional<PreNode> clip;   // above all of them
  bool shared = false;           // a value on the way is read by others too: the walk ended there
  bool multiplies = false;
};

bool is_factor(PreNode node) { return node.is("multiply") || node.is("divide") || node.is("nn.batch_norm"); }
bool is_addend(PreNode node) { return node.is("add") || node.is("subtract") || node.is("nn.bias_add"); }

bool is_constant(const Pre& pre, PreValue value) {
  if (const auto dequantize = pre.producer(value, "qnn.dequantize")) value = dequantize->operand(0);
  return pre.constant(value) != nullptr;
}

// Which operand leads on to the layer: the first, or the second of a commutative operator whose first is
// constant.
size_t data_operand(const Pre& pre, PreNode node) {
  return (node.is("add") || node.is("multiply")) && is_constant(pre, node.operand(0)) ? 1 : 0;
}

// Linear over all quantizes: what others read ends the walk, so that no node is in two chains.
Chain find_chain(const Pre& pre, PreValue value) {
  Chain chain;
  const auto step = [&](PreValue from) -> std::optional<PreNode> {
    chain.shared = pre.num_uses(from) != 1;
    return chain.shared ? std::nullopt : pre.producer(from);
  };
  auto node = step(value);
  if (node && node->is("clip")) {
    chain.clip = node;
    node = step(node->operand(0));
  }
  while (node && (is_factor(*node) || is_addend(*node))) {
    chain.nodes.push_back(*node);
    chain.multiplies = chain.multiplies || is_factor(*node);
    node = step(node->operand(data_operand(pre, *node)));
  }
  if (node && op::is_float_product(node->op())) chain.layer = node;
  return chain;
}

// One value per channel of a constant, quantised or not, that has one or one per channel; nullopt: another
// shape.
std::optional<Values> channel_values(const Pre& pre, PreValue value, const ir::Shape& data, size_t axis) {
  const auto channels = static_cast<size_t>(data[axis]);
  const ir::TensorType& type = pre.type(value);
  if (type.num_elements() != 1 && !is_per_channel(type.shape, data, axis)) return std::nullopt;
  const auto dequantize = pre.producer(value, "qnn.dequantize");
  const ir::ConstantRef constant = pre.constant(dequantize ? dequantize->operand(0) : value);
  if (constant == nullptr) return std::nullopt;
  Values values(channels);
  for (size_t o = 0; o < channels; ++o) {
    if (!dequantize) {
      if (type.dtype != ir::kFloat32) return std::nullopt;
      values[o] = static_cast<double>(entry<float>(*constant, o));
      continue;
    }
    const int64_t q = integer_entry(*constant, o);
    const int64_t zero_point = entry<int32_t>(*pre.constant(dequantize->operand(2)), o);
    values[o] = static_cast<double>(q - zero_point) *
                static_cast<double>(entry<float>(*pre.constant(dequantize->operand(1)), o));
  }
  return values;
}

// Puts the node under what was collected so far; false with the reason.
bool collect(const Pre& pre, PreNode node, size_t axis, Affine* affine, std::string* why) {
  const ir::Shape& shape = pre.type(node.result()).shape;
  const auto channels = static_cast<size_t>(shape[axis]);
  const bool vector = op::operand_with(*node.op(), op::OperandRole::kPerChannel).has_value();
  if (vector) {
    const int64_t own = op::normalized_axis(op::attr_int(node.node(), "axis"), shape.size());
    if (static_cast<size_t>(own) != axis) {
      *why = cat("'", node.name(), "' is along axis ", own, ", the output channels are axis ", axis);
      return false;
    }
  }
  // Their parameters have one axis, the channels.
  const size_t data = data_operand(pre, node);
  std::array<Values, 4> values;
  size_t count = 0;
  for (size_t i = 0; i < node.num_operands(); ++i) {
    if (i == data) continue;
    const auto operand = vector ? channel_values(pre, node.operand(i), {shape[axis]}, 0)
                                : channel_values(pre, node.operand(i), shape, axis);
    if (!operand) {
      *why = cat("operand ", i, " of '", node.name(), "' (", pre.type(node.operand(i)),
                 ") is not a constant with one value, or one per output channel");
      return false;
    }
    values[count++] = *operand;
  }
  const double epsilon = node.is("nn.batch_norm") ? op::attr_float(node.node(), "epsilon") : 0.0;
  for (size_t o = 0; o < channels; ++o) {
    const double c = values[0][o];
    if (node.is("nn.batch_norm")) {  // gamma, beta, mean, variance
      const double factor = c / std::sqrt(values[3][o] + epsilon);
      affine->precede(o, factor, values[1][o] - values[2][o] * factor);
    } else if (is_factor(node)) {
      affine->precede(o, node.is("divide") ? 1.0 / c : c, 0.0);
    } else {
      affine->precede(o, 1.0, node.is("subtract") ? -c : c);
    }
    const auto addend = static_cast<float>(affine->addend[o]);
    if (std::isfinite(affine->factor[o]) && std::isfinite(addend)) continue;
    *why = cat("with '", node.name(), "' the factor or addend of channel ", o, " is no finite number");
    return false;
  }
  return true;
}

struct Weights {
  ir::ConstantRef data, scale;
};

// q -> z + (q - z) * sign; false: a result outside of the dtype.
template <typename T>
bool turn(const ir::Constant& weights, const ir::Constant& zero_points, size_t axis,
          const std::vector<int>& signs, std::vector<uint8_t>* bytes) {
  const ir::Shape& shape = weights.type().shape;
  size_t inner = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= static_cast<size_t>(shape[i]);
  const auto values = weights.as<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t o = i / inner % signs.size();
    const int32_t zero_point = entry<int32_t>(zero_points, o);
    const int32_t turned = zero_point + (int32_t{values[i]} - zero_point) * signs[o];
    if (turned < weights.type().dtype.min() || turned > weights.type().dtype.max()) return false;
    (*bytes)[i] = static_cast<uint8_t>(turned);
  }
  return true;
}

// The dequantised weights times the factors; nullopt with the reason.
std::optional<Weights> scaled(const Pre& pre, PreNode dequantize, size_t axis, const Values& factors,
                              std::string* why) {
  const ir::ConstantRef data = pre.constant(dequantize.operand(0));
  const ir::Constant& old_scale = *pre.constant(dequantize.operand(1));
  const ir::Constant& zero_point = *pre.constant(dequantize.operand(2));
  std::vector<float> scales;
  std::vector<int> signs;
  for (size_t o = 0; o < factors.size(); ++o) {
    const double scale = static_cast<double>(entry<float>(old_scale, o)) * factors[o];
    const auto rounded = static_cast<float>(std::abs(scale));
    if (!std::isfinite(rounded)) {
      *why = cat("the weights' scale of channel ", o, " would not be finite");
      return std::nullopt;
    }
    signs.push_back(rounded == 0 ? 0 : scale < 0 ? -1 : 1);
    scales.push_back(rounded == 0 ? entry<float>(old_scale, o) : rounded);
  }
  Weights weights{data, nullptr};
  if (std::ranges::any_of(signs, [](int sign) { return sign != 1; })) {
    std::vector<uint8_t> bytes(data->bytes().size());
    const bool fits = data->type().dtype == ir::kInt8 ? turn<int8_t>(*data, zero_point, axis, signs, &bytes)
                                                      : turn<uint8_t>(*data, zero_point, axis, signs, &bytes);
    if (!fits) {
      *why =
          "a factor is negative, and a weight of its channel has no counterpart on the other side of the "
          "zero point";
      return std::nullopt;
    }
    weights.data = std::make_shared<const ir::Constant>(data->type(), std::move(bytes));
  }
  // One scale stays one: dense layers with one are a case of their own (docs/numerics.md, "Scales").
  const bool one = old_scale.as<float>().size() == 1 &&
                   std::ranges::all_of(scales, [&](float s) { return s == scales[0]; });
  weights.scale = one ? ir::make_scalar(scales[0])
                      : ir::make_constant(ir::kFloat32, {static_cast<int64_t>(scales.size())}, scales);
  return weights;
}

// The output channels' axis in the weights.
bool has_quantized_weights(const Pre& pre, PreNode layer, std::string* why) {
  const auto dequantize = pre.producer(layer.operand(1), "qnn.dequantize");
  const ir::ConstantRef data = dequantize ? pre.constant(dequantize->operand(0)) : nullptr;
  if (data == nullptr || data->type().dtype.bits != 8) {
    *why = cat("the weights of '", layer.name(), "' are ", describe(pre, layer.operand(1)),
               ", expected qnn.dequantize of an 8-bit constant");
    return false;
  }
  const bool per_axis = pre.type(dequantize->operand(1)).num_elements() > 1 ||
                        pre.type(dequantize->operand(2)).num_elements() > 1;
  if (!per_axis) return true;
  const int64_t axis =
      op::normalized_axis(op::attr_int(dequantize->node(), "axis"), data->type().shape.size());
  if (static_cast<size_t>(axis) == op::weight_output_axis(layer.node())) return true;
  *why = cat("the weights of '", layer.name(), "' have a scale per index of axis ", axis, ", expected axis ",
             op::weight_output_axis(layer.node()));
  return false;
}

Result fold_affine(const RewriteContext& context, std::string* why) {
  const Pre& pre = context.pre();
  const Chain chain = find_chain(pre, context.matches["data"]);
  if (chain.shared) {
    *why = "a value between the layer and the quantize has other uses";
    return std::nullopt;
  }
  if (!chain.layer) {
    *why = "what is multiplied or added to is not the result of a convolution or dense layer";
    return std::nullopt;
  }
  if (!chain.multiplies && chain.nodes.size() == 1 && chain.nodes[0].is("nn.bias_add")) {
    *why = "the layer has a bias and nothing else";
    return std::nullopt;
  }
  const PreNode layer = *chain.layer;
  if (!has_quantized_weights(pre, layer, why)) return std::nullopt;
  const ir::Shape& shape = pre.type(layer.result()).shape;
  const size_t axis = op::result_channel_axis(layer.node(), shape.size());
  Affine affine(static_cast<size_t>(shape[axis]));
  for (const PreNode node : chain.nodes) {
    if (pre.type(node.result()).shape != shape) {
      *why = cat("'", node.name(), "' widens the shape of the layer");
      return std::nullopt;
    }
    if (!collect(pre, node, axis, &affine, why)) return std::nullopt;
  }
  const PreNode old_weights = *pre.producer(layer.operand(1), "qnn.dequantize");
  const auto weights = scaled(pre, old_weights, op::weight_output_axis(layer.node()), affine.factor, why);
  if (!weights) return std::nullopt;

  pattern::Post& post = context.post();
  const PostValue dequantized =
      post.call("qnn.dequantize",
                {post.constant_value(weights->data, pre.name(old_weights.operand(0))),
                 post.constant_value(weights->scale), context.r[old_weights.operand(2)]},
                {{"axis", static_cast<int64_t>(op::weight_output_axis(layer.node()))},
                 {"contract", op::attr_string(old_weights.node(), "contract")}},
                old_weights.name());
  PostValue value =
      post.call(layer.op()->name, {context.r[layer.operand(0)], dequantized}, layer.attrs(), layer.name());
  std::vector<float> bias;
  for (const double addend : affine.addend) bias.push_back(static_cast<float>(addend));
  value = post.call("nn.bias_add",
                    {value, post.constant_value(ir::make_constant(ir::kFloat32, {shape[axis]}, bias))},
                    {{"axis", static_cast<int64_t>(axis)}}, chain.nodes.front().name());
  if (chain.clip) value = post.call("clip", {value}, chain.clip->attrs(), chain.clip->name());
  *why = cat(chain.nodes.size(), " factors and addends now in the weights' scales and the bias of '",
             layer.name(), "', contract ", op::attr_string(context.root.node(), "contract"));
  return post.call("qnn.quantize",
                   {value, context.r[context.root.operand(1)], context.r[context.root.operand(2)]},
                   context.root.attrs(), context.root.name());
}

// Turned weights are new ones.
int64_t fold_cost(const RewriteContext& context) {
  const Pre& pre = context.pre();
  const Chain chain = find_chain(pre, context.matches["data"]);
  if (!chain.layer) return 0;
  const PreValue weights = chain.layer->operand(1);
  const auto dequantize = pre.producer(weights, "qnn.dequantize");
  const bool shared = pre.num_uses(weights) > 1 || (dequantize && pre.num_uses(dequantize->operand(0)) > 1);
  return shared ? pre.type(weights).num_elements() : 0;
}

}  // namespace

std::span<const Rewrite> fold_batch_norm_rewrites() {
  static const std::array<Rewrite, 1> kRewrites = [] {
    const pattern::Pattern last =
        pattern::one_of({"nn.batch_norm", "multiply", "divide", "add", "subtract", "nn.bias_add"});
    return std::array<Rewrite, 1>{Rewrite{
        "fold_batch_norm", 0, quantized((last | pattern::op("clip", {last})).as("data")), fold_affine}};
  }();
  return kRewrites;
}

std::unique_ptr<ir::Function> run_fold_batch_norm(const ir::Module&, const ir::Function& pre,
                                                  PassContext& context) {
  return context.keep_float ? nullptr : run_rewrites(fold_batch_norm_rewrites(), pre, context, fold_cost);
}

}  // namespace qplan::passes
