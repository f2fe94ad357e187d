// Convolutions of a concatenation in which one part repeats a pixel, as image pooling does in DeepLab: what
// that part adds to the sums is the same everywhere.
//
//   concatenate(x, image.resize2d(p)) -> qnn.conv2d -> nn.bias_add? -> qnn.requantize
//   =  qnn.conv2d(p) -> nn.bias_add? -> b;   qnn.conv2d(x) -> nn.bias_add(b) -> qnn.requantize
//
// p has one pixel, and the window is 1 x 1. The sums are the same, modulo 2^32.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/pattern/pattern.h"
#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {
namespace {

using pattern::PostValue;
using pattern::Pre;
using pattern::PreNode;
using pattern::PreValue;
using pattern::Rebuild;

constexpr size_t kChannels = 3;  // the axis, in NHWC

// Channels of the concatenation.
struct Part {
  PreValue value;  // the pixel, where one is repeated
  int64_t first = 0, count = 0;
  bool is_repeated = false;
};

struct Layer {
  PreNode conv;
  std::optional<PreNode> bias_add;
  std::vector<Part> parts;
};

std::optional<PreValue> repeated_pixel(const Pre& pre, PreValue value) {
  const auto resize = pre.producer(value, "image.resize2d");
  if (!resize || op::attr_string(resize->node(), "layout") != "NHWC") return {};
  const ir::Shape &from = pre.type(resize->operand(0)).shape, &to = pre.type(value).shape;
  const bool is_repeated = from[0] == 1 && from[1] == 1 && from[2] == 1 && to[1] * to[2] > 1;
  return is_repeated ? std::optional(resize->operand(0)) : std::nullopt;
}

// The parts of the concatenation, where at least one is repeated and at least one is not.
std::vector<Part> parts_of(const Pre& pre, PreValue data) {
  const auto concatenate = pre.producer(data, "concatenate");
  if (!concatenate || pre.num_uses(data) != 1 || pre.type(data).shape.size() != kChannels + 1) return {};
  if (op::normalized_axis(op::attr_int(concatenate->node(), "axis"), kChannels + 1) != kChannels) return {};
  std::vector<Part> parts;
  int64_t first = 0;
  for (size_t i = 0; i < concatenate->num_operands(); ++i) {
    const PreValue value = concatenate->operand(i);
    const std::optional<PreValue> pixel = repeated_pixel(pre, value);
    const int64_t count = pre.type(value).shape[kChannels];
    parts.push_back({pixel.value_or(value), first, count, pixel.has_value()});
    first += count;
  }
  const auto repeated = std::ranges::count(parts, true, &Part::is_repeated);
  if (repeated == 0 || repeated == std::ssize(parts)) return {};
  return parts;
}

// The layer that a qnn.requantize ends, where it can be separated.
std::optional<Layer> layer_of(const Pre& pre, PreNode requantize, const TargetProfile& profile) {
  PreValue sum = requantize.operand(0);
  const std::optional<PreNode> bias_add = pre.producer(sum, "nn.bias_add");
  if (bias_add && pre.num_uses(sum) != 1) return {};
  if (bias_add) sum = bias_add->operand(0);
  const auto conv = pre.producer(sum, "qnn.conv2d");
  if (!conv || pre.num_uses(sum) != 1) return {};
  layer::LayerNodes nodes;
  nodes.function = &pre.function();
  nodes.product = &conv->node();
  nodes.bias_add = bias_add ? &bias_add->node() : nullptr;
  nodes.requantize = &requantize.node();
  const layer::QuantizedLayer layer = layer::read_layer(nodes);
  const op::Window2d& window = layer.geometry.window;
  if (!takes_computed_bias(layer, profile) || !layer.requantizes_channels || !layer.weights || !layer.bias ||
      window.kernel_h != 1 || window.kernel_w != 1 || window.is_padded()) {
    return {};
  }
  std::vector<Part> parts = parts_of(pre, conv->operand(product::kData));
  if (parts.empty()) return {};
  return Layer{*conv, bias_add, std::move(parts)};
}

// The sums of the parts that are repeated, or of the others.
class PartialSums {
 public:
  PartialSums(Rebuild& r, const Layer& layer, bool of_repeated) : r_(r), layer_(layer) {
    for (const Part& part : layer.parts) {
      if (part.is_repeated == of_repeated) parts_.push_back(part);
    }
  }

