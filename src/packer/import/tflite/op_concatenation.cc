// CONCATENATION. Inputs of the output's quantisation are copied. TFLite rescales the others in float32, for
// uint8 only; that is imported where an integer requantisation gives the same byte for each of the 256 there
// are.
#include <algorithm>

#include "kernels/numeric/quantize_multiplier.h"
#include "kernels/numeric/requantize.h"
#include "src/packer/import/tflite/ops.h"

namespace qplan::tfl {
namespace {

int32_t clamp_u8(int64_t value) { return static_cast<int32_t>(std::clamp<int64_t>(value, 0, 255)); }

// Computes TFLite's ConcatenationWithScaling: round_half_away(q * scale - zero_point * scale) + output zero
// point, all in float32.
int32_t rescaled_in_float(int32_t q, QuantParams in, QuantParams out) {
  const float inverse = 1.0f / out.scale;
  const float scale = in.scale * inverse;
  const float bias = static_cast<float>(-in.zero_point) * scale;
  const float product = static_cast<float>(q) * scale;
  const float value = product + bias;
  if (!(value > -1e6f && value < 1e6f)) return value > 0 ? 255 : 0;  // far outside of the clamp
  const float away = value < 0 ? -0.5f : 0.5f;
  return clamp_u8(static_cast<int64_t>(static_cast<double>(value) + static_cast<double>(away)) +
                  out.zero_point);
}

bool requantize_is_exact(QuantParams in, QuantParams out) {
  const QuantizedMultiplier multiplier =
      quantize_multiplier(static_cast<double>(in.scale) / static_cast<double>(out.scale));
  if (multiplier.shift > 20) return false;
  for (int32_t q = 0; q < 256; ++q) {
    const int32_t units = requantize_tfl2(q - in.zero_point, multiplier.multiplier, multiplier.shift);
    if (clamp_u8(int64_t{units} + out.zero_point) != rescaled_in_float(q, in, out)) return false;
  }
  return true;
}

ir::ValueId rescaled(OpContext& op, const TensorInfo& input, QuantParams out) {
  const ir::ValueId value = op.value(input);
  const QuantParams in = op.quantization(input);
  if (in == out) return value;
  if (input.dtype != ir::kUint8) throw Unsupported{"int8 inputs of different quantisation"};
  if (!requantize_is_exact(in, out)) throw Unsupported{"uint8 inputs that are rescaled in float32"};
  return op.emit("qnn.requantize",
                 {value, op.scale(in.scale), op.zero_point(in.zero_point), op.scale(out.scale),
                  op.zero_point(out.zero_point)},
                 {{"out_dtype", std::string("uint8")}});
}

}  // namespace

void import_concatenation(OpContext& op) {
  constexpr size_t kMaxInputs = 4096;
  op.expect_counts(1, kMaxInputs, 1);
  const auto& options = op.options<tflite::ConcatenationOptions>();
  if (options.fused_activation_function() != tflite::ActivationFunctionType_NONE) {
    throw Unsupported{"a fused activation"};
  }
  const TensorInfo& output = op.output();
  op.require_same_8bit({&op.input(0), &output});
  const QuantParams out = op.quantization(output);
  std::vector<ir::ValueId> parts;
  for (size_t i = 0; i < op.num_inputs(); ++i) {
    op.require_same_8bit({&op.input(i), &output});
    parts.push_back(rescaled(op, op.input(i), out));
  }
  const size_t rank = op.shape(parts[0]).size();
  op.define(output, op.emit("concatenate", parts, {{"axis", OpContext::axis_of(options.axis(), rank)}}));
}

}  // namespace qplan::tfl
