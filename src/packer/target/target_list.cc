// Targets by name: lists as texts, and target files:
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
#include <charconv>
#include <string_view>

#include "qplan/qplan.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/json.h"
#include "src/packer/target/cost_file.h"
#include "src/packer/target/cpu/lowering.h"
#include "src/packer/target/external/external.h"
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

// Lists of targets as texts, and the CPU.
namespace {

constexpr uint64_t kMaxRate = 1'000'000'000;

// What kernels compute in one go.
std::vector<PatternRow> cpu_table() {
  std::vector<PatternRow> table = {
      {"qplan.qconv2d", "convolution", requantized(with_bias(convolution(Convolution::kAny))), {}, {}},
      {"qplan.qdense", "fully connected layer", composite("qplan.qdense").make(), {}, {}}};
  // operator list: those whose kernels clip their results
  for (const char* name : {"qnn.add", "qnn.subtract", "qnn.mul", "qnn.avg_pool2d", "nn.max_pool2d"}) {
    table.push_back({name, "with its clip", with_clip(pattern::op(name)), {}, {}});
  }
  return table;
}

uint64_t checked_rate(const std::string& key, const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > kMaxRate) {
    fail_target(cat(key, " '", text, "' of 'cpu' is not a whole number from 1 to ", kMaxRate));
  }
  return value;
}

// parse_target knows the options that say what the CPU is; the others say what it costs.
Target make_cpu(const TargetOptions& options, const std::optional<MemorySizes>& /*memories*/) {
  std::string text = "cpu";
  uint64_t macs_per_us = 0, bytes_per_us = 0, clock_khz = 0;
  for (const auto& [key, value] : options) {
    if (key == "macs_per_us") {
      macs_per_us = checked_rate(key, value);
    } else if (key == "bytes_per_us") {
      bytes_per_us = checked_rate(key, value);
    } else if (key == "clock") {
      clock_khz = checked_clock_khz("cpu", value);
    } else {
      text += cat(",", key, "=", value);
    }
  }
  Target target;
  target.profile = parse_target(text);
  target.cpu_costs = default_cpu_costs(target.profile.arch, target.profile.isas.back());
  // What is said of the speed itself is so at whatever clock.
  if (clock_khz != 0) target.cpu_costs.clock_khz = clock_khz;
  if (macs_per_us != 0) target.cpu_costs.set_macs_per_us(macs_per_us);
  if (bytes_per_us != 0) target.cpu_costs.set_bytes_per_us(bytes_per_us);
  target.options = target.profile.options;
  target.priority = kCpuPriority;
  target.is_cpu = true;
  target.table = cpu_table();
  return target;
}

}  // namespace

TargetKind cpu_kind() { return {"cpu", {}, make_cpu, cpu_page}; }

const TargetKind* find_kind(std::span<const TargetKind> kinds, std::string_view name) {
  const auto found = std::ranges::find(kinds, name, &TargetKind::name);
  return found == kinds.end() ? nullptr : &*found;
}

Target make_named_target(const TargetText& text, const std::optional<MemorySizes>& memories,
                         const KnownTargets& known) {
  const auto library = std::ranges::find_if(
      known.libraries, [&](const Library& known_library) { return text.name == known_library.target->name; });
  const TargetKind* kind = find_kind(known.own, text.name);
  if (kind == nullptr && library == known.libraries.end()) {
    std::string names;
    for (const TargetKind& own : known.own) names += cat(names.empty() ? "" : ", ", own.name);
    for (const Library& other : known.libraries) names += cat(", ", other.target->name);
    fail_target(cat("'", text.name, "' is not known; known: ", names));
  }
  if (memories && (kind == nullptr || kind->memories.empty()))
    fail_target(cat("'", text.name, "' has no memories to set"));
  TargetOptions options;
  std::optional<int32_t> priority;
  std::optional<uint64_t> clock_khz;
  for (const auto& [key, value] : text.options) {
    const bool is_ours = library == known.libraries.end();  // what others mean by two is theirs
    if (is_ours && std::ranges::count(text.options, key, &TargetOptions::value_type::first) > 1)
      fail_target(cat("option '", key, "' of '", text.name, "' is there twice"));
    if (key == "priority") {
      priority = checked_priority(value);
    } else if (key == "clock" && text.name != "cpu") {
      clock_khz = checked_clock_khz(text.name, value);
    } else {
      options.emplace_back(key, value);
    }
  }
  Target target = library != known.libraries.end() ? external::make_target(*library, options)
                                                   : kind->make(options, memories);
  target.name = text.name;
  if (priority) target.priority = *priority;
  if (clock_khz) target.costs.clock_khz = *clock_khz;
  return target;
}

