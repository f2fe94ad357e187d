#include "src/packer/import/onnx/matmul_tail.h"

#include <cmath>

#include "src/packer/ir/cat.h"

namespace qplan::onnx {

ir::ConstantRef product_scales(const QParams& input, const QParams& kernel) {
  const float input_scale = input.scale->as<float>()[0];
  std::vector<float> scales;
  for (const float kernel_scale : kernel.scale->as<float>()) {
    const float scale = input_scale * kernel_scale;
    if (!std::isfinite(scale) || scale <= 0) {
      invalid(cat("input scale ", to_text(input_scale), " times weight scale ", to_text(kernel_scale),
                  " leaves the range of float32"));
    }
    scales.push_back(scale);
  }
  return ir::make_constant(ir::kFloat32, kernel.scale->type().shape, scales);
}

Value emit_tail(const OpContext& op, const Value& accumulator, const MatmulTail& tail) {
  const int64_t channels = op.shape(accumulator).at(static_cast<size_t>(tail.channel_axis));
  // Nodes may share the weights that a bias of zeros and scales are made for.
  op.graph().charge(static_cast<uint64_t>(channels) * (sizeof(int32_t) + sizeof(float)));
  Value bias = tail.bias;
  if (!bias.is_known()) bias = ir::make_constant(ir::kInt32, {channels}, std::vector<int32_t>(channels));
  if (op.type(bias).dtype != ir::kInt32) throw Unsupported{ir::to_string(op.type(bias).dtype) + " bias"};
  const Value sum = op.emit("nn.bias_add", {accumulator, bias}, {{"axis", tail.channel_axis}});
  const ir::ConstantRef scales = product_scales(tail.input, tail.kernel);
  ir::Attrs attrs{{"out_dtype", ir::to_string(tail.out_dtype)}, {"contract", std::string("f32e")}};
  if (!scales->type().shape.empty()) attrs.set("axis", tail.channel_axis);
  return op.emit("qnn.requantize",
                 {sum, scales, ir::make_scalar(int32_t{0}), tail.output.scale, tail.output.zero_point},
                 std::move(attrs));
}

}  // namespace qplan::onnx
