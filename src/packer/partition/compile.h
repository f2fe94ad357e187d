// Placement with the devices' compilers: what a compiler cannot take after all goes to the next target.
#ifndef QPLAN_SRC_PACKER_PARTITION_COMPILE_H_
#define QPLAN_SRC_PACKER_PARTITION_COMPILE_H_

#include <optional>
#include <span>
#include <vector>

#include "src/packer/partition/partition.h"
#include "src/packer/target/region.h"

namespace qplan::partition {

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

#endif  // QPLAN_SRC_PACKER_PARTITION_COMPILE_H_
