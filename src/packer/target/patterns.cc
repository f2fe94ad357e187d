#include "src/packer/target/patterns.h"

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

}  // namespace

Pattern with_clip(const Pattern& inner) { return op("clip", {inner.one_use()}).as("clip") | inner; }

Pattern with_bias(const Pattern& product) {
  return op("nn.bias_add", {product.one_use(), constant().as("bias")}).as("bias_add") | product;
}

Pattern requantized(const Pattern& accumulator) {
  return with_clip(op("qnn.requantize", {accumulator.one_use()}).as("requantize"));
}

Pattern convolution(Convolution kind) {
  // That there is no nn.pad counts as a condition that held: what fails behind it is the nearer miss.
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

}  // namespace qplan::target
