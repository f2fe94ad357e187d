#include <algorithm>
#include <unordered_set>

#include "src/base/checked.h"
#include "src/packer/ir/cat.h"
#include "src/packer/partition/stages.h"

namespace qplan::partition {
namespace {

uint64_t bytes_of(const ir::Function& function, ir::ValueId value) {
  return static_cast<uint64_t>(function.type(value).size_bytes());
}

// Who makes and who reads each value, in islands.
class Flow {
 public:
  Flow(const ir::Function& function, const Annotation& annotation, const Islands& islands)
      : function_(function), annotation_(annotation), islands_(islands) {}

  // The living island of the device that makes the value; kNoRegion: the CPU, another device, nobody.
  uint32_t maker(ir::ValueId value, const target::Target* device) const {
    const ir::Value& known = function_.value(value);
    return known.kind == ir::ValueKind::kResult ? on_device(known.producer, device) : kNoRegion;
  }
  uint32_t on_device(uint32_t node, const target::Target* device) const {
    const uint32_t unit = annotation_.unit_of[node];
    const uint32_t island = islands_.island_of[unit];
    const bool there =
        island != kNoRegion && islands_.islands[island].alive && annotation_.units[unit].target == device;
    return there ? island : kNoRegion;
  }

 private:
  const ir::Function& function_;
  const Annotation& annotation_;
  const Islands& islands_;
};

// By value: the nodes that read it; outputs of the function are read by kOutside.
constexpr uint32_t kOutside = UINT32_MAX;
std::vector<std::vector<uint32_t>> find_readers(const ir::Function& function) {
  std::vector<std::vector<uint32_t>> readers(function.num_values());
  for (uint32_t n = 0; n < function.nodes().size(); ++n) {
    for (const ir::ValueId operand : function.nodes()[n].operands) readers[operand.index].push_back(n);
  }
  for (const ir::ValueId output : function.outputs()) readers[output.index].push_back(kOutside);
  return readers;
}

class Gate {
 public:
  Gate(const ir::Function& function, const target::Target& cpu, std::optional<Prefer> prefer,
       Annotation* annotation, Islands* islands)
      : function_(function),
        cpu_(cpu),
        prefer_(prefer),
        annotation_(*annotation),
        islands_(*islands),
        readers_(find_readers(function)),
        flow_(function, annotation_, islands_) {}

  // An island that goes makes its neighbours more expensive: they are asked again.
  std::vector<Decision> run() {
    decisions_.resize(islands_.islands.size());
    std::vector<bool> ask(islands_.islands.size(), true);
    for (bool again = true; again;) {
      again = false;
      for (uint32_t i = 0; i < islands_.islands.size(); ++i) {
        if (!ask[i] || !islands_.islands[i].alive) continue;
        ask[i] = false;
        if (!gate(i)) continue;
        for (const uint32_t neighbour : neighbours(i)) ask[neighbour] = again = true;
      }
    }
    return std::move(decisions_);
  }

 private:
  // Copies that the island's place makes necessary.
  struct Copies {
    Crossing on_device;  // with the island on the device: to and from everybody else
    Crossing on_cpu;     // with the island on the CPU: to and from the device's other islands
  };

  Copies copies(uint32_t i) const {
    const Island& island = islands_.islands[i];
    const target::Target* device = annotation_.units[island.units[0]].target;
    Copies result;
    const auto count = [&](Crossing* crossing, ir::ValueId value) {
      ++crossing->num_copies;
      crossing->bytes += bytes_of(function_, value);
    };
    for (const ir::ValueId value : island.inputs) {
      count(flow_.maker(value, device) == kNoRegion ? &result.on_device : &result.on_cpu, value);
    }
    for (const ir::ValueId value : island.outputs) {
      bool others = false, same = false;
      for (const uint32_t reader : readers_[value.index]) {
        const uint32_t to = reader == kOutside ? kNoRegion : flow_.on_device(reader, device);
        if (to == i) continue;
        (to == kNoRegion ? others : same) = true;
      }
      if (others) count(&result.on_device, value);
      if (same) count(&result.on_cpu, value);
    }
    return result;
  }

