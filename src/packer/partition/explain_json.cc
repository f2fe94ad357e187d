// What is made of the JSON that Explain::json() wrote, which plans keep: the report again, and a page of
// HTML.
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/json.h"
#include "src/packer/partition/embedded.h"
#include "src/packer/partition/partition.h"

namespace qplan::partition {
namespace {

using ir::Json;

std::optional<uint64_t> optional_number(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<uint64_t>());
}

TargetVerdict read_verdict(const Json& json) {
  TargetVerdict verdict;
  verdict.target = json.at("target");
  for (const Json& reason : json.at("reasons")) {
    verdict.reasons.push_back({reason.at("id"), reason.at("text"), reason.at("hint")});
  }
  if (const Json& miss = json.at("near_miss"); !miss.is_null()) {
    verdict.near_miss = {miss.at("composite"), miss.at("place"), miss.at("expected"), miss.at("found")};
  }
  verdict.cycles = optional_number(json.at("estimated_cycles"));
  verdict.ns = optional_number(json.at("estimated_ns"));
  return verdict;
}

ReadReport read_read(const Json& json) {
  ReadReport read;
  if (!json.at("unit").is_null()) read.unit = json.at("unit").get<uint32_t>();
  if (!read.unit) read.name = json.at("input");
  read.type = json.at("type");
  read.bytes = json.at("bytes");
  return read;
}

UnitReport read_unit(const Json& json) {
  UnitReport unit;
  unit.nodes = json.at("nodes").get<std::vector<uint32_t>>();
  for (const Json& read : json.at("reads")) unit.reads.push_back(read_read(read));
  unit.makes_output = json.at("makes_output");
  unit.composite = json.at("composite");
  unit.target = json.at("target");
  unit.region = json.at("region");
  unit.pinned = json.at("pinned");
  unit.is_program = json.value("is_program", false);
  unit.macs = json.at("macs");
  unit.bytes = json.at("bytes");
  unit.weight_bytes = json.at("weight_bytes");
  unit.cpu_ns = json.at("cpu_ns");
  unit.cycles = optional_number(json.at("estimated_cycles"));
  unit.ns = optional_number(json.at("estimated_ns"));
  for (const Json& verdict : json.at("verdicts")) unit.verdicts.push_back(read_verdict(verdict));
  return unit;
}

RegionReport read_region(const Json& json) {
  RegionReport region;
  region.function = json.at("function");
  region.target = json.at("target");
  region.is_program = json.value("is_program", false);
  region.num_ops = json.at("ops");
  region.num_units = json.at("units");
  region.macs = json.at("macs");
  region.bytes = json.at("bytes");
  region.weight_bytes = json.at("weight_bytes");
  region.cycles = json.at("estimated_cycles");
  region.ns = json.at("estimated_ns");
  region.cpu_ns = json.at("cpu_ns");
  region.inputs = json.at("inputs").get<std::vector<std::string>>();
  region.outputs = json.at("outputs").get<std::vector<std::string>>();
  region.num_copies = json.at("copies");
  region.copy_bytes = json.at("copy_bytes");
  region.copy_ns = json.value("copy_ns", uint64_t{0});
  region.blob_bytes = json.value("blob_bytes", uint64_t{0});
  region.program_bytes = json.value("program_bytes", uint64_t{0});
  return region;
}

DeviceReport read_device(const Json& json) {
  DeviceReport device;
  device.target = json.at("target");
  device.options = json.at("options");
  device.num_ops = json.at("ops");
  device.num_regions = json.at("regions");
  device.macs = json.at("macs");
  device.bytes = json.at("bytes");
  device.weight_bytes = json.at("weight_bytes");
  device.ns = json.at("estimated_ns");
  const Json costs = json.value("costs", Json::object());
  for (const auto& [name, figure] : costs.items()) {
    device.costs.emplace_back(name, figure.get<uint64_t>());
  }
  return device;
}

DecisionReport read_decision(const Json& json) {
  DecisionReport decision;
  decision.target = json.at("target");
  decision.region = json.at("region");
  decision.units = json.at("units").get<std::vector<uint32_t>>();
  decision.num_ops = json.at("ops");
  decision.by = json.at("by");
  decision.device_ns = json.at("device_ns");
  decision.cpu_ns = json.at("cpu_ns");
  decision.num_copies = json.at("copies");
  decision.copy_bytes = json.at("copy_bytes");
  decision.copy_ns = json.at("copy_ns");
  decision.spared_ns = json.at("spared_ns");
  decision.device_pj = json.at("device_pj");
  decision.cpu_pj = json.at("cpu_pj");
  decision.copy_pj = json.at("copy_pj");
  decision.spared_pj = json.at("spared_pj");
  return decision;
}

// Indices that the texts follow.
void check_indices(const Explain& explain) {
  for (const UnitReport& unit : explain.units) {
    bool valid = !unit.nodes.empty();
    for (const uint32_t n : unit.nodes) valid = valid && n < explain.nodes.size();
    if (!valid || (unit.cycles && !unit.ns)) throw Json::out_of_range::create(401, "a unit's nodes", nullptr);
  }
  for (const DecisionReport& decision : explain.decisions) {
    bool valid = !decision.units.empty();
    for (const uint32_t u : decision.units) valid = valid && u < explain.units.size();
    if (!valid) throw Json::out_of_range::create(401, "a decision's units", nullptr);
  }
  for (const NodeReport& node : explain.nodes) {
    if (node.unit >= explain.units.size()) throw Json::out_of_range::create(401, "a node's unit", nullptr);
  }
}

}  // namespace

