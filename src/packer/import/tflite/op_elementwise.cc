// Element by element: ADD, SUB, MUL, DIV, MAXIMUM, MINIMUM; QUANTIZE and DEQUANTIZE; RELU and its like as
// operators of their own, LOGISTIC and TANH; and SOFTMAX, whose output has a fixed quantisation, too.
#include <algorithm>
#include <cmath>

#include "src/packer/import/tflite/op_context.h"

namespace qplan::tfl {
namespace {

// Whether TFLite takes the scale for a power of two: its logarithm is within 1e-3 of an integer.
bool is_power_of_two(float scale) {
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(scale), &exponent);  // in [1/2, 1)
  return fraction < 0.50034669 || fraction > 0.99930709;
}

// int16 tensors whose scales are all powers of two are added by a shift, unless the model says otherwise.
template <typename Options>
bool is_shifted_sum(const Options* options, std::initializer_list<float> scales) {
  if constexpr (requires { options->pot_scale_int16(); }) {
    return options != nullptr && options->pot_scale_int16() && std::ranges::all_of(scales, is_power_of_two);
  }
  return false;
}

template <typename Options>
void import_binary(OpContext& op, const char* ir_op) {
  op.expect_counts(2, 2, 1);
  const TensorInfo& lhs = op.input(0);
  const TensorInfo& rhs = op.input(1);
  op.require_same_quantized({&lhs, &rhs, &op.output()});
  const QuantParams left = op.quantization(lhs), right = op.quantization(rhs),
                    out = op.quantization(op.output());
  const auto* options = op.optional_options<Options>();  // absent: no activation
  ir::Attrs attrs;
  if (lhs.dtype == ir::kInt16 && is_shifted_sum(options, {left.scale, right.scale, out.scale})) {
    attrs.set("contract", std::string("pot"));
  }
  const ir::ValueId value =
      op.emit(ir_op,
              {op.value(lhs), op.value(rhs), op.scale(left.scale), op.zero_point(left.zero_point),
               op.scale(right.scale), op.zero_point(right.zero_point), op.scale(out.scale),
               op.zero_point(out.zero_point)},
              std::move(attrs));
  const auto activation =
      options == nullptr ? tflite::ActivationFunctionType_NONE : options->fused_activation_function();
  op.define(op.output(), emit_activation(op, value, activation, out));
}

// TFLite's reference kernel compares the integers and looks at no scale: they mean what the model says only
// in one quantisation.
void import_extremum(OpContext& op, const char* ir_op) {
  op.expect_counts(2, 2, 1);
  const TensorInfo& lhs = op.input(0);
  const TensorInfo& rhs = op.input(1);
  if (is_integer(lhs)) return import_integers(op, ir_op, tflite::ActivationFunctionType_NONE);
  op.require_same_quantized({&lhs, &rhs, &op.output()});
  const QuantParams out = op.quantization(op.output());
  if (op.quantization(lhs) != out || op.quantization(rhs) != out)
    throw Unsupported{"inputs and output of different quantisation"};
  op.define(op.output(), op.emit(ir_op, {op.value(lhs), op.value(rhs)}, {}));
}

}  // namespace

namespace {

template <typename Options>
void import_arithmetic(OpContext& op, const char* quantized, const char* of_integers) {
  if (op.num_inputs() == 0 || !is_integer(op.input(0))) return import_binary<Options>(op, quantized);
  const auto* options = op.optional_options<Options>();  // absent: no activation
  import_integers(
      op, of_integers,
      options == nullptr ? tflite::ActivationFunctionType_NONE : options->fused_activation_function());
}

}  // namespace

void import_add(OpContext& op) { import_arithmetic<tflite::AddOptions>(op, "qnn.add", "add"); }
void import_sub(OpContext& op) { import_arithmetic<tflite::SubOptions>(op, "qnn.subtract", "subtract"); }
void import_mul(OpContext& op) { import_arithmetic<tflite::MulOptions>(op, "qnn.mul", "multiply"); }
// Whether x is above 0, less whether it is below. NaN gives 0.
void import_sign(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const TensorInfo& input = op.input(0);
  if (input.dtype != ir::kFloat32 && input.dtype != ir::kInt32)
    throw Unsupported{type_name(input.file_type) + " input"};
  const bool is_float = input.dtype == ir::kFloat32;
  const ir::ValueId x = op.value(input);
  const ir::ValueId zero = op.constant(is_float ? ir::make_scalar(0.0f) : ir::make_scalar(int32_t{0}));
  const auto count = [&](ir::ValueId a, ir::ValueId b) {
    return op.emit("cast", {op.emit("less", {a, b}, {})}, {{"dtype", ir::to_string(*input.dtype)}});
  };
  op.define(op.output(), op.emit("subtract", {count(zero, x), count(x, zero)}, {}));
}

