// Layers without the channels that no output depends on (dead_channels.h): fewer weights, smaller tensors
// between layers, fewer products. What such a channel's constant adds to the accumulators that read it enters
// their bias. Every output keeps every bit.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/numeric/requantize.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/dead_channels.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::passes {
namespace {

constexpr size_t kLayerData = 0, kLayerWeight = 1, kLayerBias = 1;

// The constant with these indices of an axis alone.
ir::ConstantRef with_indices(const ir::Constant& constant, size_t axis, std::span<const size_t> indices) {
  const AxisExtents extents = extents_around(constant.type().shape, axis);
  const size_t inner =
      extents.inner * constant.bytes().size() / static_cast<size_t>(constant.type().num_elements());  // bytes
  const size_t outer = constant.bytes().size() / (inner * extents.axis);
  std::vector<uint8_t> bytes;
  bytes.reserve(outer * indices.size() * inner);
  for (size_t o = 0; o < outer; ++o) {
    for (const size_t index : indices) {
      const auto from = constant.bytes().subspan((o * extents.axis + index) * inner, inner);
      bytes.insert(bytes.end(), from.begin(), from.end());
    }
  }
  ir::TensorType type = constant.type();
  type.shape[axis] = static_cast<int64_t>(indices.size());
  return std::make_shared<const ir::Constant>(std::move(type), std::move(bytes));
}

class Removal {
 public:
  Removal(const ir::Function& pre, const DeadChannels& channels, PassContext& context)
      : r_(pre), channels_(channels), context_(context), narrowed_(pre.num_values()) {
    for (const WeightedLayer& layer : channels.layers()) {
      if (channels.kept(layer.input).empty() && channels.kept(layer.output).empty()) continue;
      const layer::LayerNodes& nodes = layer.numbers.nodes;
      for (const ir::Node* node : {nodes.product, nodes.bias_add, nodes.requantize, nodes.clip}) {
        if (node != nullptr) layer_of_[node] = &layer;
      }
    }
  }

  std::unique_ptr<ir::Function> run() {
    if (layer_of_.empty()) return nullptr;
    const ir::Function& function = r_.pre().function();
    for (size_t i = 0; i < function.nodes().size(); ++i) {
      const PreNode node(function, i);
      const auto layer = layer_of_.find(&node.node());
      if (layer == layer_of_.end()) {
        r_.copy(node);
      } else if (node.is("nn.bias_add")) {
        add_bias(*layer->second, node);
      } else if (op::is_quantized_product(node.op())) {
        multiply(*layer->second, node);
      } else {
        follow(*layer->second, node);
      }
    }
    return r_.finish();
  }

 private:
  PostValue data(PreNode node) {
    const PreValue value = node.operand(kLayerData);
    const std::optional<PostValue>& narrowed = narrowed_[value.id.index];
    return narrowed ? *narrowed : r_[value];
  }

  // Operands with one value per output channel lose those that go.
  std::vector<PostValue> operands(const WeightedLayer& layer, PreNode node) {
    const std::span<const size_t> kept = channels_.kept(layer.output);
    std::vector<PostValue> result = {data(node)};
    for (size_t i = 1; i < node.num_operands(); ++i) {
      const PreValue value = node.operand(i);
      const ir::ConstantRef constant = r_.pre().constant(value);
      const ir::Shape& shape = r_.pre().type(value).shape;
      const bool is_per_channel = shape == ir::Shape{static_cast<int64_t>(layer.out_channels())};
      result.push_back(kept.empty() || constant == nullptr || !is_per_channel
                           ? r_[value]
                           : r_.post().constant_value(with_indices(*constant, 0, kept)));
    }
    return result;
  }

  // Later nodes of the layer, and layers that read it, take the new value.
  void define(const WeightedLayer& layer, PreNode node, PostValue result) {
    if (channels_.kept(layer.output).empty()) {
      r_.replace(node.result(), result);
    } else {
      narrowed_[node.result().id.index] = result;
      r_.keep_name(node.result(), result);
    }
  }

