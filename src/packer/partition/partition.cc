#include "src/packer/partition/partition.h"

#include <algorithm>

#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/module.h"
#include "src/packer/op/op_def.h"
#include "src/packer/partition/stages.h"

namespace qplan::partition {
namespace {

using target::Target;

UnitGraph graph_of(const ir::Function& function, const Annotation& annotation,
                   std::span<const Target* const> targets) {
  UnitGraph graph;
  graph.reads.resize(annotation.units.size());
  for (uint32_t u = 0; u < annotation.units.size(); ++u) {
    const Unit& unit = annotation.units[u];
    const auto place = std::ranges::find(targets, unit.target) - targets.begin();
    graph.device.push_back(unit.target->is_cpu ? kNoDevice
                           : unit.is_program   ? static_cast<int32_t>(targets.size() + u)
                                               : static_cast<int32_t>(place));
    for (const uint32_t n : unit.nodes) {
      for (const ir::ValueId operand : function.nodes()[n].operands) {
        const ir::Value& value = function.value(operand);
        if (value.kind != ir::ValueKind::kResult) continue;
        const uint32_t from = annotation.unit_of[value.producer];
        std::vector<uint32_t>& reads = graph.reads[u];
        if (from != u && std::ranges::find(reads, from) == reads.end()) reads.push_back(from);
      }
    }
  }
  return graph;
}

std::string types_of(const ir::Function& function, const ir::Node& node) {
  std::string text;
  for (const ir::ValueId result : node.results) {
    text += cat(text.empty() ? "" : ", ", function.type(result));
  }
  return text;
}

std::vector<std::string> types_of(const ir::Function& function, const std::vector<ir::ValueId>& values) {
  std::vector<std::string> types;
  for (const ir::ValueId value : values) types.push_back(ir::to_string(function.type(value)));
  return types;
}

// Fills the report from what was decided.
class Reporter {
 public:
  Reporter(const pattern::Pre& pre, std::span<const Target* const> targets, const Annotation& annotation,
           const Islands& islands, const Outlined& outlined, const std::vector<Decision>& decisions)
      : pre_(pre),
        targets_(targets),
        annotation_(annotation),
        islands_(islands),
        outlined_(outlined),
        decisions_(decisions) {}

  Explain run() {
    add_nodes();
    for (const Unit& unit : annotation_.units) add_unit(unit);
    add_regions();
    add_decisions();
    for (const Target* target : targets_) add_device(*target);
    return std::move(explain_);
  }

 private:
  void add_nodes() {
    const ir::Function& function = pre_.function();
    for (uint32_t n = 0; n < function.nodes().size(); ++n) {
      const ir::Node& node = function.nodes()[n];
      explain_.nodes.push_back({node.op != nullptr ? node.op->name : "@" + node.callee, node.name,
                                types_of(function, node), target::node_macs(function, node),
                                annotation_.unit_of[n]});
    }
  }

  void add_unit(const Unit& unit) {
    const auto u = static_cast<uint32_t>(explain_.units.size());
    UnitReport report;
    report.nodes = unit.nodes;
    report.composite = unit.row == nullptr ? "" : unit.row->name;
    report.target = unit.target->name;
    const uint32_t island = islands_.island_of[u];
    if (island != kNoRegion) report.region = outlined_.function_name[island];
    report.pinned = unit.pinned;
    report.is_program = unit.is_program;
    report.macs = unit.macs;
    report.bytes = unit.bytes;
    report.weight_bytes = unit.weight_bytes;
    report.cpu_ns = unit.cpu_ns;
    add_reads(unit, &report);
    if (!unit.target->is_cpu && unit.cycles) {
      report.cycles = unit.cycles;
      report.ns = target::device_ns(unit.target->costs, *unit.cycles);
    }
    for (const Target* target : targets_) {
      if (target != unit.target && !target->is_cpu)
        report.verdicts.push_back(verdict(pre_, annotation_, unit, *target));
    }
    explain_.units.push_back(std::move(report));
  }

  void add_reads(const Unit& unit, UnitReport* report) {
    const ir::Function& function = pre_.function();
    const uint32_t self = annotation_.unit_of[unit.root()];
    std::vector<ir::ValueId> seen;
    for (const uint32_t n : unit.nodes) {
      for (const ir::ValueId operand : function.nodes()[n].operands) {
        const ir::Value& value = function.value(operand);
        if (value.kind == ir::ValueKind::kConstant || std::ranges::find(seen, operand) != seen.end())
          continue;
        ReadReport read;
        if (value.kind == ir::ValueKind::kResult) {
          read.unit = annotation_.unit_of[value.producer];
          if (read.unit == self) continue;
        } else {
          read.name = value.name;
        }
        seen.push_back(operand);
        read.type = ir::to_string(function.type(operand));
        read.bytes = function.type(operand).size_bytes();
        report->reads.push_back(std::move(read));
      }
      for (const ir::ValueId result : function.nodes()[n].results) {
        report->makes_output |= std::ranges::find(function.outputs(), result) != function.outputs().end();
      }
    }
  }

