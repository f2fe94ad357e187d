// qnn.softmax: family softmax; under tfl2 with the parameters that TFLite's Prepare computes for 8 bits.
#include "kernels/numeric/exp.h"
#include "kernels/numeric/quantize_multiplier.h"
#include "kernels/softmax/softmax.h"
#include "src/packer/op/shape.h"
#include "src/packer/target/cpu/families.h"

namespace qplan::target::cpu {
namespace {

enum Operand { kData, kScale, kZeroPoint, kOutputScale, kOutputZeroPoint };

// Differences to the maximum are Q5.26.
constexpr int32_t kIntegerBits = 5;

struct InputScaling {
  int32_t multiplier;
  int32_t left_shift;
  int32_t diff_min;
};

InputScaling input_scaling(double beta, double scale) {
  constexpr double kMaxMultiplier = 2147483647.0;  // 2^31 - 1
  const double real = beta * scale * static_cast<double>(1 << (31 - kIntegerBits));
  const QuantizedMultiplier quantized = quantize_multiplier(real < kMaxMultiplier ? real : kMaxMultiplier);
  if (quantized.shift < 0) refuse("its input's scale times beta is too small for fixed point");
  // The largest difference whose shifted value is at most 31 in Q5.26.
  const int64_t radius = (int64_t{(1 << kIntegerBits) - 1} << (31 - kIntegerBits)) >> quantized.shift;
  return {quantized.multiplier, quantized.shift, static_cast<int32_t>(-radius)};
}

struct Quantization {
  float scale;
  int32_t zero_point;
};

Quantization output_quantization(const Lowering& lowering, const ir::Node& node) {
  return {lowering.scale(node.operands[kOutputScale], "the output's scale"),
          lowering.zero_point(node.operands[kOutputZeroPoint], "the output's zero point")};
}

SoftmaxParams tfl2_params(const Lowering& lowering, const ir::Node& node, ir::DType dtype) {
  const Quantization output = output_quantization(lowering, node);
  if (output.scale != 1.0f / 256.0f || output.zero_point != dtype.min()) {
    refuse("its output must have scale 1/256 and zero point " + std::to_string(dtype.min()));
  }
  const InputScaling scaling = input_scaling(static_cast<float>(op::attr_float(node, "beta")),
                                             lowering.scale(node.operands[kScale], "the input's scale"));
  return {.contract = format::Contract_TFL2,
          .input_multiplier = scaling.multiplier,
          .input_left_shift = scaling.left_shift,
          .diff_min = scaling.diff_min};
}

SoftmaxParams f32e_params(const Lowering& lowering, const ir::Node& node) {
  const Quantization output = output_quantization(lowering, node);
  return {.contract = format::Contract_F32E,
          .output_scale = output.scale,
          .output_zero_point = output.zero_point};
}

// exp(-scale * d): docs/numerics/softmax.md.
TensorId exponentials(Lowering& lowering, const ir::Node& node) {
  if (op::attr_float(node, "beta") != 1.0) refuse("its beta is not 1, which contract 'f32e' has no rule for");
  const auto scale = static_cast<double>(lowering.scale(node.operands[kScale], "the input's scale"));
  std::vector<float> table;
  for (uint32_t d = 0; d < SoftmaxArgs::kTableEntries; ++d) {
    table.push_back(static_cast<float>(exp_double(-scale * d)));
  }
  return add_values<float>(lowering, ir::kFloat32, table, node.name + "/table");
}

}  // namespace

Chain match_softmax(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.softmax") ? Chain{node} : Chain{};
}

void lower_softmax(Lowering& lowering, const Chain& chain) {
  const ir::Node& node = lowering.node(chain.front());
  const ir::TensorType& input = lowering.type(node.operands[kData]);
  const format::Contract contract = contract_of(node, {format::Contract_TFL2, format::Contract_F32E});
  const auto rank = static_cast<int64_t>(input.shape.size());
  const int64_t axis = op::normalized_axis(op::attr_int(node, "axis"), input.shape.size());
  if (axis != rank - 1) refuse("axis " + std::to_string(axis) + ", the kernel takes the last one");
  if (!is_8_bit(input.dtype))
    refuse("its dtype is " + ir::to_string(input.dtype) + ", expected int8 or uint8");
  ProgramStep step = make_step(kKernel_softmax, node);
  step.inputs = {lowering.tensor(node.operands[kData])};
  if (contract == format::Contract_F32E) {
    step.inputs.push_back(exponentials(lowering, node));
    step.params = f32e_params(lowering, node);
  } else {
    step.params = tfl2_params(lowering, node, input.dtype);
  }
  step.outputs = {lowering.define(node.results[0])};
  lowering.add_step(std::move(step));
}

}  // namespace qplan::target::cpu
