// Which node of a model runs where: composites by the targets' pattern tables, placement by priority and
// pins, convex regions, the cost gate, and regions as functions of their own. Everything that was decided,
// and why, is in the result.
#ifndef QPLAN_SRC_PACKER_PARTITION_PARTITION_H_
#define QPLAN_SRC_PACKER_PARTITION_PARTITION_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/partition/explain.h"
#include "src/packer/target/region.h"
#include "src/packer/target/target.h"

namespace qplan::partition {

enum class Placement {
  kSoft,    // what the preferred target does not take runs on the next one
  kStrict,  // any operator off the preferred target is an error that lists all of them
};

// By what the cost gate judges an island of a device.
enum class Prefer {
  kDefault,  // kNpu where the first of the targets is a device, else kLatency
  kNpu,  // the device's, however slow, where that relieves the CPU: its copies take less than its operators
         // would
  kLatency,  // the device's where that is faster, copies included
  kEnergy,   // the device's where that takes less energy, copies included
};

// All nodes of a source operator's name, or one by its number ("%12" of the printed module), go to the
// target.
struct Pin {
  std::string node;
  std::string target;
};
// "block3/conv=vta"; the last '=' separates. PackError (QPLAN_INVALID_ARGUMENT).
Pin parse_pin(std::string_view text);

// A node that a target's compiler could not take after all.
struct Exclusion {
  uint32_t node = 0;  // of main
  std::string target;
  target::Reason reason;
};

struct PartitionOptions {
  Placement placement = Placement::kSoft;
  std::vector<Pin> pins = {};
  // An island that costs more than it saves stays on the CPU. Not asked for regions with pinned nodes, nor
  // where the placement is strict.
  bool cost_gate = true;
  Prefer prefer = Prefer::kDefault;
  std::vector<Exclusion> exclusions = {};
};

struct Region {
  std::string function;                    // "qplan_vta_main_0", of the module
  const target::Target* target = nullptr;  // one of those given to partition()
  std::vector<uint32_t> nodes;             // of the main that was given, ascending
  // Per node of the function: the nodes of the given main that it replaces.
  std::vector<std::vector<uint32_t>> units;
};

struct PartitionResult {
  // main, then for each region its function, whose nodes are operators, or calls of the functions of its
  // composites (attribute Composite="qplan.qconv2d"), which follow it.
  ir::Module module;
  std::vector<Region> regions;  // in the order in which main calls them
  Explain explain;
};

// module: canonical, of main alone. PackError: QPLAN_INVALID_ARGUMENT for a pin that names nothing,
// QPLAN_MODEL_UNSUPPORTED with all reasons where a pin or a strict placement cannot be kept.
PartitionResult partition(const ir::Module& module, std::span<const target::Target> targets,
                          const PartitionOptions& options = {});

// A copy of the function in which calls of functions of the module are replaced by their bodies: what the CPU
// runs in place of a region, or of all of them.
std::unique_ptr<ir::Function> inline_calls(const ir::Module& module, const ir::Function& function);

// ---- placement with the devices' compilers ----
// What a compiler cannot take after all goes to the next target.

struct CompiledPartition {
  PartitionResult placed;
  // As placed.regions; nullopt of targets that only try placements.
  std::vector<std::optional<target::CompiledRegion>> code;
};

// partition(), and the regions' programs. Nodes that a compiler rejects are excluded from its target with the
// compiler's reason, and everything is placed again, until all regions compile. The report's cycles are then
// the compilers'. PackError as partition(); under a strict placement or with pins the compiler's reason is
// among those listed.
CompiledPartition compile_partition(const ir::Module& module, std::span<const target::Target> targets,
                                    PartitionOptions options = {});

}  // namespace qplan::partition

#endif  // QPLAN_SRC_PACKER_PARTITION_PARTITION_H_
