#include <algorithm>
#include <set>
#include <utility>

#include "format/memory_layout.h"
#include "format/plan_view.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/partition/partition.h"

namespace qplan::partition {
namespace {

using target::CompiledRegion;
using target::RegionRefused;

// One round: the programs of all regions, or what their compilers refuse of the given main.
class Round {
 public:
  explicit Round(const PartitionResult& placed) : placed_(placed) {}

  void run() {
    for (const Region& region : placed_.regions) code_.push_back(compile(region));
    if (refused_.empty()) ask_devices();
  }
  std::vector<Exclusion>& refused() { return refused_; }
  std::vector<std::optional<CompiledRegion>>& code() { return code_; }

 private:
  std::optional<CompiledRegion> compile(const Region& region) {
    if (!region.target->compile) return std::nullopt;
    const ir::Function& function = *placed_.module.find(region.function);
    try {
      CompiledRegion compiled = region.target->compile(placed_.module, function);
      target::check_region(*region.target, function, compiled);
      const uint64_t bytes = bank_bytes(compiled), limit = region.target->max_bank_bytes;
      if (limit != 0 && bytes > limit) {
        refuse(region, largest_node(function),
               {cat(region.target->name, ".region.bank"),
                cat("the buffers of its region take ", bytes, " bytes, the device has ", limit, " for them"),
                "use a smaller input, or pin some operators to the CPU"});
        return std::nullopt;
      }
      const uint32_t of_device = region.target->max_binds;
      const bool is_limited = of_device != 0 && of_device < format::kMaxNpuBinds;
      const uint32_t most = is_limited ? of_device : format::kMaxNpuBinds;
      if (compiled.slots.size() <= most) return compiled;
      refuse(region, busiest_node(function),
             {cat(region.target->name, ".boundary"),
              cat("its region would need ", compiled.slots.size(), " buffers, ",
                  is_limited ? "a job of the device" : "a plan's step", " has at most ", most),
              ""});
      return std::nullopt;
    } catch (const RegionRefused& refusal) {
      for (const auto& [node, reason] : refusal.nodes()) {
        if (node >= region.units.size()) {
          throw PackError(QPLAN_INTERNAL, cat("target '", region.target->name, "': it refuses node ", node,
                                              " of '", region.function, "', which has ", region.units.size(),
                                              "; this is a defect of the target's compiler"));
        }
        refuse(region, node, reason);
      }
      return std::nullopt;
    }
  }

  // Once a round, about programs that will be the plan's unless one is refused.
  void ask_devices() {
    std::set<const target::Target*> asked;
    for (const Region& first : placed_.regions) {
      if (!first.target->load || !asked.insert(first.target).second) continue;
      std::vector<target::RegionProgram> programs;
      std::vector<const Region*> regions;
      for (size_t r = 0; r < placed_.regions.size(); ++r) {
        const Region& region = placed_.regions[r];
        if (region.target != first.target || !code_[r]) continue;
        programs.push_back({placed_.module.find(region.function), &*code_[r]});
        regions.push_back(&region);
      }
      for (const target::ProgramRefusal& refusal : first.target->load(programs)) {
        const Region& region = *regions[refusal.program];
        // Without the one in the middle, two halves of a chain remain, and the fewest rounds follow.
        const auto middle = static_cast<uint32_t>(region.units.size() / 2);
        refuse(region, refusal.node.value_or(middle), refusal.reason);
      }
    }
  }

  void refuse(const Region& region, uint32_t node, const target::Reason& reason) {
    for (const uint32_t n : region.units[node]) refused_.push_back({n, region.target->name, reason});
  }

  // The least memory of the region's buffers, which all exist while it runs.
  static uint64_t bank_bytes(const CompiledRegion& compiled) {
    uint64_t alignment = format::kArenaAlignment;
    for (const target::RegionSlot& slot : compiled.slots)
      alignment = std::max(alignment, uint64_t{slot.alignment});
    uint64_t bytes = 0;
    for (const target::RegionSlot& slot : compiled.slots)
      bytes += (slot.arrangement.size + alignment - 1) / alignment * alignment;
    return bytes;
  }

