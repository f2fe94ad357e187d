#include "src/packer/target/target.h"

#include <algorithm>
#include <utility>

#include "src/base/checked.h"
#include "src/packer/op/op_def.h"
#include "src/packer/op/shape.h"

namespace qplan::target {
namespace {

// More is counted as this, so that sums and prices stay within 64 bits.
constexpr int64_t kMaxMacs = int64_t{1} << 50;

uint64_t ceil_div(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Without a layout of its own: in and out by DMA, and multiply-accumulates at the device's rate.
uint64_t operator_cycles(const Candidate& candidate, const DeviceCosts& costs) {
  const ir::Function& function = candidate.function();
  const ir::Node& node = candidate.root();
  uint64_t dma = 0;
  for (const ir::ValueId value : node.operands) {
    dma += dma_cycles(costs, static_cast<uint64_t>(function.type(value).size_bytes()));
  }
  for (const ir::ValueId value : node.results) {
    dma += dma_cycles(costs, static_cast<uint64_t>(function.type(value).size_bytes()));
  }
  return std::max(dma, ceil_div(node_macs(function, node), costs.macs_per_cycle));
}

}  // namespace

const ir::Node* Candidate::node(std::string_view name) const {
  const auto value = matches.find(name);
  return value ? function().producer(value->id) : nullptr;
}

std::vector<Reason> PatternRow::check(const Candidate& candidate) const {
  return reasons_against<Candidate>(constraints, candidate);
}

bool PatternRow::is_operator() const { return op::find_op(name) != nullptr; }

std::vector<const Target*> by_priority(std::span<const Target> targets) {
  std::vector<const Target*> order;
  for (const Target& target : targets) order.push_back(&target);
  std::ranges::stable_sort(order, std::greater(), [](const Target* target) { return target->priority; });
  return order;
}

Target operators_target(std::string name, const std::vector<std::string>& operators) {
  Target target;
  target.name = std::move(name);
  for (const std::string& op : operators) {
    target.table.push_back({op, "as it is", pattern::op(op), {}, operator_cycles});
  }
  return target;
}

uint64_t node_macs(const ir::Function& function, const ir::Node& node) {
  if (node.op == nullptr) return 0;
  const std::string& name = node.op->name;
  const bool is_conv = name == "qnn.conv2d" || name == "nn.conv2d";
  if (!is_conv && name != "qnn.dense" && name != "nn.dense") return 0;
  const ir::TensorType& weight = function.type(node.operands[1]);
  const size_t out_axis = is_conv ? op::weight_layout(op::attr_string(node, "kernel_layout")).o : 0;
  const int64_t per_output = weight.num_elements() / weight.shape[out_axis];
  int64_t macs = 0;
  const bool fits = checked_mul(function.type(node.results[0]).num_elements(), per_output, &macs);
  return static_cast<uint64_t>(fits ? std::min(macs, kMaxMacs) : kMaxMacs);
}

uint64_t device_ns(const DeviceCosts& costs, uint64_t cycles) {
  return mul_div(cycles, 1'000'000, costs.clock_khz);
}
uint64_t device_pj(const DeviceCosts& costs, uint64_t macs, uint64_t bytes) {
  return mul_div(macs, costs.fj_per_mac, 1000) + mul_div(bytes, costs.fj_per_byte, 1000);
}
uint64_t dma_cycles(const DeviceCosts& costs, uint64_t bytes) {
  return costs.dma_latency_cycles + ceil_div(bytes, costs.dma_bytes_per_cycle);
}

}  // namespace qplan::target
