#include "src/runtime/npu/status.h"

namespace qplan {

// Errors of qplan/npu_driver.h, without QPLAN_NPU_.
// clang-format off
#define QPLAN_NPU_ERRORS(X) \
  X(E_ARGUMENT, "wrong argument") \
  X(E_VERSION, "made for another version or other capabilities") \
  X(E_UNSUPPORTED, "not supported") \
  X(E_BLOB, "damaged blob") \
  X(E_MEMORY, "no memory left") \
  X(E_ONCHIP, "memory on the chip is in use") \
  X(E_BUSY, "busy") \
  X(E_CANCELLED, "cancelled") \
  X(E_OFF, "powered off") \
  X(E_TIMEOUT, "timeout") \
  X(E_BUS, "bus error") \
  X(E_ILLEGAL, "illegal instruction") \
  X(E_HAZARD, "hazard") \
  X(E_RESET, "the device was reset") \
  X(E_LOST, "the device went away") \
  X(E_ABSENT, "there is no such device")
// clang-format on

const char* npu_status_text(qplan_npu_status status) {
  switch (status) {
    case QPLAN_NPU_OK:
      return "";
#define QPLAN_CASE(name, text) \
  case QPLAN_NPU_##name:       \
    return text;
      QPLAN_NPU_ERRORS(QPLAN_CASE)
#undef QPLAN_CASE
    default:
      break;
  }
  switch (QPLAN_NPU_CLASS(status)) {
    case QPLAN_NPU_CLASS_MISTAKE:
      return "refused";
    case QPLAN_NPU_CLASS_CPU_NOW:
      return "not possible now";
    case QPLAN_NPU_CLASS_RESET:
      return "device error";
    default:
      return "device gone";
  }
}

const char* npu_status_name(qplan_npu_status status) {
  switch (status) {
    case QPLAN_NPU_OK:
      return "OK";
    case QPLAN_NPU_PENDING:
      return "PENDING";
#define QPLAN_CASE(name, text) \
  case QPLAN_NPU_##name:       \
    return #name;
      QPLAN_NPU_ERRORS(QPLAN_CASE)
#undef QPLAN_CASE
    default:
      return "";
  }
}
#undef QPLAN_NPU_ERRORS

}  // namespace qplan
