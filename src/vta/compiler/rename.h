// Reshapes whose elements lie alike on the device before and after them: units without instructions.
#ifndef QPLAN_SRC_VTA_COMPILER_RENAME_H_
#define QPLAN_SRC_VTA_COMPILER_RENAME_H_

#include <vector>

#include "src/vta/compiler/unit.h"

namespace qplan::target::vta {

// Whether the bytes of the one, without border, are those of the other.
bool lie_alike(const UnitActivation& a, const UnitActivation& b);

std::vector<Constraint> rename_constraints();

// A plan without compile(). Candidates whose constraints hold.
UnitPlan read_rename_unit(const Config& config, const Candidate& candidate);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_RENAME_H_
