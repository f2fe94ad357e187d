#include "src/packer/partition/explain.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/packer/ir/cat.h"
#include "src/packer/ir/short_name.h"

namespace qplan::partition {
namespace {

using Json = nlohmann::ordered_json;

// "97.3" of two numbers, rounded down, so that 100.0 means all.
std::string percent(uint64_t part, uint64_t whole) {
  if (whole == 0) return "0.0";
  const uint64_t tenths = part / whole * 1000 + part % whole * 1000 / whole;
  return cat(tenths / 10, ".", tenths % 10);
}

std::string count(uint64_t number, const char* one, const char* many) {
  return cat(number, " ", number == 1 ? one : many);
}

template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json verdict_json(const TargetVerdict& verdict) {
  Json json;
  json["target"] = verdict.target;
  json["reasons"] = Json::array();
  for (const target::Reason& reason : verdict.reasons) {
    json["reasons"].push_back(Json{{"id", reason.id}, {"text", reason.text}, {"hint", reason.hint}});
  }
  json["near_miss"] = nullptr;
  if (verdict.near_miss) {
    const NearMissReport& miss = *verdict.near_miss;
    json["near_miss"] = Json{{"composite", miss.composite},
                             {"place", miss.place},
                             {"expected", miss.expected},
                             {"found", miss.found}};
  }
  json["estimated_cycles"] = optional_json(verdict.cycles);
  json["estimated_ns"] = optional_json(verdict.ns);
  return json;
}

Json unit_json(const UnitReport& unit) {
  Json json;
  json["nodes"] = unit.nodes;
  json["reads"] = Json::array();
  for (const ReadReport& read : unit.reads) {
    Json entry;
    entry["unit"] = optional_json(read.unit);
    if (!read.unit) entry["input"] = read.name;
    entry["type"] = read.type;
    entry["bytes"] = read.bytes;
    json["reads"].push_back(entry);
  }
  json["makes_output"] = unit.makes_output;
  json["composite"] = unit.composite;
  json["target"] = unit.target;
  json["region"] = unit.region;
  json["pinned"] = unit.pinned;
  json["macs"] = unit.macs;
  json["bytes"] = unit.bytes;
  json["weight_bytes"] = unit.weight_bytes;
  json["cpu_ns"] = unit.cpu_ns;
  json["estimated_cycles"] = optional_json(unit.cycles);
  json["estimated_ns"] = optional_json(unit.ns);
  json["verdicts"] = Json::array();
  for (const TargetVerdict& verdict : unit.verdicts) json["verdicts"].push_back(verdict_json(verdict));
  return json;
}

Json region_json(const RegionReport& region) {
  Json json;
  json["function"] = region.function;
  json["target"] = region.target;
  json["ops"] = region.num_ops;
  json["units"] = region.num_units;
  json["macs"] = region.macs;
  json["bytes"] = region.bytes;
  json["weight_bytes"] = region.weight_bytes;
  json["estimated_cycles"] = region.cycles;
  json["estimated_ns"] = region.ns;
  json["cpu_ns"] = region.cpu_ns;
  json["inputs"] = region.inputs;
  json["outputs"] = region.outputs;
  json["copies"] = region.num_copies;
  json["copy_bytes"] = region.copy_bytes;
  json["blob_bytes"] = region.blob_bytes;
  json["program_bytes"] = region.program_bytes;
  return json;
}

// "%0 qnn.conv2d 'a', %1 nn.bias_add 'a'"; the name once where all have the same.
std::string unit_title(const Explain& explain, const UnitReport& unit) {
  const std::string& first = explain.nodes[unit.nodes.front()].name;
  const bool same =
      std::ranges::all_of(unit.nodes, [&](uint32_t n) { return explain.nodes[n].name == first; });
  const std::string name = ir::short_name(first);
  std::string text;
  for (const uint32_t n : unit.nodes) {
    const NodeReport& node = explain.nodes[n];
    text += cat(text.empty() ? "" : ", ", "%", n, " ", node.op);
    if (!same && !node.name.empty()) text += cat(" '", ir::short_name(node.name), "'");
  }
  return same && !name.empty() ? cat(text, " '", name, "'") : text;
}

std::string tail(const target::Reason& reason) {
  return cat(reason.text, " [", reason.id, "]", reason.hint.empty() ? "" : cat("; ", reason.hint));
}

std::string unit_text(const Explain& explain, const UnitReport& unit) {
  std::string text =
      cat("  ", unit.target, unit.pinned ? " (pinned)" : "", ": ", unit_title(explain, unit), "\n");
  text += cat("      ", unit.composite.empty() ? "no composite" : unit.composite,
              unit.region.empty() ? "" : cat(" in @", unit.region), ", ", count(unit.macs, "MAC", "MACs"),
              ", ", unit.bytes, " bytes, weights ", unit.weight_bytes, " bytes; ");
  if (unit.cycles) text += cat(unit.target, " ", *unit.cycles, " cycles, ", *unit.ns / 1000, " us; ");
  text += cat("cpu ", unit.cpu_ns / 1000, " us\n");
  for (const TargetVerdict& verdict : unit.verdicts) {
    for (const target::Reason& reason : verdict.reasons) {
      text += cat("      not on ", verdict.target, ": ", tail(reason), "\n");
    }
  }
  return text;
}

}  // namespace

std::string node_text(const NodeReport& node, uint32_t index) {
  return node.name.empty() ? cat(node.op, " (%", index, ")") : cat(node.op, " '", node.name, "'");
}

std::vector<std::string> reason_lines(const Explain& explain, const UnitReport& unit) {
  const uint32_t first = unit.nodes.front();
  const NodeReport& node = explain.nodes[first];
  const std::string name = node.name.empty() ? cat("%", first) : node.name;
  std::vector<std::string> lines;
  for (const TargetVerdict& verdict : unit.verdicts) {
    for (const target::Reason& reason : verdict.reasons) {
      lines.push_back(cat(verdict.target, ": '", name, "' stays on '", unit.target, "': ", tail(reason)));
    }
  }
  return lines;
}

std::string Explain::summary() const {
  uint64_t macs = 0;
  for (const DeviceReport& device : devices) macs += device.macs;
  std::string text = "placement:";
  for (const DeviceReport& device : devices) {
    text += cat(text.back() == ':' ? " " : "; ", device.target, " ", device.num_ops, " of ",
                count(nodes.size(), "operator", "operators"), ", ", percent(device.macs, macs), " % of ",
                macs, " MACs, ", device.bytes + device.weight_bytes, " bytes");
  }
  uint64_t copies = 0, copy_bytes = 0;
  for (const RegionReport& region : regions) {
    copies += region.num_copies;
    copy_bytes += region.copy_bytes;
  }
  text += cat("; ", count(regions.size(), "region", "regions"), ", ",
              count(copies, "boundary copy", "boundary copies"), " (", copy_bytes, " bytes)");
  if (fallback) return text;
  return text + cat("; no CPU fallback, which saves ", saved_constant_bytes, " bytes of constants and ",
                    saved_memory_bytes, " bytes of memory");
}

std::string Explain::text() const {
  std::string text = summary() + "\n";
  if (!regions.empty()) text += "regions:\n";
  for (const RegionReport& region : regions) {
    text += cat(
        "  @", region.function, " on ", region.target, ": ", count(region.num_ops, "operator", "operators"),
        " in ", count(region.num_units, "unit", "units"), ", ", region.macs, " MACs, ", region.cycles,
        " cycles, ", region.ns / 1000, " us (cpu ", region.cpu_ns / 1000, " us), ",
        count(region.num_copies, "boundary copy", "boundary copies"), " (", region.copy_bytes, " bytes)\n");
  }
  text += "operators:\n";
  for (const UnitReport& unit : units) text += unit_text(*this, unit);
  return text;
}

std::string Explain::json() const {
  Json json;
  json["summary"] = summary();
  json["devices"] = Json::array();
  for (const DeviceReport& device : devices) {
    json["devices"].push_back(Json{{"target", device.target},
                                   {"options", device.options},
                                   {"ops", device.num_ops},
                                   {"regions", device.num_regions},
                                   {"macs", device.macs},
                                   {"bytes", device.bytes},
                                   {"weight_bytes", device.weight_bytes},
                                   {"estimated_ns", device.ns}});
  }
  json["regions"] = Json::array();
  for (const RegionReport& region : regions) json["regions"].push_back(region_json(region));
  json["units"] = Json::array();
  for (const UnitReport& unit : units) json["units"].push_back(unit_json(unit));
  json["nodes"] = Json::array();
  for (const NodeReport& node : nodes) {
    json["nodes"].push_back(Json{
        {"op", node.op}, {"name", node.name}, {"type", node.type}, {"macs", node.macs}, {"unit", node.unit}});
  }
  json["fallback"] = fallback;
  json["saved_constant_bytes"] = saved_constant_bytes;
  json["saved_memory_bytes"] = saved_memory_bytes;
  // Names come from models, whatever bytes they have.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace qplan::partition
