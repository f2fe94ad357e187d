// qconv2d, qdense: families conv2d, depthwise_conv2d and fully_connected.
#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/conv2d/conv2d.h"
#include "qplan/qplan.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/target/cpu/lowering.h"
#include "src/packer/target/cpu/prove.h"

namespace qplan::target::cpu {
namespace {

Constraint layer_dtypes(const std::string& prefix) {
  return {prefix + "dtype",
          "input and output are int8 or uint8, or both int16; the output is int32 where something else reads "
          "accumulators of 8-bit layers",
          kQuantizeTo8Bits, [](const Matched& match) -> std::string {
            const ir::DType input = match.lowering.type(node_of(match)->operands[product::kData]).dtype;
            const ir::DType output =
                match.lowering.type(sequence_result(match.lowering, match.sequence)).dtype;
            const bool is_acc32 = node_of(match, "qnn.requantize") == nullptr;
            if (is_8_bit(input) && (is_8_bit(output) || is_acc32)) return "";
            if (input == ir::kInt16 && output == ir::kInt16) return "";
            return cat(input, " to ", output, ", the kernels take 8 bits to 8 bits, and int16 to int16");
          }};
}

Constraint layer_contract_among(const std::string& prefix) {
  return contract_among(prefix, {format::Contract_TFL2, format::Contract_TFL1, format::Contract_F32E},
                        "qnn.requantize");
}

Constraint layer_operands(const std::string& prefix) {
  return {
      prefix + "operands",
      "weights are constants of 8 bits; bias, scales and zero points are constants, of one value or one for "
      "each channel, that the kernel's multipliers can express",
      kMakeConstant,
      [](const Matched& match) { return violation_of(read_weighted_layer(match.lowering, match.sequence)); }};
}

// Vector kernels want whole blocks of 16 output channels in a group: groups are made one until they have
// them. Too many at once would be more zeros than work, and are left to the reference.
GroupMerge merge_groups(uint16_t layout, uint64_t num_o, uint64_t groups, uint64_t group_c) {
  constexpr uint64_t kBlock = 16, kMostMerged = 64;
  GroupMerge merge = {1, num_o / groups, group_c};
  if (layout != kLayout_o16k4 || groups == 1 || merge.group_o % kBlock == 0) return merge;
  for (uint64_t merged = 2; merged <= std::min(groups, kMostMerged); ++merged) {
    if (groups % merged != 0 || (merged != groups && merge.group_o * merged % kBlock != 0)) continue;
    merge.merged = merged;
    break;
  }
  return merge;
}

// What kernels/conv2d/conv2d.h asks of a convolution. groups: after merge_groups.
Conv2dArgs geometry_args(const layer::QuantizedLayer& layer, uint64_t groups) {
  const layer::Geometry& g = layer.geometry;
  Conv2dArgs args;
  args.input_c = static_cast<uint32_t>(g.in_c);
  args.output_w = static_cast<uint32_t>(g.out_w);
  args.output_c = static_cast<uint32_t>(g.out_c);
  args.kernel_h = static_cast<uint32_t>(g.window.kernel_h);
  args.kernel_w = static_cast<uint32_t>(g.window.kernel_w);
  args.stride_h = static_cast<uint32_t>(g.window.stride_h);
  args.dilation_h = static_cast<uint32_t>(g.window.dilation_h);
  args.dilation_w = static_cast<uint32_t>(g.window.dilation_w);
  args.groups = static_cast<uint32_t>(groups);
  args.contract = layer.nodes.requantize == nullptr ? Contract::kAcc32 : Contract::kTfl2;
  return args;
}

// For a target whose layout is o16k4: of it and the layouts like it the one that vector kernels read as it
// is.
uint16_t vector_layout(const Conv2dArgs& args, bool prefers_eights) {
  if (!has_vector_variants(args)) return kLayout_o16k4;
  return prefers_eights && eights_are_better(args) ? layout_of_eights(args) : layout_in_place(args);
}

// Whether kernels of microcontrollers compute the layer; they read o2r4 and o4k16.
bool has_scalar_variants(const layer::QuantizedLayer& layer) {
  const op::Window2d& window = layer.geometry.window;
  return layer.geometry.groups == 1 && layer.nodes.requantize != nullptr &&
         (window.dilation_w == 1 || window.kernel_w == 1);
}

// Whether the weights of each two outputs fit int16 as layouts of halves have them (kernels/layouts.def).
bool fits_halves(const layer::QuantizedLayer& layer) {
  constexpr uint64_t kMaxSum = uint64_t{1} << 23;
  const layer::LayerWeights& weights = *layer.weights;
  const std::span<const uint8_t> bytes = weights.bytes->bytes();
  const uint8_t sign_bias = layer.weight_dtype == ir::kUint8 ? 0x80 : 0;
  const auto weight = [&](size_t o, size_t k) {
    return static_cast<int8_t>(bytes[o * weights.num_k + k] ^ sign_bias);
  };
  const int64_t zero_point = *layer.input_zero_point;
  const auto largest_input = static_cast<uint64_t>(
      std::max<int64_t>(layer.input_dtype.max() - zero_point, zero_point - layer.input_dtype.min()));
  for (size_t o = 1; o < weights.num_o; o += 2) {
    uint64_t sum = 0;
    for (size_t k = 0; k < weights.num_k; ++k) {
      const int32_t odd = weight(o, k);
      if (odd == INT8_MIN && weight(o - 1, k) < 0) return false;
      sum += static_cast<uint64_t>(odd < 0 ? -odd : odd);
    }
    if (sum * largest_input >= kMaxSum) return false;
  }
  return true;
}

// What a step of either family has; its parameters are left to the caller.
struct LayerStep {
  ProgramStep step;
  PackedWeights weights;
  FloatEpilogues float_epilogues;