  void add_regions() {
    const ir::Function& function = pre_.function();
    const std::vector<Crossing> copies = crossings(function, annotation_, islands_);
    for (const uint32_t i : outlined_.order) {
      const Island& island = islands_.islands[i];
      RegionReport report;
      report.function = outlined_.function_name[i];
      report.target = annotation_.units[island.units[0]].target->name;
      report.num_units = static_cast<uint32_t>(island.units.size());
      for (const uint32_t u : island.units) {
        const UnitReport& unit = explain_.units[u];
        report.is_program |= unit.is_program;
        report.num_ops += static_cast<uint32_t>(unit.nodes.size());
        report.macs += unit.macs;
        report.bytes += unit.bytes;
        report.weight_bytes += unit.weight_bytes;
        report.cycles = saturating_sum(report.cycles, unit.cycles.value_or(0));
        report.ns = saturating_sum(report.ns, unit.ns.value_or(0));
        report.cpu_ns = saturating_sum(report.cpu_ns, unit.cpu_ns);
      }
      report.inputs = types_of(function, island.inputs);
      report.outputs = types_of(function, island.outputs);
      report.num_copies = copies[i].num_copies;
      report.copy_bytes = copies[i].bytes;
      report.copy_ns = target::copy_ns(cpu().cpu_costs, copies[i].bytes);
      explain_.regions.push_back(std::move(report));
    }
  }

  void add_decisions() {
    for (uint32_t i = 0; i < decisions_.size(); ++i) {
      const Island& island = islands_.islands[i];
      const Decision& decision = decisions_[i];
      const Unit& first = annotation_.units[island.units[0]];
      DecisionReport report;
      report.target = (first.gated_from != nullptr ? first.gated_from : first.target)->name;
      if (island.alive) report.region = outlined_.function_name[i];
      report.units = island.units;
      for (const uint32_t u : island.units) {
        report.num_ops += static_cast<uint32_t>(annotation_.units[u].nodes.size());
      }
      report.by = decision.is_program ? "program" : decision.pinned ? "pin" : prefer_name(decision.by);
      report.device_ns = decision.device_ns;
      report.cpu_ns = decision.cpu_ns;
      report.num_copies = decision.copies.num_copies;
      report.copy_bytes = decision.copies.bytes;
      report.copy_ns = decision.copy_ns;
      report.spared_ns = decision.spared_ns;
      report.device_pj = decision.device_pj;
      report.cpu_pj = decision.cpu_pj;
      report.copy_pj = decision.copy_pj;
      report.spared_pj = decision.spared_pj;
      explain_.decisions.push_back(std::move(report));
    }
  }

  const Target& cpu() const {
    return **std::ranges::find_if(targets_, [](const Target* target) { return target->is_cpu; });
  }

  static std::vector<std::pair<std::string, uint64_t>> costs_of(const Target& target) {
    if (target.is_cpu) {
      const target::CpuCosts& costs = target.cpu_costs;
      return {{"clock_khz", costs.clock_khz},
              {"macs_per_us", costs.macs_per_us()},
              {"bytes_per_us", costs.bytes_per_us()},
              {"pj_per_cycle", costs.pj_per_cycle}};
    }
    const target::DeviceCosts& costs = target.costs;
    return {{"clock_khz", costs.clock_khz},
            {"macs_per_cycle", costs.macs_per_cycle},
            {"dma_bytes_per_cycle", costs.dma_bytes_per_cycle},
            {"dma_latency_cycles", costs.dma_latency_cycles},
            {"fj_per_mac", costs.fj_per_mac},
            {"fj_per_byte", costs.fj_per_byte}};
  }

  void add_device(const Target& target) {
    DeviceReport report;
    report.target = target.name;
    report.options = target.options;
    report.costs = costs_of(target);
    for (const UnitReport& unit : explain_.units) {
      if (unit.target != target.name || (target.is_cpu && unit.is_program)) continue;
      report.num_ops += static_cast<uint32_t>(unit.nodes.size());
      report.macs += unit.macs;
      report.bytes += unit.bytes;
      report.weight_bytes += unit.weight_bytes;
      report.ns += target.is_cpu ? unit.cpu_ns : unit.ns.value_or(0);
    }
    for (const RegionReport& region : explain_.regions) report.num_regions += region.target == target.name;
    explain_.devices.push_back(std::move(report));
  }

