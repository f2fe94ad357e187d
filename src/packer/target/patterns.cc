#include "src/packer/target/patterns.h"

#include <algorithm>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/op/shape.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::target {
namespace {

using pattern::any;
using pattern::constant;
using pattern::op;
using pattern::Pattern;

bool is_depthwise(const pattern::Pre& pre, pattern::PreValue value) {
  const auto conv = pre.producer(value);
  const op::DataLayout layout = op::data_layout(op::attr_string(conv->node(), "data_layout"));
  const int64_t groups = op::attr_int(conv->node(), "groups");
  return groups > 1 && groups == pre.type(conv->operand(0)).shape[layout.c];
}

Pattern addition() { return op("qnn.add", {any().as("lhs"), any().as("rhs")}).as("sum"); }
Pattern pool(const char* name) { return op(name, {any().as("data")}).as("pool"); }

const Composite kComposites[] = {
    {"qplan.qconv2d", "Convolution", "nn.pad? -> qnn.conv2d -> nn.bias_add? -> qnn.requantize -> clip?", true,
     [] { return requantized(with_bias(convolution(Convolution::kOthers))); }},
    {"qplan.qdepthwise", "Depthwise convolution",
     "nn.pad? -> qnn.conv2d with as many groups as channels -> nn.bias_add? -> qnn.requantize -> clip?", true,
     [] { return requantized(with_bias(convolution(Convolution::kDepthwise))); }},
    {"qplan.qdense", "Fully connected layer", "qnn.dense -> nn.bias_add? -> qnn.requantize -> clip?", true,
     [] { return requantized(with_bias(dense())); }},
    {"qplan.qadd", "Addition of two activations", "qnn.add -> clip?", true,
     [] { return with_clip(addition()); }},
    {"qplan.qmax_pool2d", "Maximum over a window", "nn.max_pool2d -> clip?", true,
     [] { return with_clip(pool("nn.max_pool2d")); }},
    {"qplan.qavg_pool2d", "Average over a window", "qnn.avg_pool2d -> clip?", true,
     [] { return with_clip(pool("qnn.avg_pool2d")); }},
    {"qplan.qmean", "Average over height and width, rescaled", "qnn.mean", false,
     [] { return op("qnn.mean", {any().as("data")}).as("mean"); }},
    {"qplan.qclip", "Clamp", "clip", true, [] { return op("clip", {any().as("data")}).as("clip"); }},
    {"qplan.qreshape", "Another shape of the same bytes, without an instruction", "reshape", false,
     [] { return op("reshape", {any().as("data")}); }},
    {"qplan.qconv2d_acc32",
     "Convolution whose int32 results leave the device, where they cannot be requantised there",
     "nn.pad? -> qnn.conv2d -> nn.bias_add?", false,
     [] { return with_bias(convolution(Convolution::kOthers)); }},
    {"qplan.qdense_acc32", "Fully connected layer whose int32 results leave the device",
     "qnn.dense -> nn.bias_add?", false, [] { return with_bias(dense()); }},
};

}  // namespace

Pattern with_clip(const Pattern& inner) { return op("clip", {inner.one_use()}).as("clip") | inner; }

Pattern with_bias(const Pattern& product) {
  return op("nn.bias_add", {product.one_use(), constant().as("bias")}).as("bias_add") | product;
}

Pattern requantized(const Pattern& accumulator) {
  return with_clip(op("qnn.requantize", {accumulator.one_use()}).as("requantize"));
}

Pattern convolution(Convolution kind) {
  // That there is no nn.pad counts as a condition that held: what fails after it is the nearer miss.
  const Pattern unpadded =
      any().where("of any kind", [](const pattern::Pre&, pattern::PreValue) { return true; });
  const Pattern data = op("nn.pad", {any().as("data"), constant()}).one_use().as("pad") | unpadded.as("data");
  const Pattern conv = op("qnn.conv2d", {data, constant().as("weight")}).as("product");
  if (kind == Convolution::kAny) return conv;
  const bool depthwise = kind == Convolution::kDepthwise;
  return conv.where(depthwise ? "with as many groups as channels" : "with fewer groups than channels",
                    [depthwise](const pattern::Pre& pre, pattern::PreValue value) {
                      return is_depthwise(pre, value) == depthwise;
                    });
}

Pattern dense() { return op("qnn.dense", {any().as("data"), constant().as("weight")}).as("product"); }

std::span<const Composite> composites() { return kComposites; }

const Composite& composite(std::string_view name) {
  const auto* const found = std::ranges::find(kComposites, name, &Composite::name);
  if (found == std::end(kComposites))
    throw PackError(QPLAN_INTERNAL, cat("there is no composite '", name, "'"));
  return *found;
}

std::string summary(const Composite& composite, std::string_view note) {
  return cat(composite.what, note.empty() ? "" : ", ", note, ": ", composite.operators);
}

}  // namespace qplan::target
