// Patterns that several targets have: the layers of the canonical form (docs/canonical-form.md), from the
// last operator to the first.
#ifndef QPLAN_SRC_PACKER_TARGET_PATTERNS_H_
#define QPLAN_SRC_PACKER_TARGET_PATTERNS_H_

#include "src/packer/pattern/pattern.h"

namespace qplan::target {

// inner -> clip?, captured as "clip".
pattern::Pattern with_clip(const pattern::Pattern& inner);
// product -> nn.bias_add?, captured as "bias_add" and "bias".
pattern::Pattern with_bias(const pattern::Pattern& product);
// accumulator -> qnn.requantize -> clip?, captured as "requantize".
pattern::Pattern requantized(const pattern::Pattern& accumulator);

enum class Convolution { kAny, kDepthwise, kOthers };
// nn.pad? -> qnn.conv2d with constant weights, captured as "data", "pad", "weight" and "product".
pattern::Pattern convolution(Convolution kind);
// qnn.dense with constant weights, captured as "data", "weight" and "product".
pattern::Pattern dense();

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_PATTERNS_H_
