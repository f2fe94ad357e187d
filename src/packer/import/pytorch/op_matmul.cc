#include <cmath>
#include <limits>

#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/import/pytorch/weights.h"

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

struct Bias {
  ir::ValueId value;
  std::vector<float> scales;  // of the accumulator: one, or one per channel
};

// The accumulator's scale is the float32 product of the scales. PyTorch keeps the bias in float32 and its
// engines bring it to that scale when they run; here it becomes int32 then: rne(bias / scale), the quotient
// in float32.
Bias read_bias(OpContext& op, const MatmulTail& tail) {
  Bias result;
  for (const float weight_scale : tail.weights.scales.scales) {
    const float scale = tail.input.quantization->scale * weight_scale;
    if (!std::isfinite(scale) || scale <= 0) {
      invalid("input scale " + to_text(tail.input.quantization->scale) + " times weight scale " +
              to_text(weight_scale) + " leaves the range of float32");
    }
    result.scales.push_back(scale);
  }
  const auto channels = static_cast<size_t>(tail.weights.channels);
  std::vector<int32_t> quantized(channels);
  if (op.values().get<None>(tail.bias) == nullptr) {
    const Tensor* tensor = op.values().get<Tensor>(tail.bias);
    if (tensor == nullptr)
      invalid(cat("the bias is ", kind_name(op.values().at(tail.bias)), ", expected a tensor"));
    if (op.tensors().type(*tensor) != ScalarType::kFloat32) throw Unsupported{"a bias that is not float32"};
    const std::vector<double> values = op.tensors().read_numbers(*tensor, "a bias");
    if (values.size() != channels) {
      invalid(
          cat("the bias has ", values.size(), " values, expected one for each of ", channels, " channels"));
    }
    BiasCounts& counts = op.biases();
    for (size_t i = 0; i < channels; ++i) {
      const float scale = result.scales[result.scales.size() == 1 ? 0 : i];
      const float quotient = static_cast<float>(values[i]) / scale;
      if (std::isnan(quotient)) invalid(cat("value ", i, " of the bias is not a number"));
      constexpr double kLeast = std::numeric_limits<int32_t>::min(),
                       kMost = std::numeric_limits<int32_t>::max();
      const auto exact = static_cast<double>(quotient);
      const double clamped = std::clamp(exact, kLeast, kMost);
      quantized[i] = static_cast<int32_t>(round_half_even(clamped));
      ++counts.total;
      if (clamped != exact) ++counts.saturated;
      if (quantized[i] != static_cast<int32_t>(clamped)) ++counts.truncated;
    }
  }
  result.value = op.constant(ir::make_constant(ir::kInt32, {tail.weights.channels}, quantized));
  return result;
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

std::vector<ir::ValueId> matmul_operands(OpContext& op, const Flow& input, const Weights& weights) {
  return {input.value,
          weights.value,
          op.zero_point(input.quantization->zero_point),
          zero_points_constant(op, weights.scales.zero_points),
          op.scale(input.quantization->scale),
          scales_constant(op, weights.scales.scales, weights.scales.axis.has_value())};
}

Ref emit_tail(OpContext& op, ir::ValueId accumulator, const MatmulTail& tail) {
  const Bias bias = read_bias(op, tail);
  const bool per_channel = tail.weights.scales.axis.has_value();
  ir::ValueId value = op.emit("nn.bias_add", {accumulator, bias.value}, {{"axis", tail.channel_axis}});
  ir::Attrs attrs{{"out_dtype", ir::to_string(op.dtype(tail.input))}, {"contract", std::string("f32e")}};
  if (per_channel) attrs.set("axis", tail.channel_axis);
  value = op.emit("qnn.requantize",
                  {value, scales_constant(op, bias.scales, per_channel), op.zero_point(0),
                   op.scale(tail.output.scale), op.zero_point(tail.output.zero_point)},
                  std::move(attrs));
  if (tail.relu) value = emit_clamp(op, value, {.min = 0}, tail.output);
  return op.result(value, tail.output);
}

// Quantised convolutions and linear layers.

namespace {

Ref conv2d(OpContext& op, bool relu) {
  const Flow input = op.quantized_flow(0);
  const ConvParameters parameters = conv_parameters(op, 1);
  const QuantParams output = op.quantization(2, 3, op.dtype(input));
  const Weights weights = read_weights(op, parameters.weight, 4);
  for (const int64_t padding : parameters.padding) {
    if (padding < 0) invalid(cat("padding ", padding, " is negative"));
  }
  const std::vector<int64_t>& p = parameters.padding;
  const ir::ValueId accumulator = op.emit("qnn.conv2d", matmul_operands(op, input, weights),
                                          {{"strides", parameters.stride},
                                           {"padding", ir::Ints{p[0], p[1], p[0], p[1]}},
                                           {"dilation", parameters.dilation},
                                           {"groups", parameters.groups},
                                           {"data_layout", std::string("NCHW")},
                                           {"kernel_layout", std::string("OIHW")}});
  return emit_tail(op, accumulator,
                   {.bias = parameters.bias,
                    .input = input,
                    .weights = weights,
                    .channel_axis = 1,
                    .output = output,
                    .relu = relu});
}

Ref linear(OpContext& op, bool relu) {
  const Flow input = op.quantized_flow(0);
  const LinearParameters parameters = linear_parameters(op, 1);
  const QuantParams output = op.quantization(2, 3, op.dtype(input));
  const Weights weights = read_weights(op, parameters.weight, 2);
  const ir::ValueId accumulator = op.emit("qnn.dense", matmul_operands(op, input, weights), {});
  const auto last_axis = static_cast<int64_t>(op.shape(input).size()) - 1;
  return emit_tail(op, accumulator,
                   {.bias = parameters.bias,
                    .input = input,
                    .weights = weights,
                    .channel_axis = last_axis,
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