  Decision judge(uint32_t i) const {
    const Island& island = islands_.islands[i];
    const target::Target& device = *annotation_.units[island.units[0]].target;
    Decision decision;
    uint64_t cycles = 0;
    for (const uint32_t u : island.units) {
      const Unit& unit = annotation_.units[u];
      decision.pinned |= unit.pinned;
      decision.is_program |= unit.is_program;
      // A vendor's library may state any number.
      cycles = saturating_sum(cycles, unit.cycles.value_or(0));
      decision.cpu_ns = saturating_sum(decision.cpu_ns, unit.cpu_ns);
      decision.device_pj += target::device_pj(device.costs, unit.macs, unit.bytes + unit.weight_bytes);
    }
    const Copies needed = copies(i);
    const target::CpuCosts& costs = cpu_.cpu_costs;
    if (prefer_ && !decision.pinned && !decision.is_program) decision.by = *prefer_;
    decision.device_ns = target::device_ns(device.costs, cycles);
    decision.copies = needed.on_device;
    decision.copy_ns = target::copy_ns(costs, needed.on_device.bytes);
    decision.spared_ns = target::copy_ns(costs, needed.on_cpu.bytes);
    decision.cpu_pj = target::cpu_pj(costs, decision.cpu_ns);
    decision.copy_pj = target::cpu_pj(costs, decision.copy_ns);
    decision.spared_pj = target::cpu_pj(costs, decision.spared_ns);
    return decision;
  }

  static bool pays(const Decision& decision) {
    switch (decision.by) {
      case Prefer::kDefault:
        return true;
      case Prefer::kNpu:
        return decision.copy_ns < saturating_sum(decision.cpu_ns, decision.spared_ns);
      case Prefer::kLatency:
        return saturating_sum(decision.device_ns, decision.copy_ns) <
               saturating_sum(decision.cpu_ns, decision.spared_ns);
      case Prefer::kEnergy:
        return saturating_sum(decision.device_pj, decision.copy_pj) <
               saturating_sum(decision.cpu_pj, decision.spared_pj);
    }
    return true;
  }

  static std::string why_not(const Decision& decision, const std::string& device, size_t num_ops) {
    const std::string island = cat("an island of ", num_ops, num_ops == 1 ? " operator" : " operators");
    const std::string copies =
        cat(decision.copies.num_copies, " boundary ", decision.copies.num_copies == 1 ? "copy (" : "copies (",
            decision.copies.bytes, " bytes)");
    const auto neighbours = [](uint64_t spared, const std::string& text) {
      return spared == 0 ? "" : cat(" and copies for its neighbours ", text);
    };
    const std::string on_cpu =
        time_text(decision.cpu_ns) + neighbours(decision.spared_ns, time_text(decision.spared_ns));
    switch (decision.by) {
      case Prefer::kNpu:
        return cat(island, " does not relieve the CPU: its ", copies, " take ", time_text(decision.copy_ns),
                   " of the CPU's time, the operators themselves ", on_cpu);
      case Prefer::kEnergy:
        return cat(island, " takes more energy there: '", device, "' ", energy_text(decision.device_pj),
                   " and ", copies, " ", energy_text(decision.copy_pj), ", the CPU ",
                   energy_text(decision.cpu_pj),
                   neighbours(decision.spared_pj, energy_text(decision.spared_pj)));
      default:
        return cat(island, " is not worth it: '", device, "' takes ", time_text(decision.device_ns), " and ",
                   copies, " ", time_text(decision.copy_ns), ", the CPU takes ", on_cpu);
    }
  }

  // Whether the island went back to the CPU.
  bool gate(uint32_t i) {
    Island& island = islands_.islands[i];
    const target::Target* device = annotation_.units[island.units[0]].target;
    const Decision decision = decisions_[i] = judge(i);
    if (pays(decision)) return false;
    size_t num_ops = 0;
    for (const uint32_t u : island.units) num_ops += annotation_.units[u].nodes.size();
    const target::Reason reason = {
        cat(device->name, ".cost"), why_not(decision, device->name, num_ops),
        cat("pin it with --pin NODE=", device->name, ", keep all with --no-cost-gate",
            decision.by == Prefer::kNpu ? "" : ", prefer the device with --prefer npu",
            ", or give other costs in a target file")};
    for (const uint32_t u : island.units) {
      Unit& unit = annotation_.units[u];
      unit.gated = reason;
      unit.gated_from = device;
      unit.target = &cpu_;
    }
    island.alive = false;
    return true;
  }