void import_cast(OpContext& op) {
  op.expect_counts(1, 1, 1);
  for (const TensorInfo* tensor : {&op.input(0), &op.output()}) {
    if (!tensor->dtype || tensor->dtype->lanes != 1)
      throw Unsupported{type_name(tensor->file_type) + (tensor == &op.output() ? " output" : " input")};
  }
  op.define(op.output(),
            op.emit("cast", {op.value(op.input(0))}, {{"dtype", ir::to_string(*op.output().dtype)}}));
}

// The rows of the indices name elements, or parts, of the input.
void import_gather_nd(OpContext& op) {
  op.expect_counts(2, 2, 1);
  op.require_movable(op.input(0), op.output());
  op.define(op.output(), op.emit("gather_nd", {op.value(op.input(0)), int32_indices(op)}, {}));
}

// Without an activation. The output has the first input's shape, or what both broadcast to.
void import_squared_difference(OpContext& op) {
  for (size_t i = 0; i < op.num_inputs(); ++i) op.require_8bit(op.input(i), "input");
  import_binary<tflite::MulOptions>(op, "qnn.squared_difference");
}
void import_div(OpContext& op) {
  if (op.num_inputs() > 0 && !is_integer(op.input(0))) op.require_8bit(op.input(0), "input");
  import_arithmetic<tflite::DivOptions>(op, "qnn.divide", "divide");
}
void import_prelu(OpContext& op) { import_binary<tflite::MulOptions>(op, "qnn.prelu"); }
void import_maximum(OpContext& op) { import_extremum(op, "maximum"); }
void import_minimum(OpContext& op) { import_extremum(op, "minimum"); }

// QUANTIZE and DEQUANTIZE.
namespace {

void require_quantized(const OpContext& op, const TensorInfo& tensor, const char* what) {
  if (tensor.dtype == ir::kInt16) return op.require_same_quantized({&tensor});
  op.require_8bit(tensor, what);
}

}  // namespace

void import_quantize(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const TensorInfo& input = op.input(0);
  // TFLite rescales int8 and int16 to int32, too.
  if (op.output().dtype != ir::kInt32 || input.dtype == ir::kFloat32)
    require_quantized(op, op.output(), "output");
  const QuantParams out = op.quantization(op.output());
  ir::Attrs attrs{{"out_dtype", ir::to_string(*op.output().dtype)}};
  if (input.dtype == ir::kFloat32) {
    // The contract's own rule, by name: the floats before it are meant as floats (qdq_to_integer).
    attrs.set("rule", std::string("div_away"));
    op.define(op.output(),
              op.emit("qnn.quantize", {op.value(input), op.scale(out.scale), op.zero_point(out.zero_point)},
                      std::move(attrs)));
    return;
  }
  // int16 of any zero point: softmax gives it.
  if (input.dtype == ir::kInt16 && op.output().dtype == ir::kInt32) {
    if (input.is_variable) throw Unsupported{"variable tensor " + tfl::in_quotes(input.name)};
  } else if (input.dtype != ir::kInt32) {
    require_quantized(op, input, "input");
  }
  const QuantParams in = op.quantization(input);
  op.define(op.output(), op.emit("qnn.requantize",
                                 {op.value(input), op.scale(in.scale), op.zero_point(in.zero_point),
                                  op.scale(out.scale), op.zero_point(out.zero_point)},
                                 std::move(attrs)));
}

void import_dequantize(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const TensorInfo& input = op.input(0);
  if (input.file_type == tflite::TensorType_FLOAT16 && op.is_known(input)) {
    return op.define(op.output(), op.constant(ir::widened_halves(*op.known_contents(input)), input.name));
  }
  require_quantized(op, input, "input");
  if (op.output().dtype != ir::kFloat32) throw Unsupported{type_name(op.output().file_type) + " output"};
  if (input.num_scales() > 1 && op.is_known(input)) {
    const int64_t axis = OpContext::axis_of(input.quantization->quantized_dimension(), input.shape.size());
    const WeightQuantization weights =
        weight_quantization(op, input, input.shape.size(), static_cast<size_t>(axis));
    return op.define(
        op.output(),
        op.emit("qnn.dequantize", {op.value(input), scales_constant(op, weights.scales), op.zero_point(0)},
                {{"axis", axis}}));
  }
  const QuantParams in = op.quantization(input);
  op.define(op.output(), op.emit("qnn.dequantize",
                                 {op.value(input), op.scale(in.scale), op.zero_point(in.zero_point)}, {}));
}

// RELU, RELU6, RELU_N1_TO_1, RELU_0_TO_1 as operators of their own: requantise, then clamp in the output's
// units.
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