  // For the vector kernels that read taps of so many bytes; 0 where none gains by it.
  uint8_t int16_groups(const Lowering& lowering, uint64_t tap_bytes) const {
    if (lowering.profile().isas.back() != QPLAN_ISA_NEON) return 0;
    return prove_int16_groups(*weights.bytes, (tap_bytes + 3) / 4);
  }
};

LayerStep make_layer_step(Lowering& lowering, const NodeSequence& sequence,
                          const layer::QuantizedLayer& layer, KernelId kernel, uint16_t layout,
                          const LayoutWindow& window, const GroupMerge& merge,
                          std::optional<uint32_t> max_rests = {}) {
  const ir::Node& product = *layer.nodes.product;
  LayerStep result;
  result.step = make_step(kernel, product);
  result.weights = pack_weights(lowering, layer, layout, window, merge, max_rests);
  result.step.inputs = {lowering.tensor(product.operands[product::kData]), result.weights.tensor};
  append_channel_constants(lowering, layer, layout, result.weights.rests, &result.step.inputs);
  result.float_epilogues = prove_float_epilogues(layer, layout);
  const ir::ValueId output = sequence_result(lowering, sequence);
  result.step.outputs = {lowering.define(output)};
  result.step.macs = static_cast<uint64_t>(lowering.type(output).num_elements()) * layer.weights->num_k;
  return result;
}

int32_t output_zero_point(const layer::QuantizedLayer& layer) {
  return layer.nodes.requantize == nullptr ? 0 : *layer.output_zero_point;
}

NodeSequence match_qconv2d(const Lowering& lowering, uint32_t node) {
  return match_weighted_layer(lowering, node, "qnn.conv2d");
}

std::vector<Constraint> constraints_of_qconv2d() {
  const std::string prefix = "cpu.conv2d.";
  const Constraint layout = {prefix + "layout", "activations are NHWC, weights OHWI", kRunThePasses,
                             [](const Matched& match) -> std::string {
                               const ir::Node& conv = *node_of(match);
                               if (layer::has_canonical_layout(conv)) return "";
                               return cat("layouts ", op::attr_string(conv, "data_layout"), " and ",
                                          op::attr_string(conv, "kernel_layout"),
                                          ", the kernels take NHWC and OHWI");
                             }};
  Constraint operands = layer_operands(prefix);
  operands.requirement +=
      "; on processors of 64 bits the bias may also be the reshaped sums of another layer, of 16, 32, ... "
      "channels";
  // Which extent of the weights counts the channels is known by their layout.
  operands.violation = [violation = operands.violation](const Matched& match) {
    return layer::has_canonical_layout(*node_of(match)) ? violation(match) : "";
  };
  return {layout, layer_dtypes(prefix), layer_contract_among(prefix),
          int16_contract(prefix, "qnn.requantize"), operands};
}

void lower_qconv2d(Lowering& lowering, const NodeSequence& sequence) {
  const layer::QuantizedLayer layer = read_weighted_layer(lowering, sequence);
  const layer::Geometry& g = layer.geometry;
  const op::Window2d& window = g.window;
  // With one input channel a depthwise convolution is an ordinary one. With several outputs for each input
  // channel it is one of groups, for which alone there are vector kernels then.
  const bool is_16_bit = layer.input_dtype == ir::kInt16;
  const bool has_vectors = lowering.profile().conv2d_layout == kLayout_o16k4 && !is_16_bit;
  const bool depthwise = g.is_depthwise() && (g.out_c == g.groups || !has_vectors);

  uint16_t layout = depthwise ? lowering.profile().depthwise_layout : lowering.profile().conv2d_layout;
  if (is_16_bit) layout = kLayout_ohwi;
  const auto groups = static_cast<uint64_t>(g.groups), group_c = static_cast<uint64_t>(g.in_c / g.groups);
  const GroupMerge merge = merge_groups(layout, static_cast<uint64_t>(g.out_c), groups, group_c);
  const uint64_t merged_groups = groups / merge.merged;
  const Conv2dArgs args = geometry_args(layer, merged_groups);
  const bool is_for_vectors = layout == kLayout_o16k4 && has_vector_variants(args);
  if (layout == kLayout_o16k4) layout = vector_layout(args, lowering.profile().prefers_eights);
  if (layout == kLayout_o2r4) {
    layout = !has_scalar_variants(layer) ? kLayout_ohwi : fits_halves(layer) ? kLayout_o2h4 : kLayout_o2r4;
  }
  if (layout == kLayout_o4k16 && !has_scalar_variants(layer)) layout = kLayout_ohwi;
  const LayoutWindow layout_window = {static_cast<uint64_t>(window.kernel_h),
                                      static_cast<uint64_t>(window.kernel_w), group_c};
  // A computed bias has no room for rests.
  std::optional<uint32_t> max_rests;
  if (is_for_vectors && lowering.profile().adds_weight_rests && groups == 1)
    max_rests = layer.computed_bias ? 0 : kMaxWeightRests;
  LayerStep made =
      make_layer_step(lowering, sequence, layer, depthwise ? kKernel_depthwise_conv2d : kKernel_conv2d,
                      layout, layout_window, merge, max_rests);
  made.step.params = Conv2dParams{
      .contract = layer_contract(layer),
      .weights_layout = layout,
      .kernel_h = static_cast<uint32_t>(window.kernel_h),
      .kernel_w = static_cast<uint32_t>(window.kernel_w),
      .stride_h = static_cast<uint32_t>(window.stride_h),
      .stride_w = static_cast<uint32_t>(window.stride_w),
      .dilation_h = static_cast<uint32_t>(window.dilation_h),
      .dilation_w = static_cast<uint32_t>(window.dilation_w),
      .pad_top = static_cast<uint32_t>(window.pad_top),
      .pad_left = static_cast<uint32_t>(window.pad_left),
      .groups = static_cast<uint32_t>(merged_groups),
      .input_zero_point = *layer.input_zero_point,
      .weights_zero_point = made.weights.zero_point,
      .pad_value = layer.padding->value.value_or(*layer.input_zero_point),
      .output_zero_point = output_zero_point(layer),
      .clamp_min = layer.clamp.min,
      .clamp_max = layer.clamp.max,
      .float_epilogues = std::move(made.float_epilogues),
      .int16_groups =
          static_cast<uint8_t>(is_for_vectors ? made.int16_groups(lowering, vector_tap_bytes(args)) : 0),
  };
  lowering.add_step(std::move(made.step));
}

NodeSequence match_qconv2d_transpose(const Lowering& lowering, uint32_t node) {
  return match_weighted_layer(lowering, node, "qnn.conv2d_transpose");
}

std::vector<Constraint> constraints_of_qconv2d_transpose() {
  const std::string prefix = "cpu.conv2d_transpose.";
  return {layer_dtypes(prefix), layer_contract_among(prefix), int16_contract(prefix, "qnn.requantize"),
          layer_operands(prefix)};
}

// What vector kernels read; they take no more strides than taps, and no zero point of weights, and write no
// accumulators.
uint16_t transposed_layout(const Lowering& lowering, const layer::QuantizedLayer& layer) {
  const op::Window2d& window = layer.geometry.window;
  const int32_t zero_point = *layer.weight_zero_point - (layer.weight_dtype == ir::kUint8 ? 128 : 0);
  const bool has_vectors = lowering.profile().conv2d_layout == kLayout_o16k4 &&
                           layer.input_dtype != ir::kInt16 && zero_point == 0 &&
                           layer.nodes.requantize != nullptr && window.stride_h <= window.kernel_h &&
                           window.stride_w <= window.kernel_w;
  return has_vectors ? kLayout_o16p4 : kLayout_ohwi;
}

void lower_qconv2d_transpose(Lowering& lowering, const NodeSequence& sequence) {
  const layer::QuantizedLayer layer = read_weighted_layer(lowering, sequence);
  const op::Window2d& window = layer.geometry.window;
  const LayoutWindow layout_window = {
      static_cast<uint64_t>(window.kernel_h), static_cast<uint64_t>(window.kernel_w),
      static_cast<uint64_t>(layer.geometry.in_c), static_cast<uint64_t>(window.stride_h),
      static_cast<uint64_t>(window.stride_w)};
  const uint16_t layout = transposed_layout(lowering, layer);
  LayerStep made =
      make_layer_step(lowering, sequence, layer, kKernel_conv2d_transpose, layout, layout_window, {});
  made.step.params = Conv2dParams{
      .contract = layer_contract(layer),
      .weights_layout = layout,
      .kernel_h = static_cast<uint32_t>(window.kernel_h),
      .kernel_w = static_cast<uint32_t>(window.kernel_w),
      .stride_h = static_cast<uint32_t>(window.stride_h),
      .stride_w = static_cast<uint32_t>(window.stride_w),
      .dilation_h = 1,
      .dilation_w = 1,
      .pad_top = static_cast<uint32_t>(window.pad_top),
      .pad_left = static_cast<uint32_t>(window.pad_left),
      .groups = 1,
      .input_zero_point = *layer.input_zero_point,
      .weights_zero_point = made.weights.zero_point,
      .pad_value = *layer.input_zero_point,
      .output_zero_point = output_zero_point(layer),
      .clamp_min = layer.clamp.min,
      .clamp_max = layer.clamp.max,
      .float_epilogues = {},
      .int16_groups = 0,
  };
  lowering.add_step(std::move(made.step));
}

NodeSequence match_qdense(const Lowering& lowering, uint32_t node) {
  return match_weighted_layer(lowering, node, "qnn.dense");
}

std::vector<Constraint> constraints_of_qdense() {
  const std::string prefix = "cpu.dense.";
  return {layer_dtypes(prefix), layer_contract_among(prefix), int16_contract(prefix, "qnn.requantize"),
          layer_operands(prefix)};
}

void lower_qdense(Lowering& lowering, const NodeSequence& sequence) {
  const layer::QuantizedLayer layer = read_weighted_layer(lowering, sequence);
  uint16_t layout = lowering.profile().fully_connected_layout;
  if (layer.input_dtype == ir::kInt16) layout = kLayout_ohwi;
  // SMMLA multiplies two rows at a time. A single row gains nothing from it, so it takes SDOT's groups of
  // four.
  const ir::Shape& shape = lowering.type(layer.nodes.product->operands[0]).shape;
  const bool has_rows = std::ranges::any_of(shape.begin(), shape.end() - 1, [](int64_t n) { return n != 1; });
  if (layout == kLayout_o16k4 && lowering.profile().prefers_eights && has_rows) layout = kLayout_o16r8;
  const bool is_small = layout == kLayout_o4k4 || layout == kLayout_o4k16;
  if (is_small && layer.nodes.requantize == nullptr) layout = kLayout_ohwi;
  if (layout == kLayout_o4k4 && fits_halves(layer)) layout = kLayout_o4h4;
  LayerStep made = make_layer_step(lowering, sequence, layer, kKernel_fully_connected, layout,
                                   {1, 1, static_cast<uint64_t>(layer.geometry.in_c)}, {});
  made.step.params = FullyConnectedParams{
      .contract = layer_contract(layer),
      .weights_layout = layout,
      .input_zero_point = *layer.input_zero_point,
      .weights_zero_point = made.weights.zero_point,
      .output_zero_point = output_zero_point(layer),
      .clamp_min = layer.clamp.min,
      .clamp_max = layer.clamp.max,
      .float_epilogues = std::move(made.float_epilogues),
      .int16_groups = static_cast<uint8_t>(
          layout == kLayout_o16k4 ? made.int16_groups(lowering, static_cast<uint64_t>(layer.geometry.in_c))
                                  : 0),
  };
  lowering.add_step(std::move(made.step));
}

}  // namespace

std::vector<TableRow> layer_rows() {
  return {{"qconv2d", match_qconv2d, constraints_of_qconv2d(), lower_qconv2d},
          {"qconv2d_transpose", match_qconv2d_transpose, constraints_of_qconv2d_transpose(),
           lower_qconv2d_transpose},
          {"qdense", match_qdense, constraints_of_qdense(), lower_qdense}};
}

}  // namespace qplan::target::cpu