  // The node with the most bytes in what it reads and writes.
  static uint32_t largest_node(const ir::Function& function) {
    uint32_t largest = 0;
    int64_t most = -1;
    for (uint32_t n = 0; n < function.nodes().size(); ++n) {
      int64_t bytes = 0;
      for (const ir::ValueId operand : function.nodes()[n].operands)
        bytes += function.type(operand).size_bytes();
      for (const ir::ValueId result : function.nodes()[n].results)
        bytes += function.type(result).size_bytes();
      if (bytes <= most) continue;
      most = bytes;
      largest = n;
    }
    return largest;
  }

  // The node with the most tensors from and to the outside.
  static uint32_t busiest_node(const ir::Function& function) {
    const std::span<const ir::ValueId> outputs = function.outputs();
    uint32_t busiest = 0;
    int64_t most = -1;
    for (uint32_t n = 0; n < function.nodes().size(); ++n) {
      int64_t count = 0;
      for (const ir::ValueId operand : function.nodes()[n].operands) {
        count += function.value(operand).kind == ir::ValueKind::kParam;
      }
      for (const ir::ValueId result : function.nodes()[n].results) {
        count += std::ranges::find(outputs, result) != outputs.end();
      }
      if (count <= most) continue;
      most = count;
      busiest = n;
    }
    return busiest;
  }

  const PartitionResult& placed_;
  std::vector<std::optional<CompiledRegion>> code_;
  std::vector<Exclusion> refused_;
};

// Replaces the tables' estimates by the compilers' counts.
void report_cycles(CompiledPartition* result, std::span<const target::Target> targets) {
  Explain& explain = result->placed.explain;
  for (size_t r = 0; r < result->code.size(); ++r) {
    if (!result->code[r]) continue;
    const CompiledRegion& code = *result->code[r];
    const Region& region = result->placed.regions[r];
    RegionReport& report = explain.regions[r];
    report.cycles = code.cycles;
    report.ns = target::device_ns(region.target->costs, code.cycles);
    report.blob_bytes = code.blob.size();
    report.program_bytes = code.program_bytes;
    report.macs += code.macs;
    if (code.units.size() != region.units.size()) continue;
    for (size_t u = 0; u < region.units.size(); ++u) {
      UnitReport& unit = explain.units[explain.nodes[region.units[u].front()].unit];
      unit.cycles = code.units[u].cycles;
      unit.ns = target::device_ns(region.target->costs, code.units[u].cycles);
    }
    if (code.macs == 0) continue;
    explain.units[explain.nodes[region.units[0].front()].unit].macs += code.macs;
    for (DeviceReport& device : explain.devices) {
      if (device.target == region.target->name) device.macs += code.macs;
    }
  }
  for (DeviceReport& device : explain.devices) {
    const auto target = std::ranges::find(targets, device.target, &target::Target::name);
    if (target->is_cpu || !target->compile) continue;
    device.ns = 0;
    for (const RegionReport& region : explain.regions) {
      if (region.target == device.target) device.ns += region.ns;
    }
  }
}

}  // namespace

CompiledPartition compile_partition(const ir::Module& module, std::span<const target::Target> targets,
                                    PartitionOptions options) {
  // Each round takes at least one node off a target for good.
  while (true) {
    CompiledPartition result;
    result.placed = partition(module, targets, options);
    Round round(result.placed);
    round.run();
    if (round.refused().empty()) {
      result.code = std::move(round.code());
      report_cycles(&result, targets);
      return result;
    }
    options.exclusions.insert(options.exclusions.end(), round.refused().begin(), round.refused().end());
  }
}

}  // namespace qplan::partition
