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

#include "kernels/quantization/quantization.h"
#include "src/packer/error.h"
#include "src/packer/ir/module.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::passes {

using pattern::Pattern;
using pattern::Post;
using pattern::PostNode;
using pattern::PostValue;
using pattern::Pre;
using pattern::PreNode;
using pattern::PreValue;
using pattern::Rebuild;
using pattern::Rewrite;
using pattern::RewriteContext;
// What a row makes of what it matched; nullopt: it does not fire.
using Result = std::optional<PostValue>;

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

// work(values) with all values of a constant, in the type of its dtype: int8, uint8, int16 or int32, those of
// quantised tensors. PackError (QPLAN_INTERNAL) for others.
template <typename Work>
auto with_integers(const ir::Constant& constant, const Work& work) {
  const ir::DType dtype = constant.type().dtype;
  if (dtype == ir::kInt8) return work(constant.as<int8_t>());
  if (dtype == ir::kUint8) return work(constant.as<uint8_t>());
  if (dtype == ir::kInt16) return work(constant.as<int16_t>());
  if (dtype != ir::kInt32) throw PackError(QPLAN_INTERNAL, "quantised values are " + ir::to_string(dtype));
  return work(constant.as<int32_t>());
}

// entry() of one of those.
inline int64_t integer_entry(const ir::Constant& constant, size_t index) {
  return with_integers(constant,
                       [&](const auto values) { return int64_t{values[values.size() == 1 ? 0 : index]}; });
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

// What each operator does with the dtype of its 8-bit operands and results: where the same operator computes
// the same reals when int8 q with zero point z becomes uint8 q + 128 with zero point z + 128, or the other
// way.

// Whether the same operator computes the same reals when its data, or its results, change their dtype so;
// false for operators that look at the integers themselves (cast, integer arithmetic).
bool may_change_signedness(const op::OpDef* op);
// Whether data and results can only change together: they have one dtype.
bool has_one_dtype(const op::OpDef& op);

// Null, or why the other dtype gives other reals at times under the node's contract.
const char* rounds_by_signedness(const pattern::Pre& pre, pattern::PreNode node);
// Whether the node's contract has zero points at all; those for devices without them keep their dtypes.
bool contract_has_zero_points(pattern::PreNode node);

bool is_8_bit(ir::DType dtype);
// A qnn.requantize whose results are the same reals, in the same dtype or with every integer moved by 128.
bool keeps_reals(const pattern::Pre& pre, pattern::PreNode node);

// ---- constants ----
ir::ConstantRef other_signedness(const ir::Constant& data);  // each byte XOR 0x80
ir::ConstantRef moved_zero_points(const ir::Constant& zero_points, int32_t offset);

// Which of the two 8-bit dtypes the activations of a network have in canonical form.

// int8, or uint8 for a network that only TFLite's uint8 arithmetic can mean. Two signs tell such a network:
// weights with a zero point, which TFLite's int8 operators do not know, and a convolution whose multiplier is
// formed from the float32 product of its scales, as TFLite's uint8 convolutions do. Neither changes when a
// source moves activations or weights between int8 and uint8, so all forms of a network give one answer.
ir::DType activation_dtype(const ir::Function& function);

// qnn.quantize in the packer: the bits of the kernel quantize, and of its int32 form, which has no kernel
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

// What the sums of products of a layer can become, whatever its input is: int32 must hold them, the bias
// included.

// The least and the largest sum of products of one output channel. The sum 0 is always possible: an input
// that equals its zero point everywhere gives it.
struct ProductSums {
  int64_t least = 0, most = 0;

  // The weights are their zero point, all of them.
  bool is_dead() const { return least == 0 && most == 0; }
  // Whether int32 holds the bias (a whole number, infinite or NaN) with each of the sums.
  bool fits_with(double bias) const;
};

// Values of 8 bits less their zero point.
struct LayerInput {
  ir::DType dtype;
  int32_t zero_point = 0;
};

// One entry per index of the weights' axis of output channels. zero_points: one or one per channel. Reads no
// weight where their number alone says that the sums with biases up to `largest_bias` fit; the sums are then
// what any weights could reach.
std::vector<ProductSums> product_sums(const ir::Constant& weights, const ir::Constant& zero_points,
                                      size_t output_axis, LayerInput input, double largest_bias);

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_REWRITE_PASS_H_
