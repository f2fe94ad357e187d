// Layers of weights (qplan.qconv2d, qplan.qdepthwise, qplan.qdense, ..._acc32) as units.
#ifndef QPLAN_SRC_VTA_COMPILER_GEMM_UNIT_H_
#define QPLAN_SRC_VTA_COMPILER_GEMM_UNIT_H_

#include "src/vta/compiler/unit.h"

namespace qplan::target::vta {

UnitPlan read_gemm_unit(const Config& config, const Candidate& candidate);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_GEMM_UNIT_H_
