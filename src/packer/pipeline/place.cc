#include <algorithm>

#include "src/ethosu/compiler/target.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/target/external/external.h"
#include "src/packer/target/target.h"
#include "src/vta/compiler/target.h"

namespace qplan::pipeline {

const target::Target& cpu_of(std::span<const target::Target> targets) {
  return *std::ranges::find_if(targets, &target::Target::is_cpu);
}

namespace {

partition::PartitionOptions partition_options(const PackOptions& options) {
  partition::PartitionOptions result;
  result.placement = options.strict_placement ? partition::Placement::kStrict : partition::Placement::kSoft;
  for (const std::string& pin : options.pins) result.pins.push_back(partition::parse_pin(pin));
  result.cost_gate = options.cost_gate;
  result.prefer = options.prefer;
  return result;
}

// Devices in the order in which main calls their first regions.
uint32_t device_index(const target::Target& target, std::vector<target::ProgramDevice>* devices) {
  const auto known = std::ranges::find(*devices, target.name, &target::ProgramDevice::name);
  if (known != devices->end()) return static_cast<uint32_t>(known - devices->begin());
  devices->push_back({target.name, target.options, target.max_bank_bytes});
  return static_cast<uint32_t>(devices->size() - 1);
}

}  // namespace

std::unique_ptr<Placed> place(const ir::Module& module, const std::vector<target::Target>& targets,
                              const PackOptions& options) {
  // Text may define functions of its own; an importer leaves main alone.
  if (module.functions().size() != 1) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    cat("the module has ", module.functions().size(),
                        " functions, expected main alone; write what main calls into main"));
  }
  auto result = std::make_unique<Placed>();
  result->partition = partition::compile_partition(module, targets, partition_options(options));
  const partition::PartitionResult& placed = result->partition.placed;
  for (size_t r = 0; r < placed.regions.size(); ++r) {
    const partition::Region& region = placed.regions[r];
    result->bodies.push_back(partition::inline_calls(placed.module, *placed.module.find(region.function)));
    const auto& code = result->partition.code[r];
    if (!code) continue;
    const uint32_t device = device_index(*region.target, &result->codes.devices);
    result->codes.by_function[region.function] = {device, &*code, result->bodies.back().get()};
  }
  result->codes.fallback = options.fallback;
  return result;
}

void log_warnings(const Placed& placed, const Observer& observer) {
  const partition::CompiledPartition& partition = placed.partition;
  for (size_t r = 0; r < partition.code.size(); ++r) {
    const std::string warning = partition.code[r] ? partition.code[r]->warning : "";
    const partition::Region& region = partition.placed.regions[r];
    if (!warning.empty())
      observer.log(QPLAN_LOG_WARNING,
                   cat("target '", region.target->name, "': region '", region.function, "': ", warning));
  }
}

void check_all_compiled(const Placed& placed) {
  const partition::CompiledPartition& partition = placed.partition;
  for (size_t r = 0; r < partition.code.size(); ++r) {
    if (partition.code[r]) continue;
    const partition::Region& region = partition.placed.regions[r];
    throw PackError(
        QPLAN_INVALID_ARGUMENT,
        cat("target '", region.target->name, "': region '", region.function,
            "' is placed on it, but it has no compiler: no plan can be made for it; 'qplan explain' "
            "shows the placement"));
  }
}

void check_programs(const Placed& placed, const ir::Function& canonical) {
  const partition::Explain& explain = placed.partition.placed.explain;
  for (const partition::UnitReport& unit : explain.units) {
    const ir::Node& node = canonical.nodes()[unit.nodes.front()];
    if (node.op == nullptr || node.op->name != op::kProgramOperator || !unit.region.empty()) continue;
    const std::string device = op::program_of(node).device;
    std::string text = cat("'", node.name, "' is a program that was compiled for '", device,
                           "' and runs on no other device; pack it with --target \"", device, ", cpu\"");
    for (const partition::TargetVerdict& verdict : unit.verdicts) {
      for (const target::Reason& reason : verdict.reasons)
        text += cat("\n  not on '", verdict.target, "': ", reason.text, " [", reason.id, "]");
    }
    if (unit.pinned) text += cat("\n  it is pinned to '", unit.target, "': leave out that --pin");
    throw PackError(QPLAN_MODEL_UNSUPPORTED, text);
  }
}

// Messages and docs/supported_ops.md list them in this order.
std::span<const target::TargetKind> own_targets() {
  static const std::vector<target::TargetKind> kinds = [] {
    std::vector<target::TargetKind> all = {target::cpu_kind(), vta::compiler::target_kind()};
    const auto ethosu = ethosu::compiler::target_kinds();
    all.insert(all.end(), ethosu.begin(), ethosu.end());
    return all;
  }();
  return kinds;
}

std::vector<target::Target> parse_targets(std::string_view text, target::Libraries libraries) {
  return target::parse_targets(text, {own_targets(), libraries});
}

std::vector<target::Target> parse_target_file(std::string_view json, std::string_view file,
                                              target::Libraries libraries) {
  return target::parse_target_file(json, file, {own_targets(), libraries});
}

std::vector<target::Target> read_targets(const PackOptions& options) {
  std::vector<target::Library> libraries;
  for (const std::string& path : options.target_libs)
    libraries.push_back(target::external::load_library(path, own_targets()));
  if (!options.target_file) return parse_targets(options.target, libraries);
  return parse_target_file(options.target_file->json, options.target_file->name, libraries);
}

std::string supported_ops_page() { return target::supported_ops_page(own_targets()); }

}  // namespace qplan::pipeline
