// What stopped a job, or what a job did that a correct one does not.
#ifndef QPLAN_SRC_VTA_SIM_FAULT_H_
#define QPLAN_SRC_VTA_SIM_FAULT_H_

#include <cstdint>
#include <string>

#include "qplan/npu_driver.h"

namespace qplan::sim {

struct Fault {
  qplan_npu_status status = QPLAN_NPU_OK;
  uint64_t instruction = QPLAN_NPU_NO_INSTRUCTION;
  uint64_t address = 0;  // in the device's address space
  std::string text;      // one line

  bool is_set() const { return status != QPLAN_NPU_OK; }
};

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_FAULT_H_
