// From a canonical module and a list of targets to what each of them runs.
#ifndef QPLAN_SRC_PACKER_PIPELINE_PLACE_H_
#define QPLAN_SRC_PACKER_PIPELINE_PLACE_H_

#include <memory>
#include <string>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/partition/compile.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/target/lower.h"
#include "src/packer/target/target.h"

namespace qplan::pipeline {

// The targets that the options name. PackError (QPLAN_INVALID_ARGUMENT).
std::vector<target::Target> read_targets(const PackOptions& options);
const target::Target& cpu_of(const std::vector<target::Target>& targets);

// Regions on their devices, with what lowering needs of them.
struct Placed {
  partition::CompiledPartition partition;
  std::vector<std::unique_ptr<ir::Function>> bodies;  // as partition.placed.regions
  target::RegionCodes codes;                          // refers to the two above; of regions with a program

  const ir::Function& main() const { return partition.placed.module.main(); }
  partition::Explain& explain() { return partition.placed.explain; }
};
// module: canonical. targets must outlive the result. PackError as partition::compile_partition.
std::unique_ptr<Placed> place(const ir::Module& module, const std::vector<target::Target>& targets,
                              const PackOptions& options);

// PackError (QPLAN_INVALID_ARGUMENT) naming a region whose target has no compiler.
void check_all_compiled(const Placed& placed);

}  // namespace qplan::pipeline

#endif  // QPLAN_SRC_PACKER_PIPELINE_PLACE_H_
