// Quantised convolutions and linear layers.
#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/import/pytorch/weights.h"

namespace qplan::pt {
namespace {

Ref conv2d(OpContext& op, bool relu) {
  const Flow input = op.quantized_flow(0);
  const ConvParameters parameters = conv_parameters(op, 1);
  const QuantParams output = op.quantization(2, 3, op.dtype(input));
  const Weights weights = read_weights(op, parameters.weight, 4);
  for (const int64_t padding : parameters.padding) {
    if (padding < 0) invalid(cat("padding ", padding, " is negative"));
  }
  const std::vector<int64_t>& p = parameters.padding;
  const ir::ValueId accumulator = op.emit("qnn.conv2d", matmul_operands(op, input, weights),
                                          {{"strides", parameters.stride},
                                           {"padding", ir::Ints{p[0], p[1], p[0], p[1]}},
                                           {"dilation", parameters.dilation},
                                           {"groups", parameters.groups},
                                           {"data_layout", std::string("NCHW")},
                                           {"kernel_layout", std::string("OIHW")}});
  return emit_tail(op, accumulator,
                   {.bias = parameters.bias,
                    .input = input,
                    .weights = weights,
                    .channel_axis = 1,
                    .output = output,
                    .relu = relu});
}

Ref linear(OpContext& op, bool relu) {
  const Flow input = op.quantized_flow(0);
  const LinearParameters parameters = linear_parameters(op, 1);
  const QuantParams output = op.quantization(2, 3, op.dtype(input));
  const Weights weights = read_weights(op, parameters.weight, 2);
  const ir::ValueId accumulator = op.emit("qnn.dense", matmul_operands(op, input, weights), {});
  const auto last_axis = static_cast<int64_t>(op.shape(input).size()) - 1;
  return emit_tail(op, accumulator,
                   {.bias = parameters.bias,
                    .input = input,
                    .weights = weights,
                    .channel_axis = last_axis,
                    .output = output,
                    .relu = relu});
}

}  // namespace

Ref import_conv2d(OpContext& op) { return conv2d(op, false); }
Ref import_conv2d_relu(OpContext& op) { return conv2d(op, true); }
Ref import_linear(OpContext& op) { return linear(op, false); }
Ref import_linear_relu(OpContext& op) { return linear(op, true); }

Ref import_conv2d_prepack(OpContext& op) {
  return make_packed(op, "__torch__.torch.classes.quantized.Conv2dPackedParamsBase",
                     {{"weight", op.ref(0)},
                      {"bias", op.ref(1)},
                      {"stride", op.ref(2)},
                      {"padding", op.ref(3)},
                      {"dilation", op.ref(4)},
                      {"groups", op.ref(5)}});
}

Ref import_linear_prepack(OpContext& op) {
  return make_packed(op, "__torch__.torch.classes.quantized.LinearPackedParamsBase",
                     {{"weight", op.ref(0)}, {"bias", op.has(1) ? op.ref(1) : op.add(None{})}});
}

}  // namespace qplan::pt
