#include <algorithm>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/vta/compiler/layers/layers.h"

namespace qplan::vta::compiler {
namespace {

ActivationLayout layout_of(const UnitActivation& activation) {
  return with_border(activation.h, activation.w, activation.channels, activation.needed);
}

template <typename T>
T scalar(const Candidate& c, const ir::Node& node, size_t operand, const char* what) {
  const ir::ConstantRef& constant = c.function().value(node.operands[operand]).constant;
  if (constant == nullptr || constant->as<T>().size() != 1)
    refuse_node(node, cat(what, " is not one constant"));
  return constant->as<T>()[0];
}

// Whatever the layouts are.
uint64_t at_least(const Candidate& candidate, const DeviceCosts& costs) {
  const ir::Function& function = candidate.function();
  uint64_t macs = 0;
  for (const uint32_t node : candidate.nodes()) macs += target::node_macs(function, function.nodes()[node]);
  const auto bytes = static_cast<uint64_t>(function.type(candidate.root().results[0]).size_bytes());
  return std::max(macs / costs.macs_per_cycle, target::dma_cycles(costs, bytes));
}

// All that the count depends on; empty where that is more than scalars (weights, biases).
std::string key_of(const Candidate& candidate, const DeviceCosts& costs) {
  constexpr size_t kScalarBytes = 8;
  const ir::Function& function = candidate.function();
  std::string key;
  ir::append_key(&key, costs.dma_bytes_per_cycle);
  ir::append_key(&key, costs.dma_latency_cycles);
  for (const uint32_t n : candidate.nodes()) {
    const ir::Node& node = function.nodes()[n];
    ir::append_key(&key, node.op);
    ir::append_key(&key, node.operands.size());
    for (const ir::ValueId operand : node.operands) {
      const ir::Value& value = function.value(operand);
      const ir::TensorType& type = function.type(operand);
      ir::append_key(&key, type.dtype);
      ir::append_key(&key, type.shape);
      ir::append_key(&key, value.constant != nullptr);
      if (value.constant == nullptr) continue;
      const auto bytes = value.constant->bytes();
      if (bytes.size() > kScalarBytes) return "";
      key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    ir::append_key(&key, node.attrs.size());
    for (const auto& [name, value] : node.attrs) {
      ir::append_key(&key, name);
      ir::append_key(&key, value);
    }
  }
  // An addition of a tensor to itself reads one.
  const ir::Node& first = function.nodes()[candidate.nodes().front()];
  ir::append_key(&key, first.operands.size() > 1 && first.operands[0] == first.operands[1]);
  return key;
}

}  // namespace

UnitActivation activation(const Candidate& c, ir::ValueId value) {
  const ir::TensorType& type = c.function().type(value);
  UnitActivation result;
  result.value = value;
  result.is_unsigned = type.dtype == ir::kUint8;
  const size_t rank = type.shape.size();
  if (rank > 0) result.channels = type.shape[rank - 1];
  for (size_t i = 0; i + 1 < rank; ++i) {
    const bool is_row = rank == 4 && i < 2;
    (is_row ? result.h : result.w) *= type.shape[i];
  }
  return result;
}

void refuse_node(const ir::Node& node, const std::string& reason) {
  throw PackError(QPLAN_MODEL_UNSUPPORTED, cat("vta: '", node.name, "': ", reason));
}

bool is_unsigned(const Candidate& c, ir::ValueId value) {
  return c.function().type(value).dtype == ir::kUint8;
}

float scale_operand(const Candidate& c, const ir::Node& node, size_t operand, const char* what) {
  return scalar<float>(c, node, operand, what);
}

int32_t device_zero_point(const Candidate& c, const ir::Node& node, size_t operand, const char* what) {
  return scalar<int32_t>(c, node, operand, what) - (is_unsigned(c, node.operands[0]) ? 128 : 0);
}

layer::Clamp device_clamp(const Candidate& c) {
  const ir::DType dtype = c.function().type(c.root().results[0]).dtype;
  const ir::Node* clip = c.node("clip");
  const layer::Clamp clamp = clip != nullptr ? layer::clip_clamp(*clip, dtype) : layer::full_clamp(dtype);
  const int32_t flip = dtype == ir::kUint8 ? 128 : 0;
  return {clamp.min - flip, clamp.max - flip};
}

UnitPlan plan_unit(const Candidate& c, std::string name, const std::vector<ir::ValueId>& inputs) {
  UnitPlan plan;
  plan.name = std::move(name);
  for (const ir::ValueId input : inputs) plan.inputs.push_back(activation(c, input));
  plan.output = activation(c, c.root().results[0]);
  return plan;
}

uint64_t UnitCycles::operator()(const Candidate& candidate, const DeviceCosts& costs) const {
  const std::string key = key_of(candidate, costs);
  if (key.empty()) return count(candidate, costs);
  const auto known = known_->find(key);
  if (known != known_->end()) return known->second;
  return known_->emplace(key, count(candidate, costs)).first->second;
}

uint64_t UnitCycles::count(const Candidate& candidate, const DeviceCosts& costs) const {
  Config priced = config_;
  priced.dma_bytes_per_cycle = static_cast<uint32_t>(costs.dma_bytes_per_cycle);
  priced.dma_latency_cycles = static_cast<uint32_t>(costs.dma_latency_cycles);
  try {
    const UnitPlan plan = read_(candidate);
    if (!plan.compile) return 0;
    std::vector<ActivationLayout> inputs;
    for (const UnitActivation& input : plan.inputs) inputs.push_back(layout_of(input));
    return plan.compile(priced, inputs, layout_of(plan.output)).estimate.total_cycles;
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    return at_least(candidate, costs);
  }
}

}  // namespace qplan::vta::compiler
