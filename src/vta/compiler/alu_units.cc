#include "src/vta/compiler/alu_units.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/target/cpu/lowering.h"
#include "src/packer/target/cpu/requantization.h"

namespace qplan::target::vta {
namespace {

bool is_unsigned(const Candidate& c, ir::ValueId value) {
  return c.function().type(value).dtype == ir::kUint8;
}

[[noreturn]] void refuse(const ir::Node& node, const std::string& reason) {
  throw PackError(QPLAN_MODEL_UNSUPPORTED, cat("vta: '", node.name, "': ", reason));
}

template <typename T>
T scalar(const Candidate& c, const ir::Node& node, size_t operand, const char* what) {
  const ir::ConstantRef& constant = c.function().value(node.operands[operand]).constant;
  if (constant == nullptr || constant->as<T>().size() != 1) refuse(node, cat(what, " is not one constant"));
  return constant->as<T>()[0];
}

// In the device's terms.
int32_t zero_point(const Candidate& c, const ir::Node& node, size_t operand, const char* what) {
  return scalar<int32_t>(c, node, operand, what) - (is_unsigned(c, node.operands[0]) ? 128 : 0);
}

// Of the candidate's clip, or of the dtype; in the device's terms.
cpu::Clamp clamp_of(const Candidate& c) {
  const ir::DType dtype = c.function().type(c.root().results[0]).dtype;
  cpu::Clamp clamp =
      c.node("clip") != nullptr ? cpu::clip_clamp(*c.node("clip"), dtype) : cpu::full_clamp(dtype);
  const int32_t flip = dtype == ir::kUint8 ? 128 : 0;
  return {clamp.min - flip, clamp.max - flip};
}

UnitPlan plan_of(const Candidate& c, std::string name, const std::vector<ir::ValueId>& inputs) {
  UnitPlan plan;
  plan.name = std::move(name);
  for (const ir::ValueId input : inputs) plan.inputs.push_back(activation(c, input));
  plan.output = activation(c, c.root().results[0]);
  return plan;
}

UnitPlan elementwise_plan(UnitPlan plan, Elementwise elementwise) {
  const auto shared = std::make_shared<const Elementwise>(std::move(elementwise));
  plan.compile = [shared](const Config& config, std::span<const ActivationLayout> inputs,
                          const ActivationLayout& output) {
    return compile_elementwise(config, *shared, inputs, output);
  };
  return plan;
}

UnitPlan pool_plan(const Candidate& c, const ir::Node& node, Pool pool) {
  UnitPlan plan = plan_of(c, node.name, {node.operands[0]});
  const auto shared = std::make_shared<const Pool>(std::move(pool));
  plan.compile = [shared](const Config& config, std::span<const ActivationLayout> inputs,
                          const ActivationLayout& output) {
    return compile_pool(config, *shared, inputs[0], output);
  };
  return plan;
}

}  // namespace

UnitPlan read_add_unit(const Config& /*config*/, const Candidate& c) {
  const ir::Node& sum = *c.node("sum");
  AddOperator add;
  add.name = sum.name;
  add.scale1 = scalar<float>(c, sum, 2, "the left scale");
  add.zero_point1 = zero_point(c, sum, 3, "the left zero point");
  add.scale2 = scalar<float>(c, sum, 4, "the right scale");
  add.zero_point2 = zero_point(c, sum, 5, "the right zero point");
  add.output_scale = scalar<float>(c, sum, 6, "the output's scale");
  add.output_zero_point = zero_point(c, sum, 7, "the output's zero point");
  const cpu::Clamp clamp = clamp_of(c);
  add.clamp_min = clamp.min;
  add.clamp_max = clamp.max;
  return elementwise_plan(plan_of(c, sum.name, {sum.operands[0], sum.operands[1]}), make_add(add));
}

UnitPlan read_clip_unit(const Config& /*config*/, const Candidate& c) {
  const ir::Node& clip = c.root();
  const cpu::Clamp clamp = clamp_of(c);
  return elementwise_plan(plan_of(c, clip.name, {clip.operands[0]}),
                          make_clip(clip.name, clamp.min, clamp.max));
}

UnitPlan read_max_pool_unit(const Config& /*config*/, const Candidate& c) {
  const ir::Node& node = *c.node("pool");
  const cpu::Clamp clamp = clamp_of(c);
  return pool_plan(c, node, make_max_pool(node.name, geometry(c), clamp.min, clamp.max));
}

std::optional<Pool> average_pool(const Candidate& c) {
  const ir::Node& node = *c.node("pool");
  const cpu::Clamp clamp = clamp_of(c);
  return make_average_pool(node.name, geometry(c), is_unsigned(c, node.operands[0]), clamp.min, clamp.max);
}

UnitPlan read_average_pool_unit(const Config& /*config*/, const Candidate& c) {
  const ir::Node& node = *c.node("pool");
  std::optional<Pool> pool = average_pool(c);
  if (!pool) refuse(node, "no multiplier divides its sums exactly");
  return pool_plan(c, node, *std::move(pool));
}

std::optional<MeanOperator> mean_operator(const Candidate& c) {
  const ir::Node& node = *c.node("mean");
  const ir::TensorType& data = c.function().type(node.operands[0]);
  for (size_t i = 1; i < 5; ++i) {
    const ir::ConstantRef& constant = c.function().value(node.operands[i]).constant;
    if (constant == nullptr || constant->type().num_elements() != 1) return std::nullopt;
  }
  MeanOperator mean;
  mean.name = node.name;
  mean.h = data.shape[1], mean.w = data.shape[2], mean.channels = data.shape[3];
  mean.input_zero_point = zero_point(c, node, 2, "the input's zero point");
  mean.output_zero_point = zero_point(c, node, 4, "the output's zero point");
  mean.multiplier = cpu::mean_multiplier(scalar<float>(c, node, 1, "the input's scale"),
                                         scalar<float>(c, node, 3, "the output's scale"),
                                         static_cast<uint64_t>(mean.h * mean.w));
  return mean;
}

UnitPlan read_mean_unit(const Config& /*config*/, const Candidate& c) {
  const ir::Node& node = *c.node("mean");
  const std::optional<MeanOperator> mean = mean_operator(c);
  if (!mean) refuse(node, "its scales or zero points are not one constant each");
  return pool_plan(c, node, make_mean(*mean));
}

}  // namespace qplan::target::vta
