// FULLY_CONNECTED. With one scale for all weights TFLite forms the multiplier from the float32 product of the
// scales, for int8 too (GetQuantizedConvolutionMultipler); per channel in double.
#include "src/packer/import/tflite/ops.h"
#include "src/packer/import/tflite/weights.h"

namespace qplan::tfl {

void import_fully_connected(OpContext& op) {
  op.expect_counts(2, 3, 1);
  const auto& options = op.options<tflite::FullyConnectedOptions>();
  const TensorInfo& input = op.input(0);
  const TensorInfo& weights = op.input(1);
  op.require_same_8bit({&input, &op.output()});
  const WeightQuantization quantization = weight_quantization(op, weights, 2, 0);
  if (weights.dtype != input.dtype) {
    throw Unsupported{type_name(weights.file_type) + " weights and " + type_name(input.file_type) + " input"};
  }
  if (options.weights_format() != tflite::FullyConnectedOptionsWeightsFormat_DEFAULT) {
    throw Unsupported{"shuffled weights"};
  }
  const int64_t units = weights.shape[0], depth = weights.shape[1];

  // Any rank: leading extents are batches, unless the last extent is not the depth.
  ir::ValueId data = op.value(input);
  const int64_t elements = op.type(data).num_elements();
  if (elements % depth != 0 ||
      (options.keep_num_dims() && (op.shape(data).empty() || op.shape(data).back() != depth))) {
    invalid("the input has shape " + to_text(op.shape(data)) + ", which does not fit weights of shape " +
            to_text(weights.shape));
  }
  if (!options.keep_num_dims() && op.shape(data) != ir::Shape{elements / depth, depth}) {
    data = op.emit("reshape", {data}, {{"newshape", ir::Ints{elements / depth, depth}}});
  }

  const QuantParams input_quantization = op.quantization(input);
  const ir::ValueId accumulator =
      op.emit("qnn.dense", matmul_operands(op, data, op.value(weights), input_quantization, quantization),
              {{"units", units}});
  const auto channel_axis = static_cast<int64_t>(op.shape(accumulator).size()) - 1;
  op.define(op.output(), emit_tail(op, accumulator,
                                   {.bias = op.optional_input(2),
                                    .output = op.output(),
                                    .input = input_quantization,
                                    .weights = quantization,
                                    .channels = units,
                                    .channel_axis = channel_axis,
                                    .multiplier = quantization.per_channel() ? Multiplier::kProductF64
                                                                             : Multiplier::kProductF32,
                                    .activation = options.fused_activation_function()}));
}

}  // namespace qplan::tfl
