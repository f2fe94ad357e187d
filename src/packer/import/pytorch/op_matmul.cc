// Quantised convolutions and linear layers, and the packed parameters that they have.
#include <cmath>
#include <limits>

#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {
namespace {

constexpr std::string_view kConvClass = "__torch__.torch.classes.quantized.Conv2dPackedParamsBase";
constexpr std::string_view kLinearClass = "__torch__.torch.classes.quantized.LinearPackedParamsBase";

const Object& packed_object(OpContext& op, size_t argument, std::string_view class_name) {
  const Object* object = op.values().get<Object>(op.ref(argument));
  if (object == nullptr)
    invalid(cat("argument ", argument, " is ", kind_name(op.values().at(op.ref(argument)))));
  if (object->class_name != class_name)
    throw Unsupported{"parameters of class " + in_quotes(object->class_name)};
  return *object;
}

Ref member(const Object& object, const char* name) {
  const auto it = object.attributes.find(name);
  if (it == object.attributes.end()) invalid(cat("the packed parameters have no '", name, "'"));
  return it->second;
}

std::vector<int64_t> to_integers(OpContext& op, const std::vector<Ref>& refs) {
  std::vector<int64_t> numbers;
  for (const Ref ref : refs) {
    const auto* number = op.values().get<int64_t>(ref);
    if (number == nullptr) invalid("the packed parameters hold something else than integers");
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<int64_t> two_integers(OpContext& op, Ref ref, const char* what) {
  const std::vector<Ref>* items = items_of(op.values(), ref);
  if (items == nullptr || items->size() != 2)
    invalid(cat("the ", what, " of the packed parameters is no pair"));
  return to_integers(op, *items);
}

// State of the class, version 2: ("2", [config, weight], [bias]). config is an int16 tensor: number of
// spatial dimensions, then for each of them stride, padding, dilation and output padding, then groups and
// whether transposed.
ConvParameters conv_state(OpContext& op, const Object& object) {
  const std::vector<Ref>* state = items_of(op.values(), object.state);
  if (state == nullptr || state->empty()) invalid("the packed parameters have no state");
  const auto* version = op.values().get<std::string>((*state)[0]);
  if (version == nullptr || *version != "2" || state->size() != 3) {
    throw Unsupported{"packed parameters of another version than 2; save the model with a newer PyTorch"};
  }
  const std::vector<Ref>* tensors = items_of(op.values(), (*state)[1]);
  const std::vector<Ref>* optional = items_of(op.values(), (*state)[2]);
  if (tensors == nullptr || tensors->size() != 2 || optional == nullptr || optional->size() != 1) {
    invalid("the state of the packed parameters is not ('2', [config, weight], [bias])");
  }
  ConvParameters result{
      .weight = (*tensors)[1], .bias = (*optional)[0], .stride = {}, .padding = {}, .dilation = {}};
  const Tensor* config_tensor = op.values().get<Tensor>((*tensors)[0]);
  if (config_tensor == nullptr) invalid("the configuration of the packed parameters is no tensor");
  if (op.tensors().type(*config_tensor) != ScalarType::kInt16) {
    invalid("the configuration of the packed parameters is " + to_string(op.tensors().type(*config_tensor)) +
            ", expected int16");
  }
  const std::vector<double> config = op.tensors().read_numbers(*config_tensor, "a configuration");
  const auto integer = [&](size_t i) { return static_cast<int64_t>(config[i]); };
  if (config.empty() || config[0] != 2) throw Unsupported{"other than two spatial dimensions"};
  if (config.size() != 11)
    invalid(cat("the configuration of the packed parameters has ", config.size(), " numbers"));
  result.stride = {integer(1), integer(2)};
  result.padding = {integer(3), integer(4)};
  result.dilation = {integer(5), integer(6)};
  result.groups = integer(9);
  if (config[10] != 0) throw Unsupported{"a transposed convolution"};
  return result;
}

}  // namespace

Ref make_packed(OpContext& op, const char* class_name, std::map<std::string, Ref, std::less<>> members) {
  Object object;
  object.class_name = class_name;
  object.initialised = true;
  object.attributes = std::move(members);
  return op.add(std::move(object));
}

ConvParameters conv_parameters(OpContext& op, size_t argument) {
  const Object& object = packed_object(op, argument, kConvClass);
  if (object.state.valid()) return conv_state(op, object);
  const auto* groups = op.values().get<int64_t>(member(object, "groups"));
  if (groups == nullptr) invalid("the groups of the packed parameters are no integer");
  return {.weight = member(object, "weight"),
          .bias = member(object, "bias"),
          .stride = two_integers(op, member(object, "stride"), "stride"),
          .padding = two_integers(op, member(object, "padding"), "padding"),
          .dilation = two_integers(op, member(object, "dilation"), "dilation"),
          .groups = *groups};
}

// State of the class: (weight, bias).
LinearParameters linear_parameters(OpContext& op, size_t argument) {
  const Object& object = packed_object(op, argument, kLinearClass);
  if (!object.state.valid()) return {member(object, "weight"), member(object, "bias")};
  const std::vector<Ref>* state = items_of(op.values(), object.state);
  if (state == nullptr || state->size() != 2)
    invalid("the state of the packed parameters is not (weight, bias)");
  return {(*state)[0], (*state)[1]};
}

Weights read_weights(OpContext& op, Ref ref, size_t rank) {
  const Tensor* tensor = op.values().get<Tensor>(ref);
  if (tensor == nullptr)
    invalid(cat("the weights are ", kind_name(op.values().at(ref)), ", expected a tensor"));
  const ScalarType type = op.tensors().type(*tensor);
  if (type != ScalarType::kQint8) throw Unsupported{to_string(type) + " weights"};
  if (tensor->sizes.size() != rank) {
    invalid(cat("the weights have rank ", tensor->sizes.size(), ", expected ", rank));
  }
  Weights weights;
  weights.scales = op.tensors().read_scales(*tensor);
  if (weights.scales.axis.value_or(0) != 0) {
    throw Unsupported{cat("weights quantised along axis ", *weights.scales.axis)};
  }
  weights.value = op.constant(op.tensors().read(*tensor));
  weights.channels = tensor->sizes[0];
  return weights;
}

// The operators.
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
ir::ValueId emit_layer(OpContext& op, const MatmulLayer& layer) {
  const std::vector<float> scales = accumulator_scales(layer), bias = read_bias(op, layer);
  const std::vector<int32_t> steps = integer_bias(op, layer, scales, bias);
  ir::ValueId value = steps.empty() ? float_layer(op, layer, bias) : integer_layer(op, layer, scales, steps);
  return layer.relu ? emit_clamp(op, value, {.min = 0}, layer.output) : value;
}

// The packed parameters of a sequence's convolution have a height of 1.
Ref conv(OpContext& op, size_t spatial_axes, bool relu) {
  const Plane plane(op, op.quantized_flow(0), spatial_axes);
  const ConvParameters parameters = conv_parameters(op, 1);
  const QuantParams output = op.quantization(2, 3, op.dtype(plane.input()));
  const Weights weights = read_weights(op, parameters.weight, 4);
  for (const int64_t padding : parameters.padding) {
    if (padding < 0) invalid(cat("padding ", padding, " is negative"));
  }
  const std::vector<int64_t>& p = parameters.padding;
  const ir::ValueId value = emit_layer(op, {.product = "conv2d",
                                            .attrs = {{"strides", parameters.stride},
                                                      {"padding", ir::Ints{p[0], p[1], p[0], p[1]}},
                                                      {"dilation", parameters.dilation},
                                                      {"groups", parameters.groups},
                                                      {"data_layout", std::string("NCHW")},
                                                      {"kernel_layout", std::string("OIHW")}},
                                            .input = plane.input(),
                                            .weights = weights,
                                            .bias = parameters.bias,
                                            .channel_axis = 1,
                                            .output = output,
                                            .relu = relu});
  return plane.result(op, value, output);
}

Ref linear(OpContext& op, bool relu) {
  const Flow input = op.quantized_flow(0);
  const LinearParameters parameters = linear_parameters(op, 1);
  const QuantParams output = op.quantization(2, 3, op.dtype(input));
  const Weights weights = read_weights(op, parameters.weight, 2);
  const MatmulLayer layer = {.product = "dense",
                             .attrs = {},
                             .input = input,
                             .weights = weights,
                             .bias = parameters.bias,
                             .channel_axis = static_cast<int64_t>(op.shape(input).size()) - 1,
                             .output = output,
                             .relu = relu};
  return op.result(emit_layer(op, layer), output);
}

}  // namespace

Ref import_conv1d(OpContext& op) { return conv(op, 1, false); }
Ref import_conv1d_relu(OpContext& op) { return conv(op, 1, true); }
Ref import_conv2d(OpContext& op) { return conv(op, 2, false); }
Ref import_conv2d_relu(OpContext& op) { return conv(op, 2, true); }
Ref import_linear(OpContext& op) { return linear(op, false); }
Ref import_linear_relu(OpContext& op) { return linear(op, true); }

namespace {

Ref conv_packed(OpContext& op, Ref weight, Ref stride, Ref padding, Ref dilation) {
  return make_packed(op, "__torch__.torch.classes.quantized.Conv2dPackedParamsBase",
                     {{"weight", weight},
                      {"bias", op.ref(1)},
                      {"stride", stride},
                      {"padding", padding},
                      {"dilation", dilation},
                      {"groups", op.ref(5)}});
}

}  // namespace

Ref import_conv2d_prepack(OpContext& op) {
  return conv_packed(op, op.ref(0), op.ref(2), op.ref(3), op.ref(4));
}

// As PyTorch packs it: weights [o, i, k] as [o, i, 1, k].
Ref import_conv1d_prepack(OpContext& op) {
  const Tensor* given = op.values().get<Tensor>(op.ref(0));
  if (given == nullptr || given->sizes.size() != 3 || given->strides.size() != 3)
    invalid("the weights are no tensor of rank 3");
  Tensor weight = *given;
  weight.sizes.insert(weight.sizes.begin() + 2, 1);
  weight.strides.insert(weight.strides.begin() + 2, weight.strides[2]);
  const auto pair = [&](size_t i, int64_t height) {
    const std::vector<int64_t> width = op.integers(i);
    if (width.size() != 1) invalid(cat("argument ", i, " has ", width.size(), " items, expected 1"));
    List list;
    for (const int64_t number : {height, width[0]}) list.items.push_back(op.add(number));
    return op.add(std::move(list));
  };
  return conv_packed(op, op.add(std::move(weight)), pair(2, 1), pair(3, 0), pair(4, 1));
}

Ref import_linear_prepack(OpContext& op) {
  return make_packed(op, "__torch__.torch.classes.quantized.LinearPackedParamsBase",
                     {{"weight", op.ref(0)}, {"bias", op.has(1) ? op.ref(1) : op.add(None{})}});
}

}  // namespace qplan::pt
