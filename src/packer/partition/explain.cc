#include <algorithm>
#include <initializer_list>

#include "src/base/listing.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/json.h"
#include "src/packer/partition/partition.h"

namespace qplan::partition {
namespace {

using ir::Json;

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
  if (unit.is_program) json["is_program"] = true;
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
  if (region.is_program) json["is_program"] = true;
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
  json["copy_ns"] = region.copy_ns;
  json["blob_bytes"] = region.blob_bytes;
  json["program_bytes"] = region.program_bytes;
  return json;
}

Json decision_json(const DecisionReport& decision) {
  Json json;
  json["target"] = decision.target;
  json["region"] = decision.region;
  json["units"] = decision.units;
  json["ops"] = decision.num_ops;
  json["by"] = decision.by;
  json["device_ns"] = decision.device_ns;
  json["cpu_ns"] = decision.cpu_ns;
  json["copies"] = decision.num_copies;
  json["copy_bytes"] = decision.copy_bytes;
  json["copy_ns"] = decision.copy_ns;
  json["spared_ns"] = decision.spared_ns;
  json["device_pj"] = decision.device_pj;
  json["cpu_pj"] = decision.cpu_pj;
  json["copy_pj"] = decision.copy_pj;
  json["spared_pj"] = decision.spared_pj;
  return json;
}

Json device_json(const DeviceReport& device) {
  Json json{{"target", device.target},
            {"options", device.options},
            {"ops", device.num_ops},
            {"regions", device.num_regions},
            {"macs", device.macs},
            {"bytes", device.bytes},
            {"weight_bytes", device.weight_bytes},
            {"estimated_ns", device.ns},
            {"costs", Json::object()}};
  for (const auto& [name, figure] : device.costs) json["costs"][name] = figure;
  return json;
}

// "1.2" of tenths, whole numbers from 100 on.
std::string tenths_text(uint64_t tenths) {
  return tenths < 1000 ? cat(tenths / 10, ".", tenths % 10) : std::to_string(tenths / 10);
}

// A number of the smallest unit in the largest one of which it is at least one, a thousand of each in the
// next.
std::string scaled_text(uint64_t number, std::initializer_list<const char*> units) {
  uint64_t one = 1;
  const auto* unit = units.begin();
  for (; unit + 1 != units.end() && number / one >= 1000; ++unit) one *= 1000;
  if (one == 1) return cat(number, " ", *unit);
  return cat(tenths_text(number / (one / 10)), " ", *unit);
}

// "%0 qnn.conv2d 'a', %1 nn.bias_add 'a'"; the name once where all have the same.
std::string unit_title(const Explain& explain, const UnitReport& unit) {
  const std::string& first = explain.nodes[unit.nodes.front()].name;
  const bool same =
      std::ranges::all_of(unit.nodes, [&](uint32_t n) { return explain.nodes[n].name == first; });
  const std::string name = short_name(first);
  std::string text;
  for (const uint32_t n : unit.nodes) {
    const NodeReport& node = explain.nodes[n];
    text += cat(text.empty() ? "" : ", ", "%", n, " ", node.op);
    if (!same && !node.name.empty()) text += cat(" '", short_name(node.name), "'");
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
  if (unit.cycles) text += cat(unit.target, " ", *unit.cycles, " cycles, ", time_text(*unit.ns), "; ");
  text += unit.is_program ? "compiled before, no CPU runs it\n" : cat("cpu ", time_text(unit.cpu_ns), "\n");
  for (const TargetVerdict& verdict : unit.verdicts) {
    for (const target::Reason& reason : verdict.reasons) {
      text += cat("      not on ", verdict.target, ": ", tail(reason), "\n");
    }
  }
  return text;
}

std::string decision_text(const Explain& explain, const DecisionReport& decision) {
  const UnitReport& first = explain.units[decision.units.front()];
  std::string text =
      cat("  ", count(decision.num_ops, "operator", "operators"), " from ", unit_title(explain, first),
          ": on ", decision.region.empty() ? "cpu" : decision.target, "; ", decision.target, " ",
          time_text(decision.device_ns), " and ", count(decision.num_copies, "copy", "copies"), " ",
          time_text(decision.copy_ns));
  if (decision.by == "program") return text + "; compiled before, for this device alone\n";
  text += cat(", cpu ", time_text(decision.cpu_ns));
  if (decision.spared_ns != 0) text += cat(" and copies ", time_text(decision.spared_ns));
  if (decision.by == "energy") {
    text += cat("; ", decision.target, " ", energy_text(decision.device_pj), " and ",
                energy_text(decision.copy_pj), ", cpu ", energy_text(decision.cpu_pj + decision.spared_pj));
  }
  if (decision.by == "pin") text += "; pinned";
  return text + "\n";
}

// The cost of the devices' operators there (copies included) and on the CPU, and the effect of another
// preference.
std::string preference_text(const Explain& explain) {
  uint64_t device_ns = 0, cpu_ns = 0;
  uint32_t num_ops = 0, num_programs = 0;
  std::string devices;
  for (const RegionReport& region : explain.regions) {
    if (region.is_program) {  // there is nothing to prefer
      num_programs += region.num_ops;
      continue;
    }
    device_ns += region.ns + region.copy_ns;
    cpu_ns += region.cpu_ns;
    num_ops += region.num_ops;
    const std::string name = cat("'", region.target, "'");
    if (devices.find(name) == std::string::npos) devices += cat(devices.empty() ? "" : " and ", name);
  }
  std::string text;
  if (explain.prefer != "latency" && device_ns > cpu_ns) {
    const uint64_t tenths = target::mul_div(device_ns, 10, std::max<uint64_t>(cpu_ns, 1));
    text +=
        cat("; ", devices, devices.find(" and ") == std::string::npos ? " is" : " are", " estimated ",
            tenths_text(tenths), " times slower than the CPU for ", count(num_ops, "operator", "operators"),
            " (", time_text(device_ns), " against ", time_text(cpu_ns), ")");
    if (explain.num_ops_by_latency < num_ops + num_programs) {
      const uint32_t moved = num_ops + num_programs - explain.num_ops_by_latency;
      text += cat("; --prefer latency keeps ",
                  moved == num_ops ? (moved == 1 ? "it" : "them") : cat(moved, " of them"), " on the CPU");
    }
  }
  if (explain.prefer != "latency" && explain.prefer != "energy") return text;
  uint32_t kept = 0;
  uint64_t there = 0, here = 0;
  for (const DecisionReport& decision : explain.decisions) {
    if (!decision.region.empty()) continue;
    kept += decision.num_ops;
    there += decision.device_ns + decision.copy_ns;
    here += decision.cpu_ns;
  }
  if (kept == 0) return text;
  return text + cat("; --prefer ", explain.prefer, " keeps ", count(kept, "operator", "operators"),
                    " of the device on the CPU (", time_text(here), ", on the device ", time_text(there),
                    ")");
}

}  // namespace

std::string time_text(uint64_t ns) { return scaled_text(ns, {"ns", "us", "ms", "s"}); }
std::string energy_text(uint64_t pj) { return scaled_text(pj, {"pJ", "nJ", "uJ", "mJ", "J"}); }

std::string node_text(const NodeReport& node, uint32_t index) {
  return node.name.empty() ? cat(node.op, " (%", index, ")") : cat(node.op, " '", node.name, "'");
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
  text += preference_text(*this);
  if (fallback) return text;
  return text + cat("; no CPU fallback, which saves ", saved_constant_bytes, " bytes of constants and ",
                    saved_memory_bytes, " bytes of memory");
}

std::string Explain::text() const {
  std::string text = summary() + "\n";
  if (!regions.empty()) text += "regions:\n";
  for (const RegionReport& region : regions) {
    text +=
        cat("  @", region.function, " on ", region.target, ": ",
            count(region.num_ops, "operator", "operators"), " in ", count(region.num_units, "unit", "units"),
            ", ", region.macs, " MACs, ", region.cycles, " cycles, ", time_text(region.ns),
            region.is_program ? " (compiled before, no CPU runs it), "
                              : cat(" (cpu ", time_text(region.cpu_ns), "), "),
            count(region.num_copies, "boundary copy", "boundary copies"), " (", region.copy_bytes, " bytes, ",
            time_text(region.copy_ns), ")\n");
  }
  if (!decisions.empty()) text += cat("decisions (prefer ", prefer, "):\n");
  for (const DecisionReport& decision : decisions) text += decision_text(*this, decision);
  text += "operators:\n";
  for (const UnitReport& unit : units) text += unit_text(*this, unit);
  return text;
}

std::string Explain::json() const {
  Json json;
  json["summary"] = summary();
  json["prefer"] = prefer;
  json["devices"] = Json::array();
  for (const DeviceReport& device : devices) json["devices"].push_back(device_json(device));
  json["regions"] = Json::array();
  for (const RegionReport& region : regions) json["regions"].push_back(region_json(region));
  json["units"] = Json::array();
  for (const UnitReport& unit : units) json["units"].push_back(unit_json(unit));
  json["decisions"] = Json::array();
  for (const DecisionReport& decision : decisions) json["decisions"].push_back(decision_json(decision));
  json["ops_by_latency"] = num_ops_by_latency;
  json["nodes"] = Json::array();
  for (const NodeReport& node : nodes) {
    json["nodes"].push_back(Json{
        {"op", node.op}, {"name", node.name}, {"type", node.type}, {"macs", node.macs}, {"unit", node.unit}});
  }
  json["fallback"] = fallback;
  json["saved_constant_bytes"] = saved_constant_bytes;
  json["saved_memory_bytes"] = saved_memory_bytes;
  // Names come from models, whatever bytes they have.
  return ir::json_text(json, 2) + "\n";
}

}  // namespace qplan::partition