std::vector<Target> complete_list(std::vector<Target> targets, const KnownTargets& known) {
  for (size_t i = 0; i < targets.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (targets[k].name == targets[i].name) fail_target(cat("'", targets[i].name, "' is there twice"));
    }
  }
  if (std::ranges::none_of(targets, &Target::is_cpu))
    targets.push_back(make_named_target({"cpu", {}}, {}, {known.own}));
  return targets;
}

std::vector<Target> parse_targets(std::string_view text, const KnownTargets& known) {
  std::vector<Target> targets;
  for (const TargetText& target : split_targets(text))
    targets.push_back(make_named_target(target, {}, known));
  return complete_list(std::move(targets), known);
}

namespace {

constexpr std::string_view kHead =
    R"(# What runs where

Written from the targets' tables by `supported_ops_page()` and compared with them by a test
(`QPLAN_UPDATE_DOCS=1 bash tests/run.sh -R SupportedOps` writes it again). `qplan explain MODEL --target …` says for each operator of a model which of these
conditions it meets, with the numbers.

A target is tried by priority (NPUs 500, the CPU 50, `priority=` overrides), its patterns in the order below; the first one whose
conditions all hold takes the operators. An id in brackets names a condition in every message and report, and does not change.

)";

std::string row_text(const PatternRow& row, std::string_view variant, const PatternRow& of_variant) {
  std::string text = cat("### ", row.name, "\n", row.summary, "\n\n");
  text += "| condition | what holds | otherwise |\n|---|---|---|\n";
  for (size_t i = 0; i < row.constraints.size(); ++i) {
    const Constraint& constraint = row.constraints[i];
    text += cat("| `", constraint.id, "` | ", constraint.requirement);
    if (of_variant.constraints[i].requirement != constraint.requirement) {
      text += cat("; with `", variant, "`: ", of_variant.constraints[i].requirement);
    }
    text += cat(" | ", constraint.hint, " |\n");
  }
  return text + "\n";
}

}  // namespace

std::string rows_text(std::span<const PatternRow> rows, std::string_view variant,
                      std::span<const PatternRow> variant_rows) {
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) text += row_text(rows[i], variant, variant_rows[i]);
  return text;
}

std::string cpu_page() {
  std::string text =
      "## cpu\n"
      "Takes what is left. Options: "
      "`arch=x86_64|cortex-m|cortex-m0plus|cortex-m3|cortex-m4|cortex-m7|cortex-m33|"
      "cortex-m55|cortex-m85|aarch64|riscv64|rv32imc`, `isa=`, `priority=`, `clock=`, "
      "`macs_per_us=`, `bytes_per_us=` (used by the estimates). Its lowerings are tried in this "
      "order; an operator that none of them matches is refused as `cpu.op.<operator>`, a tensor that no plan "
      "can hold as `cpu.plan`.\n\n";
  for (const cpu::TableRow& row : cpu::lowering_table()) {
    text += cat("### cpu: ", row.name, "\n");
    if (row.constraints.empty()) text += "No condition.\n\n";
    if (row.constraints.empty()) continue;
    text += "| condition | what holds | otherwise |\n|---|---|---|\n";
    for (const cpu::Constraint& constraint : row.constraints) {
      text += cat("| `", constraint.id, "` | ", constraint.requirement, " | ", constraint.hint, " |\n");
    }
    text += "\n";
  }
  text.pop_back();
  return text;
}

std::string supported_ops_page(std::span<const TargetKind> kinds) {
  std::string text(kHead);
  for (const bool is_cpu : {false, true}) {
    for (const TargetKind& kind : kinds) {
      if ((kind.name == "cpu") == is_cpu) text += kind.page();
    }
  }
  return text;
}

}  // namespace qplan::target