  const pattern::Pre& pre_;
  const std::span<const Target* const> targets_;
  const Annotation& annotation_;
  const Islands& islands_;
  const Outlined& outlined_;
  const std::vector<Decision>& decisions_;
  Explain explain_;
};

// Pins are the user's word against the policy's.
void check_strict(const Explain& explain, const Target& preferred) {
  size_t off = 0;
  std::string text;  // each operator on a line of its own
  for (const UnitReport& unit : explain.units) {
    if (unit.target == preferred.name || unit.pinned) continue;
    if (unit.is_program && unit.region.empty()) continue;  // no placement runs it: check_programs says so
    off += unit.nodes.size();
    std::string reasons;
    for (const TargetVerdict& verdict : unit.verdicts) {
      if (verdict.target != preferred.name) continue;
      for (const target::Reason& reason : verdict.reasons) {
        reasons += cat(reasons.empty() ? "" : ", ", reason.text, " [", reason.id, "]");
      }
    }
    for (const uint32_t n : unit.nodes) {
      text += cat("\n  ", node_text(explain.nodes[n], n));
      if (n == unit.nodes.back()) text += cat(": ", reasons.empty() ? "no reason known" : reasons);
    }
  }
  if (off == 0) return;
  throw PackError(QPLAN_MODEL_UNSUPPORTED,
                  cat("placement strict: ", off, " of ", explain.nodes.size(), " operators are not on '",
                      preferred.name, "'; --placement=soft runs them on the next target:", text));
}

// Operators that would be on devices if latency were preferred.
uint32_t num_ops_by_latency(const ir::Function& main, const Target& cpu, Annotation annotation,
                            Islands islands) {
  gate_by_cost(main, cpu, Prefer::kLatency, &annotation, &islands);
  uint32_t num_ops = 0;
  for (const Unit& unit : annotation.units) {
    if (!unit.target->is_cpu) num_ops += static_cast<uint32_t>(unit.nodes.size());
  }
  return num_ops;
}

}  // namespace

Pin parse_pin(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    throw PackError(QPLAN_INVALID_ARGUMENT, cat("pin '", text, "' is not of the form NODE=TARGET"));
  }
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

PartitionResult partition(const ir::Module& module, std::span<const Target> targets,
                          const PartitionOptions& options) {
  if (module.functions().size() != 1) {
    throw PackError(QPLAN_INTERNAL, cat("partition: the module has ", module.functions().size(),
                                        " functions, expected main alone"));
  }
  const std::vector<const Target*> order = target::by_priority(targets);
  const auto cpu = std::ranges::find_if(order, [](const Target* target) { return target->is_cpu; });
  if (cpu == order.end())
    throw PackError(QPLAN_INVALID_ARGUMENT, "partition: there is no CPU among the targets");

  const ir::Function& main = module.main();
  const pattern::Pre pre(main);
  Annotation annotation = annotate(pre, order, options.pins, options.exclusions);
  Islands islands = find_islands(main, annotation, merge_regions(graph_of(main, annotation, order)));
  const bool gated = options.cost_gate && options.placement == Placement::kSoft;
  const Prefer prefer = options.prefer != Prefer::kDefault ? options.prefer
                        : targets.front().is_cpu           ? Prefer::kLatency
                                                           : Prefer::kNpu;
  const std::vector<Decision> decisions =
      gate_by_cost(main, **cpu, gated ? std::optional(prefer) : std::nullopt, &annotation, &islands);

  Outlined outlined = outline(main, annotation, islands);
  PartitionResult result;
  result.explain = Reporter(pre, order, annotation, islands, outlined, decisions).run();
  if (order.size() > 1) result.explain.prefer = gated ? prefer_name(prefer) : "none";
  result.explain.num_ops_by_latency = num_ops_by_latency(main, **cpu, annotation, islands);
  if (options.placement == Placement::kStrict) check_strict(result.explain, *order.front());
  for (const uint32_t i : outlined.order) {
    Region region{outlined.function_name[i], annotation.units[islands.islands[i].units[0]].target, {}, {}};
    for (const uint32_t u : islands.islands[i].units) {
      const Unit& unit = annotation.units[u];
      region.nodes.insert(region.nodes.end(), unit.nodes.begin(), unit.nodes.end());
      if (unit.row->is_operator()) {
        for (const uint32_t n : unit.nodes) region.units.push_back({n});
      } else {
        region.units.push_back(unit.nodes);
      }
    }
    std::ranges::sort(region.nodes);
    result.regions.push_back(std::move(region));
  }
  result.module = std::move(outlined.module);
  ir::verify(result.module);
  return result;
}

}  // namespace qplan::partition
