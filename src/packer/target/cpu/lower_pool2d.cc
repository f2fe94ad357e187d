// qnn.avg_pool2d, nn.max_pool2d.
#include "src/packer/op/shape.h"
#include "src/packer/target/cpu/families.h"

namespace qplan::target::cpu {
namespace {

// What an average under f32e looks at.
struct Rescaling {
  float input_scale = 0.0f;
  int32_t input_zero_point = 0;
  float output_scale = 0.0f;
  int32_t output_zero_point = 0;
  bool count_include_pad = false;
};

void add_pool_step(Lowering& lowering, const Chain& chain, KernelId kernel, format::Contract contract,
                   const Rescaling& rescaling) {
  const ir::Node& node = lowering.node(chain.front());
  const ir::TensorType& input = lowering.type(node.operands[0]);
  if (!is_8_bit(input.dtype))
    refuse("its dtype is " + ir::to_string(input.dtype) + ", expected int8 or uint8");
  const std::string& layout = op::attr_string(node, "layout");
  if (layout != "NHWC") refuse("layout " + layout + ", the kernel takes NHWC");
  const op::Window2d window = op::pool2d_window(node);
  if (window.dilation_h != 1 || window.dilation_w != 1) refuse("the kernel has no dilation");
  const Clamp clamp = chain_clamp(lowering, chain);

  ProgramStep step = make_step(kernel, node);
  step.inputs = {lowering.tensor(node.operands[0])};
  step.outputs = {lowering.define(chain_result(lowering, chain))};
  step.params = Pool2dParams{
      .contract = contract,
      .pool_h = static_cast<uint32_t>(window.kernel_h),
      .pool_w = static_cast<uint32_t>(window.kernel_w),
      .stride_h = static_cast<uint32_t>(window.stride_h),
      .stride_w = static_cast<uint32_t>(window.stride_w),
      .pad_top = static_cast<uint32_t>(window.pad_top),
      .pad_left = static_cast<uint32_t>(window.pad_left),
      .clamp_min = clamp.min,
      .clamp_max = clamp.max,
      .input_scale = rescaling.input_scale,
      .input_zero_point = rescaling.input_zero_point,
      .output_scale = rescaling.output_scale,
      .output_zero_point = rescaling.output_zero_point,
      .count_include_pad = rescaling.count_include_pad,
  };
  lowering.add_step(std::move(step));
}

}  // namespace

Chain match_avg_pool2d(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.avg_pool2d") ? with_clip(lowering, node) : Chain{};
}

void lower_avg_pool2d(Lowering& lowering, const Chain& chain) {
  enum Operand { kData, kInputScale, kInputZeroPoint, kOutputScale, kOutputZeroPoint };
  const ir::Node& node = lowering.node(chain.front());
  const format::Contract contract = contract_of(node, {format::Contract_TFL2, format::Contract_F32E});
  const Rescaling rescaling = {
      lowering.scale(node.operands[kInputScale], "the input's scale"),
      lowering.zero_point(node.operands[kInputZeroPoint], "the input's zero point"),
      lowering.scale(node.operands[kOutputScale], "the output's scale"),
      lowering.zero_point(node.operands[kOutputZeroPoint], "the output's zero point"),
      op::attr_bool(node, "count_include_pad")};
  if (contract == format::Contract_F32E) {
    return add_pool_step(lowering, chain, kKernel_avg_pool2d, contract, rescaling);
  }
  if (rescaling.count_include_pad) refuse("the kernel does not count what is padded, but under 'f32e'");
  if (rescaling.input_scale != rescaling.output_scale ||
      rescaling.input_zero_point != rescaling.output_zero_point) {
    refuse("input and output have different scales or zero points, the kernel takes equal ones");
  }
  add_pool_step(lowering, chain, kKernel_avg_pool2d, contract, {});
}

Chain match_max_pool2d(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "nn.max_pool2d") ? with_clip(lowering, node) : Chain{};
}

void lower_max_pool2d(Lowering& lowering, const Chain& chain) {
  add_pool_step(lowering, chain, kKernel_max_pool2d, format::Contract_NONE, {});
}

}  // namespace qplan::target::cpu
