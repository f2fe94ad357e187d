// What passes made of rewrites share: running their rows, and reading what stands in quantising nodes.
#ifndef QPLAN_SRC_PACKER_PASSES_REWRITE_PASS_H_
#define QPLAN_SRC_PACKER_PASSES_REWRITE_PASS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/quantize/quantize.h"
#include "src/packer/ir/module.h"
#include "src/packer/op/properties.h"
#include "src/packer/passes/pass.h"
#include "src/packer/pattern/rebuild.h"
#include "src/packer/pattern/rewrite.h"

namespace qplan::passes {

// Visits until nothing fires, or until a round of the pipeline is better spent on the other passes: the rest
// is left to the next one. Rows that the context skips are left out; each firing goes to PassContext::fired.
// cost: of rows that make a large constant from one which others read too, so that a small file could ask for
// any amount: the bytes, which are taken from PassContext::fold_budget. A row that would take more than is
// left does not fire.
using Cost = std::function<int64_t(const pattern::RewriteContext& context)>;
std::unique_ptr<ir::Function> run_rewrites(std::span<const pattern::Rewrite> rewrites,
                                           const ir::Function& pre, PassContext& context,
                                           const Cost& cost = {});

// ---- patterns ----
pattern::Pattern scalar_constant();
// 8-bit data under a qnn.dequantize with one scale: the data as `name`, the node's result as "dq_<name>".
pattern::Pattern dequantized(const std::string& name);
// qnn.quantize to 8 bits with one scale.
pattern::Pattern quantized(pattern::Pattern data);

// ---- what rows read ----
// The first element of a constant scale or zero point, which the pattern has found to be a scalar.
float scale_of(const pattern::Pre& pre, pattern::PreValue value);
int32_t zero_point_of(const pattern::Pre& pre, pattern::PreValue value);
// The value of a scalar constant of a dtype that nn.pad takes.
std::optional<double> scalar_value(const ir::Constant& constant);
// For reasons: "add 'x'", "parameter '%y'", "a constant".
std::string describe(const pattern::Pre& pre, pattern::PreValue value);
std::string count_text(uint64_t count, std::string_view noun);  // "1 value", "3 values"

// Constants with one value per channel, as models write them: [c], [1, c, 1, 1], or one for all.

// Whether a tensor of this shape, broadcast to `data`, has one value per index of `axis` (and as many
// elements).
bool is_per_channel(const ir::Shape& shape, const ir::Shape& data, size_t axis);

// The value for an index, of a constant with one value for all or one per index.
template <typename T>
T entry(const ir::Constant& constant, size_t index) {
  const auto values = constant.as<T>();
  return values[values.size() == 1 ? 0 : index];
}

// Elements of a tensor around one axis: [outer][axis][inner].
struct AxisExtents {
  size_t axis = 1, inner = 1;
};
AxisExtents extents_around(const ir::Shape& shape, size_t axis);

// The layer that makes an accumulator.

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

// What is known of the order of axes, for the passes that change it.

// `axes` of the transposes from one order to the other.
inline const ir::Ints kToNhwc = {0, 2, 3, 1};
inline const ir::Ints kToNchw = {0, 3, 1, 2};

// The operands whose order of axes the results have too (OpDef::follows_layout). None: the order means
// something to the operator.
std::vector<size_t> layout_operands(const ir::Node& node);
// Where an axis of NCHW is in NHWC.
inline constexpr std::array<int64_t, 4> kAxisInNhwc = {0, 3, 1, 2};
// The attributes of an operator that follows its data, counted in NHWC instead of NCHW.
ir::Attrs attrs_in_nhwc(const ir::Node& node);

// qnn.quantize in the packer: the bits of kernels/quantize, and of its int32 form, which has no kernel
// (biases).

// What attributes `rule` and `contract` of a qnn.quantize say. docs/numerics/quantize.md
QuantizeRounding quantize_rounding(const ir::Node& quantize);

struct Quantized {
  int32_t value;
  bool saturated;  // the dtype's range cut it
};

// clamp(round(x / scale) + zero_point). The quotient is float32, NaN counts as 0.
struct Quantizer {
  float scale = 1.0f;  // positive and finite
  int32_t zero_point = 0;
  ir::DType dtype;  // int8, uint8, int32
  QuantizeRounding rounding = QuantizeRounding::kDivAway;

  Quantized operator()(float x) const;
};

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_REWRITE_PASS_H_
