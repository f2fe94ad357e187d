// Target files:
//   {"targets": [
//     {"target": "vta,sram=quarter", "priority": 400,
//      "memories": {"uop": 2048, "wgt": 256, "inp": 512, "acc": 512},     elements, in place of sram=
//      "costs": {"clock_mhz": 100, "dma_bytes_per_cycle": 8, "dma_latency_cycles": 64, "macs_per_cycle":
//      256}},
//     {"name": "npu", "operators": ["nn.bias_add"]},                      operators as they are, with any
//     types
//     {"target": "cpu,isa=avx2", "costs": {"macs_per_us": 60000, "bytes_per_us": 20000},
//      "areas": [{"name": "dtcm", "bytes": 65536, "cost": 1}, {"name": "sram", "bytes": 262144, "cost":
//      3}],
//      "copy_constants": {"from": "flash", "cost": 8}}]}                  to areas that cost less
// What is left out has its default. cost_file.h has the costs of a CPU.

#include <algorithm>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/json.h"
#include "src/packer/target/cost_file.h"
#include "src/packer/target/target.h"

namespace qplan::target {
namespace {

using ir::Json;

std::string read_text(const Json& object, const char* key) {
  if (!object.contains(key)) return "";
  if (!object[key].is_string()) fail_target(cat("'", key, "' is not a text"));
  return object[key].get<std::string>();
}

// kind: null where the target is not the packer's own: it has no memories to set.
std::optional<MemorySizes> read_memories(const Json& object, const TargetKind* kind) {
  if (!object.contains("memories")) return std::nullopt;
  MemorySizes sizes;
  if (kind == nullptr || kind->memories.empty()) return sizes;
  const Json& memories = object["memories"];
  std::vector<const char*> names;
  for (const MemoryKey& key : kind->memories) names.push_back(key.name);
  check_keys(memories, "'memories'", names);
  for (const MemoryKey& key : kind->memories) {
    if (!memories.contains(key.name)) continue;
    uint64_t elements = 0;
    read_number(memories, key.name, key.max_elements, &elements);
    sizes.emplace_back(key.name, elements);
  }
  return sizes;
}

bool is_name(const std::string& text) {
  if (text.empty() || text[0] < 'a' || text[0] > 'z') return false;
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

Target read_operators_target(const Json& object) {
  const std::string name = read_text(object, "name");
  if (!is_name(name)) fail_target(cat("name '", name, "' is not of letters a to z, digits and _"));
  if (!object.contains("operators") || !object["operators"].is_array()) {
    fail_target(cat("'", name, "' has no list 'operators'"));
  }
  std::vector<std::string> operators;
  for (const Json& op : object["operators"]) {
    if (!op.is_string())
      fail_target(cat("'operators' of '", name, "' has ", ir::json_text(op), ", expected texts"));
    operators.push_back(op.get<std::string>());
  }
  return operators_target(name, operators);
}

// Memory areas of a CPU, in the file's order, which is that of a session's memories.
void read_areas(const Json& object, Target* target) {
  if (!object.contains("areas")) return;
  if (!target->is_cpu) fail_target("'areas' are those of a CPU");
  const Json& areas = object["areas"];
  if (!areas.is_array() || areas.empty() || areas.size() > kMaxAreas)
    fail_target(cat("'areas' is no list of 1 to ", kMaxAreas, " areas"));
  for (const Json& entry : areas) {
    check_keys(entry, "an area", {"name", "bytes", "cost"});
    MemoryArea area;
    area.name = read_text(entry, "name");
    if (!is_name(area.name))
      fail_target(cat("name '", area.name, "' of an area is not of letters a to z, digits and _"));
    if (std::ranges::find(target->profile.areas, area.name, &MemoryArea::name) != target->profile.areas.end())
      fail_target(cat("two areas have the name '", area.name, "'"));
    if (!entry.contains("bytes")) fail_target(cat("area '", area.name, "' has no 'bytes'"));
    read_number(entry, "bytes", uint64_t{1} << 40, &area.bytes);
    read_number(entry, "cost", kMaxCost, &area.cost);
    target->profile.areas.push_back(std::move(area));
  }
}

// Where constants are and what a byte of them costs, for those that are copied into areas.
void read_copies(const Json& object, Target* target) {
  if (!object.contains("copy_constants")) return;
  TargetProfile& profile = target->profile;
  if (profile.areas.empty()) fail_target("'copy_constants' goes with 'areas', where copies are");
  const Json& from = object["copy_constants"];
  check_keys(from, "'copy_constants'", {"from", "cost"});
  profile.copies_from = read_text(from, "from");
  if (!is_name(profile.copies_from))
    fail_target(cat("'from' of 'copy_constants', '", profile.copies_from,
                    "', is not of letters a to z, digits and _"));
  if (std::ranges::find(profile.areas, profile.copies_from, &MemoryArea::name) != profile.areas.end())
    fail_target(cat("'from' of 'copy_constants' is the area '", profile.copies_from,
                    "', expected the memory that has the plan"));
  if (!from.contains("cost")) fail_target("'copy_constants' has no 'cost'");
  read_number(from, "cost", kMaxCost, &profile.copies_from_cost);
}

Target read_target(const Json& object, const KnownTargets& known) {
  check_keys(object, "a target",
             {"target", "name", "operators", "priority", "memories", "costs", "areas", "copy_constants"});
  Target target;
  if (object.contains("name")) {
    if (object.contains("target") || object.contains("memories")) {
      fail_target("a target has either 'target' or 'name' and 'operators'");
    }
    target = read_operators_target(object);
  } else {
    if (object.contains("operators")) fail_target("'operators' goes with 'name'");
    const std::vector<TargetText> texts = split_targets(read_text(object, "target"));
    if (texts.size() != 1) fail_target("'target' names several targets, expected one");
    const TargetKind* kind = find_kind(known.own, texts[0].name);
    target = make_named_target(texts[0], read_memories(object, kind), known);
  }
  if (object.contains("priority")) target.priority = checked_priority(ir::json_text(object["priority"]));
  read_areas(object, &target);
  read_copies(object, &target);
  if (!object.contains("costs")) return target;
  const Json& costs = object["costs"];
  if (target.is_cpu) {
    read_cpu_costs(costs, &target.cpu_costs);
  } else {
    check_keys(costs, "'costs'",
               {"clock_mhz", "dma_bytes_per_cycle", "dma_latency_cycles", "macs_per_cycle", "fj_per_mac",
                "fj_per_byte"});
    uint64_t clock_mhz = 0;
    read_number(costs, "clock_mhz", kMaxCost, &clock_mhz);
    if (clock_mhz != 0) target.costs.clock_khz = clock_mhz * 1000;
    read_number(costs, "dma_bytes_per_cycle", kMaxCost, &target.costs.dma_bytes_per_cycle);
    read_number(costs, "dma_latency_cycles", kMaxCost, &target.costs.dma_latency_cycles);
    read_number(costs, "macs_per_cycle", kMaxCost, &target.costs.macs_per_cycle);
    read_number(costs, "fj_per_mac", kMaxCost, &target.costs.fj_per_mac);
    read_number(costs, "fj_per_byte", kMaxCost, &target.costs.fj_per_byte);
  }
  return target;
}

}  // namespace

std::vector<Target> parse_target_file(std::string_view text, std::string_view file,
                                      const KnownTargets& known) {
  try {
    std::string reason;
    const Json json = ir::parse_json(text, &reason);
    if (json.is_discarded()) fail_target("the file " + reason);
    check_keys(json, "the file", {"targets"});
    if (!json.contains("targets") || !json["targets"].is_array() || json["targets"].empty()) {
      fail_target("there is no list 'targets'");
    }
    std::vector<Target> targets;
    for (const Json& object : json["targets"]) targets.push_back(read_target(object, known));
    return complete_list(std::move(targets), known);
  } catch (const PackError& error) {
    throw PackError(error.status(), cat(file, ": ", error.what()));
  }
}

}  // namespace qplan::target
