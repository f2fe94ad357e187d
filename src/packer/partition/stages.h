// The stages of the partitioner, in their order: which composites there are and which target each goes to;
// which units make one region; which regions are worth their copies; regions as functions of their own.
#ifndef QPLAN_SRC_PACKER_PARTITION_STAGES_H_
#define QPLAN_SRC_PACKER_PARTITION_STAGES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/partition/partition.h"
#include "src/packer/pattern/pattern.h"
#include "src/packer/target/target.h"

namespace qplan::partition {

// ---- annotate ----

// Nodes that are placed together. Only the last one's result is read outside.
struct Unit {
  std::vector<uint32_t> nodes;  // ascending
  const target::Target* target = nullptr;
  const target::PatternRow* row = nullptr;  // null: a single node that no pattern took
  bool pinned = false;
  uint64_t macs = 0, bytes = 0, weight_bytes = 0;
  uint64_t cpu_ns = 0;             // 0 of a program, which no CPU runs
  std::optional<uint64_t> cycles;  // of a device's row
  // Decided after annotation.
  std::optional<target::Reason> gated;  // why it went back from `gated_from` to the CPU
  const target::Target* gated_from = nullptr;

  uint32_t root() const { return nodes.back(); }
  // One that was compiled before: a region of its own, which stays on its device. On the CPU: no target takes
  // it, and no plan can be made.
  bool is_program = false;
};

// A pattern matched, but constraints do not hold.
struct Refusal {
  const target::Target* target;
  const target::PatternRow* row;
  std::vector<target::Reason> reasons;
};

struct Annotation {
  std::vector<Unit> units;                     // by their roots: a unit reads only units before it
  std::vector<uint32_t> unit_of;               // by node
  std::vector<std::vector<Refusal>> refusals;  // by node
};

// targets: by priority, the CPU among them. cpu: its costs. Nodes in the exclusions go to other targets.
Annotation annotate(const pattern::Pre& pre, std::span<const target::Target* const> targets,
                    std::span<const Pin> pins, std::span<const Exclusion> exclusions = {});

// Why a target does not run a node: refusals, otherwise the near miss, or the operator that no pattern
// contains.
TargetVerdict verdict(const pattern::Pre& pre, const Annotation& annotation, const Unit& unit,
                      const target::Target& target);

// ---- merge regions ----
// Which units of a graph go together into one region: connected units of one device, so that no way leads out
// of a region and back into it. Knows nothing of the IR.

inline constexpr int32_t kNoDevice = -1;
inline constexpr uint32_t kNoRegion = UINT32_MAX;

struct UnitGraph {
  // The units that each unit reads; all of them come before it.
  std::vector<std::vector<uint32_t>> reads;
  // kNoDevice: belongs to no region. A unit that must be a region alone has a number of its own.
  std::vector<int32_t> device;
};

// The region of each unit, numbered by their first units; kNoRegion for units of no device. The graph whose
// nodes are the regions and the units outside of them has no circle, and no two neighbouring regions of a
// device can be merged without making one (as far as the search's budget, linear in the size of the graph,
// reaches).
std::vector<uint32_t> merge_regions(const UnitGraph& graph);

// ---- gate by cost ----
// Counts the copies at boundaries of regions, and decides whether a region is worth them.

// A group of units of one device; it goes back to the CPU as a whole.
struct Island {
  std::vector<uint32_t> units;       // ascending
  std::vector<ir::ValueId> inputs;   // what it reads of others, in the order of its first use; no constants
  std::vector<ir::ValueId> outputs;  // what others read, in the order of its nodes
  bool alive = true;                 // on its device
};

struct Islands {
  std::vector<Island> islands;
  std::vector<uint32_t> island_of;  // by unit; kNoRegion: none
};

// region_of: of each unit, as merge_regions numbers them.
Islands find_islands(const ir::Function& function, const Annotation& annotation,
                     std::vector<uint32_t> region_of);

// Tensors that are copied between the CPU and the device: those that are not passed on between islands of one
// device.
struct Crossing {
  uint32_t num_copies = 0;
  uint64_t bytes = 0;
};
// By island, of those that are alive.
std::vector<Crossing> crossings(const ir::Function& function, const Annotation& annotation,
                                const Islands& islands);

// The figures of an island's device and of the CPU.
struct Decision {
  Prefer by = Prefer::kDefault;  // kDefault: nothing was asked
  bool pinned = false;
  bool is_program = false;
  uint64_t device_ns = 0, cpu_ns = 0;
  Crossing copies;  // at its boundary, with the island on the device
  uint64_t copy_ns = 0;
  uint64_t spared_ns = 0;  // copies that its neighbours on the device would need without it
  uint64_t device_pj = 0, cpu_pj = 0, copy_pj = 0, spared_pj = 0;
};

// Sends islands back to the CPU until each that is left pays, by what is preferred (not kDefault; null: all
// stay); their units say why. Islands with pinned units or programs stay. Returns the last decision about
// each island.
std::vector<Decision> gate_by_cost(const ir::Function& function, const target::Target& cpu,
                                   std::optional<Prefer> prefer, Annotation* annotation, Islands* islands);

// "npu", "latency" or "energy".
const char* prefer_name(Prefer prefer);

// ---- outline ----

// Regions as functions of their own.
struct Outlined {
  ir::Module module;
  std::vector<uint32_t> order;             // islands in the order in which main calls them
  std::vector<std::string> function_name;  // by island; empty for those that are not alive
};

// The living islands become functions qplan_<target>_main_<n>, or qplan_<target>_program_<n>, with Compiler,
// Primitive and global_symbol; units of composites become functions with Composite and Primitive. Everything
// else stays in main.
Outlined outline(const ir::Function& main, const Annotation& annotation, const Islands& islands);

}  // namespace qplan::partition

#endif  // QPLAN_SRC_PACKER_PARTITION_STAGES_H_
