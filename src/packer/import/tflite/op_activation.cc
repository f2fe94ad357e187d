// RELU, RELU6, RELU_N1_TO_1, RELU_0_TO_1 as operators of their own: requantise, then clamp in the output's
// units.
#include <cmath>

#include "src/packer/import/tflite/op_context.h"
#include "src/packer/import/tflite/weights.h"

namespace qplan::tfl {
namespace {

void import_clamp(OpContext& op, RealRange range) {
  op.expect_counts(1, 1, 1);
  const TensorInfo& input = op.input(0);
  op.require_same_quantized({&input, &op.output()});
  const QuantParams in = op.quantization(input), out = op.quantization(op.output());
  ir::ValueId value = op.value(input);
  if (in != out) {
    // TFLite divides the scales in float32 here (and in double in QUANTIZE). The quotient over 1 is that
    // multiplier.
    const float ratio = in.scale / out.scale;
    if (!(ratio > 0) || ratio > std::numeric_limits<float>::max()) {
      invalid("input scale " + to_text(in.scale) + " divided by output scale " + to_text(out.scale) +
              " leaves the range of float32");
    }
    value = op.emit(
        "qnn.requantize",
        {value, op.scale(ratio), op.zero_point(in.zero_point), op.scale(1.0f), op.zero_point(out.zero_point)},
        {{"out_dtype", ir::to_string(*op.output().dtype)}});
  }
  op.define(op.output(), emit_clamp(op, value, range, out));
}

}  // namespace

void import_relu(OpContext& op) { import_clamp(op, {.min = 0.0f}); }
void import_relu6(OpContext& op) { import_clamp(op, {0.0f, 6.0f}); }
void import_relu_n1_to_1(OpContext& op) { import_clamp(op, {-1.0f, 1.0f}); }
void import_relu_0_to_1(OpContext& op) { import_clamp(op, {0.0f, 1.0f}); }

// SOFTMAX and LOGISTIC: their outputs have one fixed quantisation, which TFLite checks.
namespace {

// [0, 1) in 256 steps.
QuantParams probability_quantization(const OpContext& op) {
  const QuantParams out = op.quantization(op.output());
  const auto lowest = static_cast<int32_t>(op.output().dtype->min());
  if (out != QuantParams{1.0f / 256, lowest}) {
    throw Unsupported{"output scale " + to_text(out.scale) + " and zero point " +
                      std::to_string(out.zero_point) + " instead of 0.00390625 and " +
                      std::to_string(lowest)};
  }
  return out;
}

void import_probability(OpContext& op, const char* ir_op, ir::Attrs attrs) {
  const TensorInfo& input = op.input(0);
  op.require_same_8bit({&input, &op.output()});
  const QuantParams in = op.quantization(input), out = probability_quantization(op);
  op.define(op.output(), op.emit(ir_op,
                                 {op.value(input), op.scale(in.scale), op.zero_point(in.zero_point),
                                  op.scale(out.scale), op.zero_point(out.zero_point)},
                                 std::move(attrs)));
}

// [0, 1) in 65536 steps from int8, in 32768 from int16.
void import_softmax_to_int16(OpContext& op, double beta) {
  const TensorInfo& input = op.input(0);
  const bool is_wide = input.dtype == ir::kInt16;
  if (input.is_variable) throw Unsupported{"variable tensor " + in_quotes(input.name)};
  if (!is_wide && input.dtype != ir::kInt8) throw Unsupported{type_name(input.file_type) + " input"};
  const QuantParams in = op.quantization(input), out = op.quantization(op.output());
  // TFLite takes scales that are within a thousandth.
  const float step = is_wide ? 1.0f / 32768 : 1.0f / 65536;
  if (std::fabs(out.scale - step) > 0.001f * step || out.zero_point != (is_wide ? 0 : -32768)) {
    throw Unsupported{"output scale " + to_text(out.scale) + " and zero point " +
                      std::to_string(out.zero_point) + " instead of " + to_text(step) + " and " +
                      (is_wide ? "0" : "-32768")};
  }
  op.define(op.output(), op.emit("nn.integer_softmax", {op.value(input)},
                                 {{"input_scale", static_cast<double>(in.scale)}, {"beta", beta}}));
}

}  // namespace

void import_softmax(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const double beta = op.options<tflite::SoftmaxOptions>().beta();
  if (op.output().dtype == ir::kInt16) return import_softmax_to_int16(op, beta);
  import_probability(op, "qnn.softmax", {{"axis", int64_t{-1}}, {"beta", beta}});
}

// [-255/16, 0] in 256 steps, which TFLite checks, too.
void import_log_softmax(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const TensorInfo& input = op.input(0);
  op.require_same_8bit({&input, &op.output()});
  const QuantParams in = op.quantization(input), out = op.quantization(op.output());
  const auto highest = static_cast<int32_t>(op.output().dtype->max());
  if (out != QuantParams{1.0f / 16, highest}) {
    throw Unsupported{"output scale " + to_text(out.scale) + " and zero point " +
                      std::to_string(out.zero_point) + " instead of 0.0625 and " + std::to_string(highest)};
  }
  op.define(op.output(), op.emit("qnn.log_softmax",
                                 {op.value(input), op.scale(in.scale), op.zero_point(in.zero_point),
                                  op.scale(out.scale), op.zero_point(out.zero_point)},
                                 {}));
}

namespace {

// LOGISTIC and TANH of int16.
void import_int16_function(OpContext& op, const char* ir_op) {
  const TensorInfo& input = op.input(0);
  op.require_same_quantized({&input, &op.output()});
  const QuantParams in = op.quantization(input), out = op.quantization(op.output());
  op.define(op.output(), op.emit(ir_op,
                                 {op.value(input), op.scale(in.scale), op.zero_point(in.zero_point),
                                  op.scale(out.scale), op.zero_point(out.zero_point)},
                                 {}));
}

}  // namespace

void import_tanh(OpContext& op) {
  op.expect_counts(1, 1, 1);
  if (op.input(0).dtype == ir::kInt16) return import_int16_function(op, "qnn.tanh");
  import_tanh_table(op);
}

// Vectors of the last axis, divided by their lengths.
void import_l2_normalization(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const TensorInfo& input = op.input(0);
  op.require_same_8bit({&input, &op.output()});
  const auto* options = op.optional_options<tflite::L2NormOptions>();
  if (options != nullptr && options->fused_activation_function() != tflite::ActivationFunctionType_NONE)
    throw Unsupported{"a fused activation"};
  const QuantParams in = op.quantization(input), out = op.quantization(op.output());
  if (out != QuantParams{1.0f / 128, input.dtype == ir::kInt8 ? 0 : 128}) {
    throw Unsupported{"output scale " + to_text(out.scale) + " and zero point " +
                      std::to_string(out.zero_point) + " instead of 0.0078125 and that of the middle"};
  }
  op.define(op.output(), op.emit("qnn.l2_normalize",
                                 {op.value(input), op.scale(in.scale), op.zero_point(in.zero_point),
                                  op.scale(out.scale), op.zero_point(out.zero_point)},
                                 {}));
}

void import_logistic(OpContext& op) {
  op.expect_counts(1, 1, 1);
  if (op.input(0).dtype == ir::kInt16) return import_int16_function(op, "qnn.sigmoid");
  import_probability(op, "qnn.sigmoid", {});
}

}  // namespace qplan::tfl
