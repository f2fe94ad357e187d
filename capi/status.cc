// Status and ISA names.
#include "kernels/cpu.h"
#include "qplan/qplan.h"

uint32_t qplan_api_version(void) { return QPLAN_API_VERSION; }

const char* qplan_status_name(qplan_status status) {
  switch (status) {
#define QPLAN_STATUS(name) \
  case name:               \
    return #name;
    QPLAN_STATUS(QPLAN_OK)
    QPLAN_STATUS(QPLAN_PENDING)
    QPLAN_STATUS(QPLAN_INVALID_ARGUMENT)
    QPLAN_STATUS(QPLAN_INVALID_STATE)
    QPLAN_STATUS(QPLAN_SHAPE_MISMATCH)
    QPLAN_STATUS(QPLAN_DTYPE_MISMATCH)
    QPLAN_STATUS(QPLAN_MISALIGNED)
    QPLAN_STATUS(QPLAN_MEMORY_TOO_SMALL)
    QPLAN_STATUS(QPLAN_NOT_FOUND)
    QPLAN_STATUS(QPLAN_WORK_LIMIT)
    QPLAN_STATUS(QPLAN_PLAN_CORRUPT)
    QPLAN_STATUS(QPLAN_PLAN_VERSION)
    QPLAN_STATUS(QPLAN_KERNEL_MISSING)
    QPLAN_STATUS(QPLAN_DRIVER_MISSING)
    QPLAN_STATUS(QPLAN_DEVICE_ERROR)
    QPLAN_STATUS(QPLAN_DEVICE_TIMEOUT)
    QPLAN_STATUS(QPLAN_CANCELLED)
    QPLAN_STATUS(QPLAN_SELF_CHECK_FAILED)
    QPLAN_STATUS(QPLAN_MODEL_INVALID)
    QPLAN_STATUS(QPLAN_MODEL_UNSUPPORTED)
    QPLAN_STATUS(QPLAN_FILE_ERROR)
    QPLAN_STATUS(QPLAN_OUT_OF_MEMORY)
    QPLAN_STATUS(QPLAN_INTERNAL)
#undef QPLAN_STATUS
    default:
      return "QPLAN_UNKNOWN_STATUS";
  }
}

namespace {

struct IsaName {
  uint32_t isa;
  const char* name;
};
constexpr IsaName kIsaNames[] = {
    {QPLAN_ISA_AUTO, "auto"},
    {QPLAN_ISA_REFERENCE, "reference"},
#define QPLAN_ISA(arch, name, NAME, id, base, vectors, macs_per_cycle, features, flags) \
  {QPLAN_ISA_##NAME, #name},
#include "kernels/isa.def"
#undef QPLAN_ISA
};

bool same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

}  // namespace

const char* qplan_isa_name(uint32_t isa) {
  for (const IsaName& entry : kIsaNames) {
    if (entry.isa == isa) return entry.name;
  }
  return nullptr;
}

qplan_status qplan_isa_from_name(const char* name, uint32_t* isa) {
  if (name == nullptr || isa == nullptr) return QPLAN_INVALID_ARGUMENT;
  for (const IsaName& entry : kIsaNames) {
    if (same(entry.name, name)) {
      *isa = entry.isa;
      return QPLAN_OK;
    }
  }
  *isa = 0;
  return QPLAN_NOT_FOUND;
}

int qplan_isa_available(uint32_t isa) { return qplan::cpu_has_isa(isa) ? 1 : 0; }
