// Nodes without weights as units: qplan.qadd, qplan.qclip, qplan.qmax_pool2d, qplan.qavg_pool2d, qplan.qmean.
#ifndef QPLAN_SRC_VTA_COMPILER_ALU_UNITS_H_
#define QPLAN_SRC_VTA_COMPILER_ALU_UNITS_H_

#include <optional>

#include "src/vta/compiler/add.h"
#include "src/vta/compiler/pool.h"
#include "src/vta/compiler/unit.h"

namespace qplan::target::vta {

// Candidates of these rows, whose constraints hold.
UnitPlan read_add_unit(const Config& config, const Candidate& candidate);
UnitPlan read_clip_unit(const Config& config, const Candidate& candidate);
UnitPlan read_max_pool_unit(const Config& config, const Candidate& candidate);
UnitPlan read_average_pool_unit(const Config& config, const Candidate& candidate);
UnitPlan read_mean_unit(const Config& config, const Candidate& candidate);

// For the constraints. nullopt: scales or zero points are not constants, which is another constraint's to
// say.
std::optional<Pool> average_pool(const Candidate& candidate);
std::optional<MeanOperator> mean_operator(const Candidate& candidate);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_ALU_UNITS_H_
