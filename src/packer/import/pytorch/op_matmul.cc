// Quantised convolutions and linear layers.
#include <cmath>
#include <limits>

#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/import/pytorch/weights.h"

namespace qplan::pt {
namespace {

// A quantised convolution or linear layer.
struct MatmulLayer {
  std::string_view product;  // conv2d or dense
  ir::Attrs attrs;           // its attributes
  Flow input;
  const Weights& weights;
  Ref bias;              // None: zeros
  int64_t channel_axis;  // of the result
  QuantParams output;
  bool relu;
};

// The accumulator's scale, the float32 product of the scales: one, or one per channel.
std::vector<float> accumulator_scales(const MatmulLayer& layer) {
  std::vector<float> scales;
  for (const float weight_scale : layer.weights.scales.scales) {
    scales.push_back(layer.input.quantization->scale * weight_scale);
    if (std::isfinite(scales.back()) && scales.back() > 0) continue;
    invalid("input scale " + to_text(layer.input.quantization->scale) + " times weight scale " +
            to_text(weight_scale) + " leaves the range of float32");
  }
  return scales;
}

std::vector<float> read_bias(OpContext& op, const MatmulLayer& layer) {
  const auto channels = static_cast<size_t>(layer.weights.channels);
  std::vector<float> bias(channels);
  if (op.values().get<None>(layer.bias) != nullptr) return bias;
  const Tensor* tensor = op.values().get<Tensor>(layer.bias);
  if (tensor == nullptr)
    invalid(cat("the bias is ", kind_name(op.values().at(layer.bias)), ", expected a tensor"));
  if (op.tensors().type(*tensor) != ScalarType::kFloat32) throw Unsupported{"a bias that is not float32"};
  const std::vector<double> values = op.tensors().read_numbers(*tensor, "a bias");
  if (values.size() != channels) {
    invalid(cat("the bias has ", values.size(), " values, expected one for each of ", channels, " channels"));
  }
  for (size_t i = 0; i < channels; ++i) {
    if (std::isnan(values[i])) invalid(cat("value ", i, " of the bias is not a number"));
    bias[i] = static_cast<float>(values[i]);
  }
  return bias;
}

// PyTorch keeps the bias in float32 and its engines bring it to the accumulator's scale when they run; here
// it becomes int32 then: rne(bias / scale), the quotient in float32. Empty where int32 might not hold a value
// with the products of the largest weights.
std::vector<int32_t> integer_bias(OpContext& op, const MatmulLayer& layer, const std::vector<float>& scales,
                                  const std::vector<float>& bias) {
  double products = 255.0 * 255.0;
  const ir::Shape& shape = op.shape(Flow{layer.weights.value});
  for (size_t i = 1; i < shape.size(); ++i) products *= static_cast<double>(shape[i]);
  std::vector<int32_t> steps;
  for (size_t i = 0; i < bias.size(); ++i) {
    const auto quotient = static_cast<double>(bias[i] / scales[scales.size() == 1 ? 0 : i]);
    if (!(std::abs(quotient) + products <= std::numeric_limits<int32_t>::max())) return {};
    steps.push_back(static_cast<int32_t>(round_half_even(quotient)));
  }
  if (op.values().get<None>(layer.bias) != nullptr) return steps;
  for (size_t i = 0; i < bias.size(); ++i) {
    const float quotient = bias[i] / scales[scales.size() == 1 ? 0 : i];
    op.biases().truncated += steps[i] != static_cast<int32_t>(quotient) ? 1 : 0;
  }
  op.biases().total += bias.size();
  return steps;
}

// One value for all, or one per index of the axis.
ir::ValueId scales_constant(OpContext& op, const std::vector<float>& scales, bool per_channel) {
  if (!per_channel) return op.scale(scales[0]);
  return op.constant(ir::make_constant(ir::kFloat32, {static_cast<int64_t>(scales.size())}, scales));
}

ir::ValueId zero_points_constant(OpContext& op, const std::vector<int32_t>& zero_points) {
  for (const int32_t zero_point : zero_points) {
    if (zero_point == zero_points[0]) continue;
    return op.constant(
        ir::make_constant(ir::kInt32, {static_cast<int64_t>(zero_points.size())}, zero_points));
  }
  return op.zero_point(zero_points[0]);
}

bool is_per_channel(const MatmulLayer& layer) { return layer.weights.scales.axis.has_value(); }

ir::ValueId integer_layer(OpContext& op, const MatmulLayer& layer, const std::vector<float>& scales,
                          const std::vector<int32_t>& bias) {
  const ir::ValueId accumulator = op.emit(
      cat("qnn.", layer.product),
      {layer.input.value, layer.weights.value, op.zero_point(layer.input.quantization->zero_point),
       zero_points_constant(op, layer.weights.scales.zero_points), op.scale(layer.input.quantization->scale),
       scales_constant(op, layer.weights.scales.scales, is_per_channel(layer))},
      layer.attrs);
  const ir::ValueId constant = op.constant(ir::make_constant(ir::kInt32, {layer.weights.channels}, bias));
  const ir::ValueId sum = op.emit("nn.bias_add", {accumulator, constant}, {{"axis", layer.channel_axis}});
  ir::Attrs attrs{{"out_dtype", ir::to_string(op.dtype(layer.input))}, {"contract", std::string("f32e")}};
  if (is_per_channel(layer)) attrs.set("axis", layer.channel_axis);
  return op.emit("qnn.requantize",
                 {sum, scales_constant(op, scales, is_per_channel(layer)), op.zero_point(0),
                  op.scale(layer.output.scale), op.zero_point(layer.output.zero_point)},
                 std::move(attrs));
}

// As PT2E writes it. The passes look at the weights themselves: they make integers of it where int32 holds
// what the weights and the bias can add up to, and leave it in floats otherwise.
ir::ValueId float_layer(OpContext& op, const MatmulLayer& layer, const std::vector<float>& bias) {
  const ir::ValueId input =
      op.emit_quantized("qnn.dequantize", {layer.input.value}, {*layer.input.quantization}, {});
  ir::Attrs weight_attrs{{"contract", std::string("f32e")}};
  if (is_per_channel(layer)) weight_attrs.set("axis", int64_t{0});
  const ir::ValueId weight =
      op.emit("qnn.dequantize",
              {layer.weights.value, scales_constant(op, layer.weights.scales.scales, is_per_channel(layer)),
               zero_points_constant(op, layer.weights.scales.zero_points)},
              std::move(weight_attrs));
  const ir::ValueId product = op.emit(cat("nn.", layer.product), {input, weight}, layer.attrs);
  const ir::ValueId constant = op.constant(ir::make_constant(ir::kFloat32, {layer.weights.channels}, bias));
  const ir::ValueId sum = op.emit("nn.bias_add", {product, constant}, {{"axis", layer.channel_axis}});
  ++op.biases().float_layers;
  return op.emit_quantized(
      "qnn.quantize", {sum}, {layer.output},
      {{"out_dtype", ir::to_string(op.dtype(layer.input))}, {"rule", std::string("mul_even")}});
}

// The layer and the clamp of its activation.
Ref emit_layer(OpContext& op, const MatmulLayer& layer) {
  const std::vector<float> scales = accumulator_scales(layer), bias = read_bias(op, layer);
  const std::vector<int32_t> steps = integer_bias(op, layer, scales, bias);
  ir::ValueId value = steps.empty() ? float_layer(op, layer, bias) : integer_layer(op, layer, scales, steps);
  if (layer.relu) value = emit_clamp(op, value, {.min = 0}, layer.output);
  return op.result(value, layer.output);
}

Ref conv2d(OpContext& op, bool relu) {
  const Flow input = op.quantized_flow(0);
  const ConvParameters parameters = conv_parameters(op, 1);
  const QuantParams output = op.quantization(2, 3, op.dtype(input));
  const Weights weights = read_weights(op, parameters.weight, 4);
  for (const int64_t padding : parameters.padding) {
    if (padding < 0) invalid(cat("padding ", padding, " is negative"));
  }
  const std::vector<int64_t>& p = parameters.padding;
  return emit_layer(op, {.product = "conv2d",
                         .attrs = {{"strides", parameters.stride},
                                   {"padding", ir::Ints{p[0], p[1], p[0], p[1]}},
                                   {"dilation", parameters.dilation},
                                   {"groups", parameters.groups},
                                   {"data_layout", std::string("NCHW")},
                                   {"kernel_layout", std::string("OIHW")}},
                         .input = input,
                         .weights = weights,
                         .bias = parameters.bias,
                         .channel_axis = 1,
                         .output = output,
                         .relu = relu});
}

Ref linear(OpContext& op, bool relu) {
  const Flow input = op.quantized_flow(0);
  const LinearParameters parameters = linear_parameters(op, 1);
  const QuantParams output = op.quantization(2, 3, op.dtype(input));
  const Weights weights = read_weights(op, parameters.weight, 2);
  return emit_layer(op, {.product = "dense",
                         .attrs = {},
                         .input = input,
                         .weights = weights,
                         .bias = parameters.bias,
                         .channel_axis = static_cast<int64_t>(op.shape(input).size()) - 1,
                         .output = output,
                         .relu = relu});
}

}  // namespace

Ref import_conv2d(OpContext& op) { return conv2d(op, false); }
Ref import_conv2d_relu(OpContext& op) { return conv2d(op, true); }
Ref import_linear(OpContext& op) { return linear(op, false); }
Ref import_linear_relu(OpContext& op) { return linear(op, true); }

Ref import_conv2d_prepack(OpContext& op) {
  return make_packed(op, "__torch__.torch.classes.quantized.Conv2dPackedParamsBase",
                     {{"weight", op.ref(0)},
                      {"bias", op.ref(1)},
                      {"stride", op.ref(2)},
                      {"padding", op.ref(3)},
                      {"dilation", op.ref(4)},
                      {"groups", op.ref(5)}});
}

Ref import_linear_prepack(OpContext& op) {
  return make_packed(op, "__torch__.torch.classes.quantized.LinearPackedParamsBase",
                     {{"weight", op.ref(0)}, {"bias", op.has(1) ? op.ref(1) : op.add(None{})}});
}

}  // namespace qplan::pt