  PostValue add(ir::Attrs attrs, const std::string& name) {
    std::vector<PostValue> operands = r_.operands(layer_.conv);
    operands[product::kData] = data(name);
    operands[product::kWeight] = weights();
    return r_.post().call("qnn.conv2d", operands, std::move(attrs), name);
  }

 private:
  PostValue data(const std::string& name) {
    std::vector<PostValue> values;
    for (const Part& part : parts_) values.push_back(r_[part.value]);
    if (values.size() == 1) return values.front();
    return r_.post().call("concatenate", values, {{"axis", static_cast<int64_t>(kChannels)}}, name);
  }

  PostValue weights() {
    const PreValue value = layer_.conv.operand(product::kWeight);
    const ir::Constant& all = *r_.pre().constant(value);
    ir::Shape shape = all.type().shape;
    const auto num_o = static_cast<size_t>(shape[0]), channels = static_cast<size_t>(shape[kChannels]);
    std::vector<uint8_t> bytes;
    for (size_t o = 0; o < num_o; ++o) {
      const std::span<const uint8_t> of_output = all.bytes().subspan(o * channels, channels);
      for (const Part& part : parts_) {
        const auto of_part =
            of_output.subspan(static_cast<size_t>(part.first), static_cast<size_t>(part.count));
        bytes.insert(bytes.end(), of_part.begin(), of_part.end());
      }
    }
    shape[kChannels] = static_cast<int64_t>(bytes.size() / num_o);
    return r_.post().constant_value(ir::make_constant(all.type().dtype, shape, bytes), r_.pre().name(value));
  }

  Rebuild& r_;
  const Layer& layer_;
  std::vector<Part> parts_;
};

bool separate(Rebuild& r, PreNode requantize, const TargetProfile& profile) {
  if (!requantize.is("qnn.requantize")) return false;
  const std::optional<Layer> layer = layer_of(r.pre(), requantize, profile);
  if (!layer) return false;
  const PreNode& conv = layer->conv;
  const ir::Attrs along_channels = {{"axis", static_cast<int64_t>(kChannels)}};
  const std::string of_pixel = conv.name().empty() ? "" : cat("repeated/", conv.name());
  ir::Attrs attrs = conv.attrs();
  attrs.set("strides", ir::Ints{1, 1});
  PostValue bias = PartialSums(r, *layer, true).add(std::move(attrs), of_pixel);
  if (layer->bias_add) {
    bias = r.post().call("nn.bias_add", {bias, r[layer->bias_add->operand(1)]}, along_channels, of_pixel);
  }
  const int64_t channels = r.post().type(bias).shape[kChannels];
  bias = r.post().call("reshape", {bias}, {{"newshape", ir::Ints{channels}}}, of_pixel);
  const PostValue sums = PartialSums(r, *layer, false).add(conv.attrs(), conv.name());
  std::vector<PostValue> operands = r.operands(requantize);
  operands[0] = r.post().call("nn.bias_add", {sums, bias}, along_channels, conv.name());
  r.replace(requantize.result(),
            r.post().call("qnn.requantize", operands, requantize.attrs(), requantize.name()));
  return true;
}

}  // namespace

std::unique_ptr<ir::Function> separate_repeated_pixels(const ir::Function& function,
                                                       const TargetProfile& profile) {
  return pattern::rebuild(function, [&](Rebuild& r, PreNode node) { return separate(r, node, profile); });
}

}  // namespace qplan::target::cpu