  std::vector<uint32_t> neighbours(uint32_t i) const {
    const Island& island = islands_.islands[i];
    std::vector<uint32_t> result;
    const auto add = [&](uint32_t node) {
      const uint32_t other = islands_.island_of[annotation_.unit_of[node]];
      if (other != kNoRegion && other != i) result.push_back(other);
    };
    for (const ir::ValueId value : island.inputs) {
      if (function_.value(value).kind == ir::ValueKind::kResult) add(function_.value(value).producer);
    }
    for (const ir::ValueId value : island.outputs) {
      for (const uint32_t reader : readers_[value.index]) {
        if (reader != kOutside) add(reader);
      }
    }
    return result;
  }

  const ir::Function& function_;
  const target::Target& cpu_;
  const std::optional<Prefer> prefer_;
  Annotation& annotation_;
  Islands& islands_;
  const std::vector<std::vector<uint32_t>> readers_;
  const Flow flow_;
  std::vector<Decision> decisions_;  // by island
};

}  // namespace

const char* prefer_name(Prefer prefer) {
  switch (prefer) {
    case Prefer::kDefault:
      return "none";
    case Prefer::kNpu:
      return "npu";
    case Prefer::kLatency:
      return "latency";
    case Prefer::kEnergy:
      return "energy";
  }
  return "none";
}

Islands find_islands(const ir::Function& function, const Annotation& annotation,
                     std::vector<uint32_t> region_of) {
  Islands result;
  for (uint32_t u = 0; u < region_of.size(); ++u) {
    if (region_of[u] == kNoRegion) continue;
    if (region_of[u] >= result.islands.size()) result.islands.resize(region_of[u] + 1);
    result.islands[region_of[u]].units.push_back(u);
  }
  const std::vector<std::vector<uint32_t>> readers = find_readers(function);
  for (uint32_t i = 0; i < result.islands.size(); ++i) {
    Island& island = result.islands[i];
    std::vector<uint32_t> nodes;
    for (const uint32_t u : island.units) {
      nodes.insert(nodes.end(), annotation.units[u].nodes.begin(), annotation.units[u].nodes.end());
    }
    std::ranges::sort(nodes);
    std::unordered_set<uint32_t> seen;
    const auto inside = [&](uint32_t node) { return region_of[annotation.unit_of[node]] == i; };
    for (const uint32_t n : nodes) {
      for (const ir::ValueId operand : function.nodes()[n].operands) {
        const ir::Value& value = function.value(operand);
        const bool own = value.kind == ir::ValueKind::kResult && inside(value.producer);
        if (value.kind == ir::ValueKind::kConstant || own || !seen.insert(operand.index).second) continue;
        island.inputs.push_back(operand);
      }
      for (const ir::ValueId value : function.nodes()[n].results) {
        const auto outside = [&](uint32_t reader) { return reader == kOutside || !inside(reader); };
        if (std::ranges::any_of(readers[value.index], outside)) island.outputs.push_back(value);
      }
    }
  }
  result.island_of = std::move(region_of);
  return result;
}

std::vector<Crossing> crossings(const ir::Function& function, const Annotation& annotation,
                                const Islands& islands) {
  const Flow flow(function, annotation, islands);
  const std::vector<std::vector<uint32_t>> readers = find_readers(function);
  std::vector<Crossing> result(islands.islands.size());
  for (uint32_t i = 0; i < islands.islands.size(); ++i) {
    const Island& island = islands.islands[i];
    if (!island.alive) continue;
    const target::Target* device = annotation.units[island.units[0]].target;
    const auto count = [&](ir::ValueId value) {
      ++result[i].num_copies;
      result[i].bytes += bytes_of(function, value);
    };
    for (const ir::ValueId value : island.inputs) {
      if (flow.maker(value, device) == kNoRegion) count(value);
    }
    for (const ir::ValueId value : island.outputs) {
      const auto leaves = [&](uint32_t reader) {
        return reader == kOutside || flow.on_device(reader, device) == kNoRegion;
      };
      if (std::ranges::any_of(readers[value.index], leaves)) count(value);
    }
  }
  return result;
}

std::vector<Decision> gate_by_cost(const ir::Function& function, const target::Target& cpu,
                                   std::optional<Prefer> prefer, Annotation* annotation, Islands* islands) {
  return Gate(function, cpu, prefer, annotation, islands).run();
}

}  // namespace qplan::partition
