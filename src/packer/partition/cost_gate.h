// Counts the copies at boundaries of regions, and decides whether a region is worth them.
#ifndef QPLAN_SRC_PACKER_PARTITION_COST_GATE_H_
#define QPLAN_SRC_PACKER_PARTITION_COST_GATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/partition/annotate.h"
#include "src/packer/partition/partition.h"

namespace qplan::partition {

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
  uint64_t device_ns = 0, cpu_ns = 0;
  Crossing copies;  // at its boundary, with the island on the device
  uint64_t copy_ns = 0;
  uint64_t spared_ns = 0;  // copies that its neighbours on the device would need without it
  uint64_t device_pj = 0, cpu_pj = 0, copy_pj = 0, spared_pj = 0;
};

// Sends islands back to the CPU until each that is left pays, by what is preferred (not kDefault; null: all
// stay); their units say why. Islands with pinned units stay. Returns the last decision about each island.
std::vector<Decision> gate_by_cost(const ir::Function& function, const target::Target& cpu,
                                   std::optional<Prefer> prefer, Annotation* annotation, Islands* islands);

// "npu", "latency" or "energy".
const char* prefer_name(Prefer prefer);

}  // namespace qplan::partition

#endif  // QPLAN_SRC_PACKER_PARTITION_COST_GATE_H_
