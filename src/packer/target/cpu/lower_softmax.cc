// qnn.softmax: family softmax, with the parameters that TFLite's Prepare computes for 8 bits.
#include "kernels/numeric/quantize_multiplier.h"
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

}  // namespace

Chain match_softmax(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.softmax") ? Chain{node} : Chain{};
}

void lower_softmax(Lowering& lowering, const Chain& chain) {
  const ir::Node& node = lowering.node(chain.front());
  const ir::TensorType& input = lowering.type(node.operands[kData]);
  const format::Contract contract = tfl2_contract(node);
  const auto rank = static_cast<int64_t>(input.shape.size());
  const int64_t axis = op::normalized_axis(op::attr_int(node, "axis"), input.shape.size());
  if (axis != rank - 1) refuse("axis " + std::to_string(axis) + ", the kernel takes the last one");
  if (!is_8_bit(input.dtype))
    refuse("its dtype is " + ir::to_string(input.dtype) + ", expected int8 or uint8");
  const float output_scale = lowering.scale(node.operands[kOutputScale], "the output's scale");
  const int32_t output_zero_point =
      lowering.zero_point(node.operands[kOutputZeroPoint], "the output's zero point");
  if (output_scale != 1.0f / 256.0f || output_zero_point != input.dtype.min()) {
    refuse("its output must have scale 1/256 and zero point " + std::to_string(input.dtype.min()));
  }
  const InputScaling scaling = input_scaling(static_cast<float>(op::attr_float(node, "beta")),
                                             lowering.scale(node.operands[kScale], "the input's scale"));

  ProgramStep step = make_step(kKernel_softmax, node);
  step.inputs = {lowering.tensor(node.operands[kData])};
  step.outputs = {lowering.define(node.results[0])};
  step.params_type = format::KernelParams_SoftmaxParams;
  step.write_params = params_writer<format::SoftmaxParamsBuilder>([=](format::SoftmaxParamsBuilder& p) {
    p.add_contract(contract);
    p.add_input_multiplier(scaling.multiplier);
    p.add_input_left_shift(scaling.left_shift);
    p.add_diff_min(scaling.diff_min);
  });
  lowering.add_step(std::move(step));
}

}  // namespace qplan::target::cpu
