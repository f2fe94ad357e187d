#include "src/packer/target/vta/unit_cycles.h"

#include <algorithm>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/target/vta/unit.h"

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

}  // namespace

uint64_t unit_cycles(const Config& config, std::string_view row_name, const Candidate& candidate,
                     const DeviceCosts& costs) {
  Config priced = config;
  priced.dma_bytes_per_cycle = static_cast<uint32_t>(costs.dma_bytes_per_cycle);
  priced.dma_latency_cycles = static_cast<uint32_t>(costs.dma_latency_cycles);
  try {
    const UnitPlan plan = read_unit(priced, row_name, candidate);
    std::vector<ActivationLayout> inputs;
    for (const UnitActivation& input : plan.inputs) inputs.push_back(layout_of(input));
    return plan.compile(priced, inputs, layout_of(plan.output)).estimate.total_cycles;
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    return at_least(candidate, costs);
  }
}

}  // namespace qplan::target::vta
