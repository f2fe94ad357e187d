// A region of a module as one program for VTA.
#ifndef QPLAN_SRC_VTA_COMPILER_COMPILE_REGION_H_
#define QPLAN_SRC_VTA_COMPILER_COMPILE_REGION_H_

#include "src/packer/ir/module.h"
#include "src/packer/target/region.h"
#include "src/vta/compiler/config.h"

namespace qplan::target::vta {

// region: a function of the module whose nodes are operators or calls of composites of the target's table.
// Values between its nodes stay in the device's memory, in one scratch buffer; inputs and outputs are buffers
// of their own. RegionRefused names a node that the device cannot take: vta.region.unit (no compiler, or it
// does not fit), vta.region.layout, vta.region.border_value, vta.region.buffer, vta.region.scratch.
CompiledRegion compile_region(const Config& config, const ir::Module& module, const ir::Function& region);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_COMPILE_REGION_H_
