// RESHAPE, TRANSPOSE, PAD, SPLIT, RESIZE_BILINEAR: bytes move (or are interpolated) without regard to scales.
#include <algorithm>

#include "kernels/numeric/quantize_multiplier.h"
#include "kernels/numeric/requantize.h"
#include "src/packer/import/tflite/op_context.h"

namespace qplan::tfl {

void import_reshape(OpContext& op) {
  op.expect_counts(1, 2, 1);
  const TensorInfo& input = op.input(0);
  if (input.dtype != ir::kFloat32) op.require_same_8bit({&input, &op.output()});
  // The shape operand counts; models from before it have the option only.
  ir::Ints shape;
  if (const TensorInfo* operand = op.optional_input(1)) {
    shape = op.constant_ints(*operand, "shape values");
  } else if (const auto* options = op.optional_options<tflite::ReshapeOptions>();
             options != nullptr && options->new_shape() != nullptr) {
    shape.assign(options->new_shape()->begin(), options->new_shape()->end());
  } else {
    invalid("there is neither a shape operand nor the option new_shape");
  }
  op.define(op.output(), op.emit("reshape", {op.value(input)}, {{"newshape", shape}}));
}

void import_transpose(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const TensorInfo& input = op.input(0);
  op.require_same_8bit({&input, &op.output()});
  const ir::ValueId data = op.value(input);
  ir::Ints axes = op.constant_ints(op.input(1), "permutation values");
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, op.shape(data).size());
  op.define(op.output(), op.emit("transpose", {data}, {{"axes", axes}}));
}

// The pad value is the output's zero point: real 0.
void import_pad(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const TensorInfo& input = op.input(0);
  op.require_same_8bit({&input, &op.output()});
  const QuantParams out = op.quantization(op.output());
  const ir::ValueId data = op.value(input);
  const std::vector<int64_t> flat = op.constant_ints(op.input(1), "paddings");
  const size_t rank = op.shape(data).size();
  if (flat.size() != 2 * rank) {
    invalid("there are " + std::to_string(flat.size()) + " paddings, expected " + std::to_string(2 * rank) +
            ", two per dimension");
  }
  std::vector<ir::Ints> pad_width;
  for (size_t i = 0; i < flat.size(); i += 2) pad_width.push_back({flat[i], flat[i + 1]});
  op.define(op.output(),
            op.emit("nn.pad", {data, op.zero_point(out.zero_point)}, {{"pad_width", pad_width}}));
}

void import_split(OpContext& op) {
  op.expect_counts(2, 2, op.num_outputs());
  const std::vector<int64_t> axis = op.constant_ints(op.input(0), "axis");
  if (axis.size() != 1) invalid("there are " + std::to_string(axis.size()) + " axes, expected 1");
  const TensorInfo& input = op.input(1);
  op.require_8bit(input, "input");
  const ir::ValueId data = op.value(input);
  const auto sections = static_cast<int64_t>(op.num_outputs());
  if (op.options<tflite::SplitOptions>().num_splits() != sections) {
    invalid("num_splits is " + std::to_string(op.options<tflite::SplitOptions>().num_splits()) +
            ", but there are " + std::to_string(sections) + " outputs");
  }
  const std::vector<ir::ValueId> parts = op.emit_many(
      "split", {data},
      {{"indices_or_sections", sections}, {"axis", OpContext::axis_of(axis[0], op.shape(data).size())}});
  for (size_t i = 0; i < parts.size(); ++i) op.define(op.output(i), parts[i]);
}

void import_resize_bilinear(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const TensorInfo& input = op.input(0);
  op.require_same_8bit({&input, &op.output()});
  const std::vector<int64_t> size = op.constant_ints(op.input(1), "size values");
  if (size.size() != 2) {
    invalid("there are " + std::to_string(size.size()) + " size values, expected height and width");
  }
  const auto& options = op.options<tflite::ResizeBilinearOptions>();
  if (options.align_corners() && options.half_pixel_centers()) {
    invalid("align_corners and half_pixel_centers exclude each other");
  }
  const char* mode = options.align_corners()        ? "align_corners"
                     : options.half_pixel_centers() ? "half_pixel"
                                                    : "asymmetric";
  op.define(op.output(), op.emit("image.resize2d", {op.value(input)},
                                 {{"size", ir::Ints{size[0], size[1]}},
                                  {"layout", std::string("NHWC")},
                                  {"method", std::string("linear")},
                                  {"coordinate_transformation_mode", std::string(mode)}}));
}

// CONCATENATION. Inputs of the output's quantisation are copied. TFLite rescales the others in float32, for
// uint8 only; that is imported where an integer requantisation gives the same byte for each of the 256 there
// are.
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
