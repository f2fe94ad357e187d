// The status codes of drivers, as messages write them.
#ifndef QPLAN_SRC_RUNTIME_NPU_STATUS_H_
#define QPLAN_SRC_RUNTIME_NPU_STATUS_H_

#include "qplan/npu_driver.h"

namespace qplan {

// "bus error"; of a number that only a later ABI names, of its class. "" of QPLAN_NPU_OK.
const char* npu_status_text(qplan_npu_status status);
// "E_BUS", for those who write drivers; "" of a number that this ABI does not name.
const char* npu_status_name(qplan_npu_status status);

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_NPU_STATUS_H_
