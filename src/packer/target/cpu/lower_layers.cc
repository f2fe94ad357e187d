// qconv2d, qdense: families conv2d, depthwise_conv2d and fully_connected.
#include <algorithm>

#include "kernels/conv2d/conv2d_taps.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/shape.h"
#include "src/packer/target/cpu/constraints.h"
#include "src/packer/target/cpu/float_forms.h"
#include "src/packer/target/cpu/requantization.h"

namespace qplan::target::cpu {
namespace {

Constraint layer_dtypes(const std::string& prefix) {
  return {prefix + "dtype",
          "input and output are int8 or uint8; the output is int32 where something else reads accumulators",
          kQuantizeTo8Bits, [](const Matched& match) -> std::string {
            const ir::DType input = match.lowering.type(node_of(match)->operands[product::kData]).dtype;
            const ir::DType output = match.lowering.type(chain_result(match.lowering, match.chain)).dtype;
            const bool is_acc32 = node_of(match, "qnn.requantize") == nullptr;
            if (is_8_bit(input) && (is_8_bit(output) || is_acc32)) return "";
            return cat(input, " to ", output, ", the kernels take 8 bits to 8 bits");
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
      kMakeConstant, [](const Matched& match) {
        return refusal_of([&] { check_weighted_layer(match.lowering, match.chain); });
      }};
}

bool is_canonical(const ir::Node& conv) {
  return op::attr_string(conv, "data_layout") == "NHWC" && op::attr_string(conv, "kernel_layout") == "OHWI";
}

int32_t pad_value(const ir::Node& node, int32_t input_zero_point) {
  const ir::AttrValue* value = node.attrs.find("pad_value");
  return value == nullptr ? input_zero_point : static_cast<int32_t>(std::get<int64_t>(*value));
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

// For a target whose layout is o16k4: of it and the layouts like it the one that vector kernels read as it
// is.
uint16_t vector_layout(const op::Window2d& window, format::Contract contract, const ir::TensorType& input,
                       const ir::TensorType& output, uint64_t groups) {
  Conv2dArgs args;
  args.input_c = static_cast<uint32_t>(input.shape[3]);
  args.output_w = static_cast<uint32_t>(output.shape[2]);
  args.output_c = static_cast<uint32_t>(output.shape[3]);
  args.kernel_h = static_cast<uint32_t>(window.kernel_h);
  args.kernel_w = static_cast<uint32_t>(window.kernel_w);
  args.stride_h = static_cast<uint32_t>(window.stride_h);
  args.dilation_h = static_cast<uint32_t>(window.dilation_h);
  args.dilation_w = static_cast<uint32_t>(window.dilation_w);
  args.groups = static_cast<uint32_t>(groups);
  args.contract = contract == format::Contract_ACC32 ? Contract::kAcc32 : Contract::kTfl2;
  return has_vector_variants(args) ? layout_in_place(args) : uint16_t{kLayout_o16k4};
}

// Of the layers for which there are kernels in general registers, which read o2r4.
bool has_scalar_variants(const op::Window2d& window, format::Contract contract, int64_t groups) {
  return groups == 1 && contract != format::Contract_ACC32 &&
         (window.dilation_w == 1 || window.kernel_w == 1);
}

// Whether the weights of each two outputs fit int16 as layouts of halves have them (kernels/layouts.def).
bool fits_halves(const Lowering& lowering, const LayerInput& input, uint64_t num_o, uint64_t num_k) {
  constexpr uint64_t kMaxSum = uint64_t{1} << 23;
  const ir::Constant& weights = lowering.constant(input.weights, "the weights");
  const uint8_t flip = weights.type().dtype == ir::kUint8 ? 0x80 : 0;
  const auto weight = [&](uint64_t o, uint64_t k) {
    return static_cast<int8_t>(weights.bytes()[static_cast<size_t>(o * num_k + k)] ^ flip);
  };
  const auto largest_input = static_cast<uint64_t>(
      std::max(input.dtype.max() - input.zero_point, input.zero_point - input.dtype.min()));
  for (uint64_t o = 1; o < num_o; o += 2) {
    uint64_t sum = 0;
    for (uint64_t k = 0; k < num_k; ++k) {
      const int32_t odd = weight(o, k);
      if (odd == INT8_MIN && weight(o - 1, k) < 0) return false;
      sum += static_cast<uint64_t>(odd < 0 ? -odd : odd);
    }
    if (sum * largest_input >= kMaxSum) return false;
  }
  return true;
}

}  // namespace

Chain match_qconv2d(const Lowering& lowering, uint32_t node) {
  return match_weighted_layer(lowering, node, "qnn.conv2d");
}

std::vector<Constraint> constraints_of_qconv2d() {
  const std::string prefix = "cpu.conv2d.";
  const Constraint layout = {prefix + "layout", "activations are NHWC, weights OHWI", kRunThePasses,
                             [](const Matched& match) -> std::string {
                               const ir::Node& conv = *node_of(match);
                               if (is_canonical(conv)) return "";
                               return cat("layouts ", op::attr_string(conv, "data_layout"), " and ",
                                          op::attr_string(conv, "kernel_layout"),
                                          ", the kernels take NHWC and OHWI");
                             }};
  Constraint operands = layer_operands(prefix);
  // Which extent of the weights counts the channels is known by their layout.
  operands.violation = [violation = operands.violation](const Matched& match) {
    return is_canonical(*node_of(match)) ? violation(match) : "";
  };
  return {layout, layer_dtypes(prefix), layer_contract_among(prefix), operands};
}

void lower_qconv2d(Lowering& lowering, const Chain& chain) {
  const WeightedLayer layer = read_weighted_layer(lowering, chain);
  const ir::Node& conv = *layer.product;
  const ir::TensorType& input = lowering.type(conv.operands[product::kData]);
  const ir::TensorType& weight = lowering.type(conv.operands[product::kWeight]);
  const ir::TensorType& output = lowering.type(layer.result);
  const bool is_acc32 = layer.requantize == nullptr;
  const op::Window2d window = op::conv2d_window(conv, weight);
  const int64_t groups = op::attr_int(conv, "groups");
  // With one input channel a depthwise convolution is an ordinary one. With several outputs for each input
  // channel it is one of groups, for which alone there are vector kernels then.
  const bool has_vectors = lowering.profile().conv2d_layout == kLayout_o16k4;
  const bool depthwise = groups > 1 && groups == input.shape[3] && weight.shape[3] == 1 &&
                         (weight.shape[0] == groups || !has_vectors);
  const auto num_o = static_cast<uint64_t>(weight.shape[0]);
  const auto num_k = static_cast<uint64_t>(weight.shape[1] * weight.shape[2] * weight.shape[3]);

  const int32_t input_zero_point =
      lowering.zero_point(conv.operands[product::kInputZeroPoint], "the input's zero point");
  const int32_t kernel_zero_point =
      lowering.zero_point(conv.operands[product::kKernelZeroPoint], "the weights' zero point");
  const int32_t outside = pad_value(conv, input_zero_point);
  const int32_t output_zero_point =
      is_acc32 ? 0 : lowering.zero_point(layer.requantize->operands[4], "the output's zero point");
  const format::Contract contract = layer_contract(layer);

  ProgramStep step = make_step(depthwise ? kKernel_depthwise_conv2d : kKernel_conv2d, conv);
  uint16_t layout = depthwise ? lowering.profile().depthwise_layout : lowering.profile().conv2d_layout;
  const auto group_c = static_cast<uint64_t>(weight.shape[3]);
  const GroupMerge merge = merge_groups(layout, num_o, static_cast<uint64_t>(groups), group_c);
  const uint64_t merged_groups = static_cast<uint64_t>(groups) / merge.merged;
  if (layout == kLayout_o16k4) layout = vector_layout(window, contract, input, output, merged_groups);
  const LayerInput layer_input = {input.dtype, input_zero_point, conv.operands[product::kWeight],
                                  kernel_zero_point};
  if (layout == kLayout_o2r4) {
    layout = !has_scalar_variants(window, contract, groups)     ? kLayout_ohwi
             : fits_halves(lowering, layer_input, num_o, num_k) ? kLayout_o2h4
                                                                : kLayout_o2r4;
  }
  const LayoutWindow layout_window = {static_cast<uint64_t>(window.kernel_h),
                                      static_cast<uint64_t>(window.kernel_w), group_c};
  const PackedWeights weights = pack_weights(lowering, conv.operands[product::kWeight], kernel_zero_point,
                                             layout, num_o, layout_window, merge);
  step.inputs = {lowering.tensor(conv.operands[product::kData]), weights.tensor};
  append_channel_constants(lowering, layer, contract, layout, num_o, &step.inputs);
  FloatForms forms = prove_float_forms(lowering, layer, layer_input, contract, layout, num_o, num_k);
  step.outputs = {lowering.define(layer.result)};
  step.macs = static_cast<uint64_t>(output.num_elements()) * num_k;
  step.params = Conv2dParams{
      .contract = contract,
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
      .input_zero_point = input_zero_point,
      .weights_zero_point = weights.zero_point,
      .pad_value = outside,
      .output_zero_point = output_zero_point,
      .clamp_min = layer.clamp.min,
      .clamp_max = layer.clamp.max,
      .float_forms = std::move(forms),
  };
  lowering.add_step(std::move(step));
}

Chain match_qdense(const Lowering& lowering, uint32_t node) {
  return match_weighted_layer(lowering, node, "qnn.dense");
}

std::vector<Constraint> constraints_of_qdense() {
  const std::string prefix = "cpu.dense.";
  return {layer_dtypes(prefix), layer_contract_among(prefix), layer_operands(prefix)};
}

void lower_qdense(Lowering& lowering, const Chain& chain) {
  const WeightedLayer layer = read_weighted_layer(lowering, chain);
  const ir::Node& dense = *layer.product;
  const ir::TensorType& input = lowering.type(dense.operands[product::kData]);
  const ir::TensorType& weight = lowering.type(dense.operands[product::kWeight]);
  const ir::TensorType& output = lowering.type(layer.result);
  const bool is_acc32 = layer.requantize == nullptr;
  uint16_t layout = lowering.profile().fully_connected_layout;
  const auto num_o = static_cast<uint64_t>(weight.shape[0]);
  const auto num_k = static_cast<uint64_t>(weight.shape[1]);
  const int32_t input_zero_point =
      lowering.zero_point(dense.operands[product::kInputZeroPoint], "the input's zero point");
  const int32_t kernel_zero_point =
      lowering.zero_point(dense.operands[product::kKernelZeroPoint], "the weights' zero point");
  const int32_t output_zero_point =
      is_acc32 ? 0 : lowering.zero_point(layer.requantize->operands[4], "the output's zero point");
  const format::Contract contract = layer_contract(layer);

  const LayerInput layer_input = {input.dtype, input_zero_point, dense.operands[product::kWeight],
                                  kernel_zero_point};
  if (layout == kLayout_o4k4 && is_acc32) layout = kLayout_ohwi;
  if (layout == kLayout_o4k4 && fits_halves(lowering, layer_input, num_o, num_k)) layout = kLayout_o4h4;
  ProgramStep step = make_step(kKernel_fully_connected, dense);
  const PackedWeights weights = pack_weights(lowering, dense.operands[product::kWeight], kernel_zero_point,
                                             layout, num_o, {1, 1, num_k});
  step.inputs = {lowering.tensor(dense.operands[product::kData]), weights.tensor};
  append_channel_constants(lowering, layer, contract, layout, num_o, &step.inputs);
  FloatForms forms = prove_float_forms(lowering, layer, layer_input, contract, layout, num_o, num_k);
  step.outputs = {lowering.define(layer.result)};
  step.macs = static_cast<uint64_t>(output.num_elements()) * num_k;
  step.params = FullyConnectedParams{
      .contract = contract,
      .weights_layout = layout,
      .input_zero_point = input_zero_point,
      .weights_zero_point = weights.zero_point,
      .output_zero_point = output_zero_point,
      .clamp_min = layer.clamp.min,
      .clamp_max = layer.clamp.max,
      .float_forms = std::move(forms),
  };
  lowering.add_step(std::move(step));
}

}  // namespace qplan::target::cpu
