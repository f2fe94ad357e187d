// The patterns of the canonical form (docs/canonical-form.md), from the last operator to the first, and the
// one table of the composites that all targets make of them.
#ifndef QPLAN_SRC_PACKER_TARGET_PATTERNS_H_
#define QPLAN_SRC_PACKER_TARGET_PATTERNS_H_

#include <span>
#include <string>
#include <string_view>

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

// The patterns name what they capture: "data", "pad", "product", "weight", "bias_add", "bias", "requantize",
// "sum", "lhs", "rhs", "pool", "mean", "clip".
struct Composite {
  std::string_view name;       // "qplan.qconv2d"
  std::string_view what;       // "Convolution"
  std::string_view operators;  // "nn.pad? -> qnn.conv2d -> nn.bias_add? -> qnn.requantize -> clip?"
  // qplan/npu_oplist.h has an operator for it, so that targets from outside the tree may name it.
  bool is_in_operator_lists;
  pattern::Pattern (*make)();
};
std::span<const Composite> composites();
// One of the table.
const Composite& composite(std::string_view name);
// "Depthwise convolution, as GEMM with diagonal weights: ..."; note may be "".
std::string summary(const Composite& composite, std::string_view note = "");

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_PATTERNS_H_
