#include "src/vta/compiler/unit_cycles.h"

#include <algorithm>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/key.h"
#include "src/vta/compiler/unit.h"

namespace qplan::target::vta {
namespace {

ActivationLayout layout_of(const UnitActivation& activation) {
  const Border& border = activation.needed;
  return {activation.h, activation.w,  activation.channels, border.top,
          border.left,  border.bottom, border.right};
}

// Whatever the layouts are.
uint64_t at_least(const Candidate& candidate, const DeviceCosts& costs) {
  const ir::Function& function = candidate.function();
  uint64_t macs = 0;
  for (const uint32_t node : candidate.nodes()) macs += node_macs(function, function.nodes()[node]);
  const auto bytes = static_cast<uint64_t>(function.type(candidate.root().results[0]).size_bytes());
  return std::max(macs / costs.macs_per_cycle, dma_cycles(costs, bytes));
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
    const UnitPlan plan = read_unit(priced, row_, candidate);
    std::vector<ActivationLayout> inputs;
    for (const UnitActivation& input : plan.inputs) inputs.push_back(layout_of(input));
    return plan.compile(priced, inputs, layout_of(plan.output)).estimate.total_cycles;
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    return at_least(candidate, costs);
  }
}

}  // namespace qplan::target::vta