  ir::ConstantRef weights(const WeightedLayer& layer, PreNode product) {
    ir::ConstantRef weights = r_.pre().constant(product.operand(kLayerWeight));
    const std::span<const size_t> out = channels_.kept(layer.output), in = channels_.kept(layer.input);
    if (!out.empty()) weights = with_indices(*weights, op::weight_output_axis(product.node()), out);
    // OHWI and [n, k]: what a channel of the input multiplies is last.
    if (!in.empty() && !layer.is_depthwise)
      weights = with_indices(*weights, weights->type().shape.size() - 1, in);
    return weights;
  }

  void multiply(const WeightedLayer& layer, PreNode product) {
    std::vector<PostValue> inputs = operands(layer, product);
    const PreValue old_weights = product.operand(kLayerWeight);
    const ir::ConstantRef weights = this->weights(layer, product);
    inputs[kLayerWeight] = r_.post().constant_value(weights, r_.pre().name(old_weights));
    ir::Attrs attrs = product.attrs();
    const int64_t channels = weights->type().shape[op::weight_output_axis(product.node())];
    for (const char* name : {"channels", "units"}) {
      if (attrs.has(name)) attrs.set(name, channels);
    }
    if (layer.is_depthwise) attrs.set("groups", channels);
    PostValue sums = r_.post().call(product.op()->name, inputs, std::move(attrs), product.name());
    const std::vector<int32_t> addends = channels_.contributions(layer);
    if (!addends.empty() && layer.numbers.nodes.bias_add == nullptr) {
      const size_t rank = r_.pre().type(product.result()).shape.size();
      sums = r_.post().call("nn.bias_add", {sums, vector_of(addends)},
                            {{"axis", static_cast<int64_t>(rank) - 1}}, product.name());
    }
    tell(layer, product);
    define(layer, product, sums);
  }

  void add_bias(const WeightedLayer& layer, PreNode node) {
    std::vector<PostValue> inputs = operands(layer, node);
    const std::vector<int32_t> addends = channels_.contributions(layer);
    if (!addends.empty()) {
      std::vector<int32_t> sums;
      for (const int32_t bias : r_.post().constant(inputs[kLayerBias])->as<int32_t>())
        sums.push_back(wrap_add(bias, addends[sums.size()]));
      inputs[kLayerBias] = vector_of(sums);
    }
    define(layer, node, r_.post().call("nn.bias_add", inputs, node.attrs(), node.name()));
  }

  void follow(const WeightedLayer& layer, PreNode node) {
    define(layer, node, r_.post().call(node.op()->name, operands(layer, node), node.attrs(), node.name()));
  }

  PostValue vector_of(const std::vector<int32_t>& values) {
    return r_.post().constant_value(
        ir::make_constant(ir::kInt32, {static_cast<int64_t>(values.size())}, values));
  }

  void tell(const WeightedLayer& layer, PreNode product) {
    const auto count = [&](ir::ValueId tensor, size_t all) {
      const size_t kept = channels_.kept(tensor).size();
      return kept == 0 ? cat("all ", all) : cat(kept, " of ", all);
    };
    context_.fired("remove_dead_channels", product.name(),
                   cat("exact: keeps ", count(layer.input, layer.in_channels()), " input and ",
                       count(layer.output, layer.out_channels()), " output channels"));
  }

  Rebuild r_;
  const DeadChannels& channels_;
  PassContext& context_;
  std::unordered_map<const ir::Node*, const WeightedLayer*> layer_of_;
  std::vector<std::optional<PostValue>> narrowed_;  // by old value: what stands for one with more channels
};

}  // namespace

std::unique_ptr<ir::Function> run_remove_dead_channels(const ir::Module&, const ir::Function& pre,
                                                       PassContext& context) {
  if (!context.channels_may_go) return nullptr;
  const DeadChannels channels(pre, context.channel_multiple);
  return Removal(pre, channels, context).run();
}

}  // namespace qplan::passes
