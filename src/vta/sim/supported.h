// Whether VTA can execute an operator, and all the reasons why not. Codes are stable: append only.
#ifndef QPLAN_SRC_VTA_SIM_SUPPORTED_H_
#define QPLAN_SRC_VTA_SIM_SUPPORTED_H_

#include <vector>

#include "qplan/npu_driver.h"
#include "src/vta/isa/vta.h"

namespace qplan::sim {

enum OpRule : uint32_t {
  kOpKind = 101,
  kOpContract = 102,
  kOpTensors = 103,
  kOpInputType = 104,
  kOpWeightType = 105,
  kOpGroups = 106,
  kOpWindow = 107,
  kOpScales = 108,
};

// QPLAN_NPU_TFL2 ...: what the device executes bit for bit.
constexpr uint32_t contracts_of(const vta::Config& config) {
  const uint32_t tfl2 = config.has_multiply ? uint32_t{QPLAN_NPU_TFL2} : 0u;
  return tfl2 | QPLAN_NPU_POT | QPLAN_NPU_ACC32;
}

std::vector<qplan_npu_reason> why_unsupported(const vta::Config& config, const qplan_npu_op& op);

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_SUPPORTED_H_
