// Reads the packed parameters of quantised convolutions and linear layers.
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

}  // namespace qplan::pt