Explain parse_explain(std::string_view text) {
  const auto fail = [](std::string_view reason) {
    throw PackError(QPLAN_PLAN_CORRUPT,
                    cat("explain: the stored placement cannot be read: ", reason, "; pack the model again"));
  };
  std::string reason;
  const Json json = ir::parse_json(text, &reason);
  if (json.is_discarded()) fail("it " + reason);
  Explain explain;
  try {
    for (const Json& device : json.at("devices")) explain.devices.push_back(read_device(device));
    for (const Json& region : json.at("regions")) explain.regions.push_back(read_region(region));
    for (const Json& unit : json.at("units")) explain.units.push_back(read_unit(unit));
    for (const Json& node : json.at("nodes")) {
      explain.nodes.push_back(
          {node.at("op"), node.at("name"), node.at("type"), node.at("macs"), node.at("unit")});
    }
    // Plans of before had no preference.
    explain.prefer = json.value("prefer", "");
    for (const Json& decision : json.value("decisions", Json::array())) {
      explain.decisions.push_back(read_decision(decision));
    }
    explain.num_ops_by_latency = json.value("ops_by_latency", UINT32_MAX);
    explain.fallback = json.value("fallback", true);
    explain.saved_constant_bytes = json.value("saved_constant_bytes", int64_t{0});
    explain.saved_memory_bytes = json.value("saved_memory_bytes", int64_t{0});
    check_indices(explain);
  } catch (const Json::exception& error) {
    fail(error.what());
  }
  return explain;
}

// The page.

namespace {

// Text of an element.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return result;
}

// JSON as the text of a script element: nothing in it can end the element or begin a comment, and it stays
// the same JSON, because these characters occur in strings only.
std::string script_text(const std::string& json) {
  std::string result;
  result.reserve(json.size());
  for (const char c : json) {
    switch (c) {
      case '<':
        result += "\\u003c";
        break;
      case '>':
        result += "\\u003e";
        break;
      case '&':
        result += "\\u0026";
        break;
      default:
        result += c;
    }
  }
  return result;
}

// The page with `text_of(name)` where {{name}} stands.
template <typename Function>
std::string filled(std::string_view page, Function text_of) {
  std::string result;
  for (size_t begin; (begin = page.find("{{")) != std::string_view::npos;) {
    const size_t end = page.find("}}", begin);
    result += page.substr(0, begin);
    result += text_of(page.substr(begin + 2, end - begin - 2));
    page.remove_prefix(end + 2);
  }
  return result += page;
}

// The plan's steps on the CPU with the kernel of each instruction set, as the page shows them. Layers of a
// cascade are rows of their own.
Json cpu_steps(std::string_view plan) {
  Json rows = Json::array();
  if (plan.empty()) return rows;
  std::string reason = "has no steps";
  const Json inspected = ir::parse_json(plan, &reason);
  if (!inspected.is_object() || !inspected.contains("steps")) {
    throw PackError(QPLAN_MODEL_INVALID,
                    "explain: what inspect states of the plan " + reason + "; pack the plan again");
  }
  for (const Json& step : inspected.at("steps")) {
    if (!step.contains("variants")) continue;
    const auto add = [&](const Json& of, const std::string& index) {
      rows.push_back({{"step", index},
                      {"op", of.at("op")},
                      {"name", of.value("name", "")},
                      {"macs", of.value("macs", uint64_t{0})},
                      {"variants", of.value("variants", Json::array())}});
    };
    const std::string index = std::to_string(step.at("index").get<uint64_t>());
    add(step, index);
    if (!step.contains("layers")) continue;
    for (size_t i = 0; i < step["layers"].size(); ++i)
      add(step["layers"][i], index + "." + std::to_string(i));
  }
  return rows;
}

}  // namespace

std::string explain_html(std::string_view json, std::string_view title, std::string_view plan) {
  std::string reason = "has no units";
  Json data = ir::parse_json(json, &reason);
  if (!data.is_object() || !data.contains("units"))
    throw PackError(QPLAN_MODEL_INVALID, "explain: the placement " + reason + "; pack the plan again");
  // Bytes of a name that are no UTF-8 become U+FFFD, in the data as in the title.
  data["title"] = ir::parse_json(ir::json_text(std::string(title))).get<std::string>();
  data["cpu_steps"] = cpu_steps(plan);
  return filled(embedded::kExplainHtml, [&](std::string_view name) -> std::string {
    if (name == "title") return escaped(data["title"].get<std::string>());
    if (name == "explain.css") return embedded::kExplainCss;
    if (name == "data") return script_text(ir::json_text(data));
    if (name == "page.js") return embedded::kPageJs;
    if (name == "explain_layout.js") return embedded::kExplainLayoutJs;
    return embedded::kExplainJs;
  });
}

}  // namespace qplan::partition
