// The layer that makes an accumulator.
#ifndef QPLAN_SRC_PACKER_PASSES_PRODUCT_OF_H_
#define QPLAN_SRC_PACKER_PASSES_PRODUCT_OF_H_

#include <optional>

#include "src/packer/op/properties.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {

// The qnn.conv2d or qnn.dense whose accumulator the value is, biases added or not. Chains of biases become
// one sooner or later; longer ones than this are nobody's layer, and walking them for each reader would cost
// too much.
inline std::optional<pattern::PreNode> product_of(const pattern::Pre& pre, pattern::PreValue accumulator) {
  constexpr int kMaxBiases = 8;
  for (int i = 0; i < kMaxBiases; ++i) {
    const auto bias = pre.producer(accumulator, "nn.bias_add");
    if (!bias) break;
    accumulator = bias->operand(0);
  }
  const auto producer = pre.producer(accumulator);
  return producer && op::is_quantized_product(producer->op()) ? producer : std::nullopt;
}

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_PRODUCT_OF_H_
