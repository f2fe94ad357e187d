// Which node of a model runs where: composites by the targets' pattern tables, placement by priority and
// pins, convex regions, the cost gate, and regions as functions of their own. Everything that was decided,
// and why, is in the result.
#ifndef QPLAN_SRC_PACKER_PARTITION_PARTITION_H_
#define QPLAN_SRC_PACKER_PARTITION_PARTITION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/target/region.h"
#include "src/packer/target/target.h"

namespace qplan::partition {

// ---- the report ----
// The decision about each operator and its reasons, as data, text and JSON. The same for the same model and
// targets, on every host.

// A pattern of a target that came near.
struct NearMissReport {
  std::string composite;
  std::string place, expected, found;
};

// Why one target does not run a unit.
struct TargetVerdict {
  std::string target;
  std::vector<target::Reason> reasons;  // all; empty only where a higher priority or a pin decided
  std::optional<NearMissReport> near_miss;
  // Set where a pattern matched and all constraints hold.
  std::optional<uint64_t> cycles, ns;
};

// A tensor that a unit reads: another unit's result, or an input of the model.
struct ReadReport {
  std::optional<uint32_t> unit;  // that makes it; none: an input of the model
  std::string name;              // of that input
  std::string type;
  uint64_t bytes = 0;
};

// Nodes that are placed together: one composite, or one node.
struct UnitReport {
  std::vector<uint32_t> nodes;
  std::vector<ReadReport> reads;  // each tensor once
  bool makes_output = false;      // of the model
  std::string composite;          // the row's name; empty where no pattern matched
  std::string target;
  std::string region;  // the function; empty on the CPU
  bool pinned = false;
  bool is_program = false;  // compiled before: no CPU runs it, cpu_ns is 0
  uint64_t macs = 0;
  uint64_t bytes = 0;                   // activations read and written
  uint64_t weight_bytes = 0;            // constants
  uint64_t cpu_ns = 0;                  // estimated, if it runs there
  std::optional<uint64_t> cycles, ns;   // estimated, of the target it runs on, when that is no CPU
  std::vector<TargetVerdict> verdicts;  // of the other targets, highest priority first
};

struct NodeReport {
  std::string op;    // "qnn.conv2d"
  std::string name;  // of the source
  std::string type;  // of its result
  uint64_t macs = 0;
  uint32_t unit = 0;
};

struct RegionReport {
  std::string function, target;
  bool is_program = false;  // of a unit that is one
  uint32_t num_ops = 0, num_units = 0;
  uint64_t macs = 0, bytes = 0, weight_bytes = 0;
  uint64_t cycles = 0, ns = 0, cpu_ns = 0;
  std::vector<std::string> inputs, outputs;  // types
  uint32_t num_copies = 0;                   // boundary tensors from and to the CPU
  uint64_t copy_bytes = 0, copy_ns = 0;
  uint64_t blob_bytes = 0, program_bytes = 0;  // of its program, once it was compiled
};

// How the cost gate judged one island of a device.
struct DecisionReport {
  std::string target;  // the device
  std::string region;  // its function; empty where it went to the CPU
  std::vector<uint32_t> units;
  uint32_t num_ops = 0;
  std::string by;  // "npu", "latency", "energy"; "pin", "program" or "none": it was not asked
  uint64_t device_ns = 0, cpu_ns = 0;
  uint32_t num_copies = 0;  // at its boundary
  uint64_t copy_bytes = 0, copy_ns = 0;
  uint64_t spared_ns = 0;  // copies that its neighbours on the device would need without it
  uint64_t device_pj = 0, cpu_pj = 0, copy_pj = 0, spared_pj = 0;
};

struct DeviceReport {
  std::string target, options;
  uint32_t num_ops = 0, num_regions = 0;
  uint64_t macs = 0, bytes = 0, weight_bytes = 0, ns = 0;
  std::vector<std::pair<std::string, uint64_t>> costs;  // figures that the estimates are made of, by name
};

struct Explain {
  std::vector<DeviceReport> devices;  // highest priority first
  std::vector<RegionReport> regions;
  std::vector<UnitReport> units;
  std::vector<NodeReport> nodes;
  std::string
      prefer;  // "npu", "latency", "energy"; "none": the gate was not asked; empty: there is no device
  std::vector<DecisionReport> decisions;
  uint32_t num_ops_by_latency = 0;  // those on devices that stayed there if latency were preferred
  // Without the CPU's steps for the regions, and what that saves.
  bool fallback = true;
  int64_t saved_constant_bytes = 0, saved_memory_bytes = 0;

  // One line: ops, MACs and bytes per device, regions, boundary copies.
  std::string summary() const;
  std::string text() const;
  std::string json() const;
};

// "0.3 us", "123 us", "12.3 ms", "1.54 s".
std::string time_text(uint64_t ns);
// "12 nJ", "3.45 mJ".
std::string energy_text(uint64_t pj);

// Reads the output of json(). PackError (QPLAN_PLAN_CORRUPT).
Explain parse_explain(std::string_view json);

// "qnn.conv2d 'block3/conv'", or "qnn.conv2d (%12)".
std::string node_text(const NodeReport& node, uint32_t index);

// The placement as one HTML page: the graph drawn, the figures in tables, the reasons beside them.

// json: what Explain::json() made, now or when a plan was packed. title: of the page, any text. plan: what
// `inspect --json` prints of the plan, for the table of the CPU's kernels; empty where no plan can be made.
// The page is self-contained: data, style and script are in it, and the browser loads nothing else. PackError
// (QPLAN_MODEL_INVALID) where json is not JSON.
std::string explain_html(std::string_view json, std::string_view title, std::string_view plan = {});

// ---- placement ----

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
