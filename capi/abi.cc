// What programs rely on of qplan.h beside its functions: the version, the names of status codes and of ISAs,
// and the layout of structs.
#include <stddef.h>

#include "kernels/cpu.h"
#include "qplan/qplan.h"

// ---- version and names

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

// ---- layout

// The layout of every public struct is ABI: applications, ctypes and other languages rely on it. A line that
// fails here means that a struct grew in the middle or that a field changed its type; structs grow at their
// end only, and then their size here grows with them. Pointers count as P bytes; int64_t is aligned to 8 on
// all supported devices.

#define QPLAN_SIZE(type, bits32, bits64) \
  static_assert(sizeof(type) == (sizeof(void*) == 4 ? (bits32) : (bits64)), "size of " #type " is ABI")
#define QPLAN_FIELD(type, field, bits32, bits64)                                     \
  static_assert(offsetof(type, field) == (sizeof(void*) == 4 ? (bits32) : (bits64)), \
                "offset of " #type "." #field " is ABI")

static_assert(sizeof(void*) == 4 || sizeof(void*) == 8, "qplan knows 32-bit and 64-bit devices");
static_assert(alignof(uint64_t) == 8, "uint64_t is aligned to 8 in structs");
static_assert(sizeof(int) == 4, "DLTensor holds ints");

QPLAN_SIZE(qplan_status, 4, 4);

QPLAN_SIZE(qplan_error, 256, 256);
QPLAN_FIELD(qplan_error, struct_size, 0, 0);
QPLAN_FIELD(qplan_error, status, 4, 4);
QPLAN_FIELD(qplan_error, step, 8, 8);
QPLAN_FIELD(qplan_error, tensor, 12, 12);
QPLAN_FIELD(qplan_error, text, 16, 16);

QPLAN_SIZE(qplan_plan, 64, 64);

QPLAN_SIZE(qplan_plan_info, 24, 32);
QPLAN_FIELD(qplan_plan_info, struct_size, 0, 0);
QPLAN_FIELD(qplan_plan_info, is_for_other_arch, 4, 4);
QPLAN_FIELD(qplan_plan_info, target_options, 8, 8);
QPLAN_FIELD(qplan_plan_info, runtime_arch, 12, 16);
QPLAN_FIELD(qplan_plan_info, version_major, 16, 24);
QPLAN_FIELD(qplan_plan_info, version_minor, 20, 28);

QPLAN_SIZE(DLDataType, 4, 4);
QPLAN_SIZE(DLTensor, 40, 48);

QPLAN_SIZE(qplan_tensor_info, 48, 64);
QPLAN_FIELD(qplan_tensor_info, struct_size, 0, 0);
QPLAN_FIELD(qplan_tensor_info, ndim, 4, 4);
QPLAN_FIELD(qplan_tensor_info, name, 8, 8);
QPLAN_FIELD(qplan_tensor_info, shape, 12, 16);
QPLAN_FIELD(qplan_tensor_info, dtype, 16, 24);
QPLAN_FIELD(qplan_tensor_info, alignment, 20, 28);
QPLAN_FIELD(qplan_tensor_info, size_bytes, 24, 32);
QPLAN_FIELD(qplan_tensor_info, scales, 32, 40);
QPLAN_FIELD(qplan_tensor_info, zero_points, 36, 48);
QPLAN_FIELD(qplan_tensor_info, num_scales, 40, 56);
QPLAN_FIELD(qplan_tensor_info, quant_axis, 44, 60);

QPLAN_SIZE(qplan_thread_pool, 24, 32);
QPLAN_FIELD(qplan_thread_pool, struct_size, 0, 0);
QPLAN_FIELD(qplan_thread_pool, num_threads, 4, 4);
QPLAN_FIELD(qplan_thread_pool, user, 8, 8);
QPLAN_FIELD(qplan_thread_pool, parallel_for, 12, 16);
QPLAN_FIELD(qplan_thread_pool, is_uneven, 16, 24);

QPLAN_SIZE(qplan_event, 48, 56);
QPLAN_FIELD(qplan_event, struct_size, 0, 0);
QPLAN_FIELD(qplan_event, step, 4, 4);
QPLAN_FIELD(qplan_event, op, 8, 8);
QPLAN_FIELD(qplan_event, kernel, 12, 16);
QPLAN_FIELD(qplan_event, name, 16, 24);
QPLAN_FIELD(qplan_event, macs, 24, 32);
QPLAN_FIELD(qplan_event, bytes, 32, 40);
QPLAN_FIELD(qplan_event, work, 40, 48);

QPLAN_SIZE(qplan_platform, 40, 72);
QPLAN_FIELD(qplan_platform, struct_size, 0, 0);
QPLAN_FIELD(qplan_platform, log_level, 4, 4);
QPLAN_FIELD(qplan_platform, user, 8, 8);
QPLAN_FIELD(qplan_platform, log, 12, 16);
QPLAN_FIELD(qplan_platform, step_begin, 16, 24);
QPLAN_FIELD(qplan_platform, step_end, 20, 32);
QPLAN_FIELD(qplan_platform, now_ns, 24, 40);
QPLAN_FIELD(qplan_platform, thread_pool, 28, 48);
QPLAN_FIELD(qplan_platform, yield, 32, 56);
QPLAN_FIELD(qplan_platform, yield_work, 36, 64);

QPLAN_SIZE(qplan_memory, 8, 16);
QPLAN_FIELD(qplan_memory, base, 0, 0);
QPLAN_FIELD(qplan_memory, size, 4, 8);

QPLAN_SIZE(qplan_session_config, 56, 72);
QPLAN_FIELD(qplan_session_config, struct_size, 0, 0);
QPLAN_FIELD(qplan_session_config, isa_limit, 4, 4);
QPLAN_FIELD(qplan_session_config, function, 8, 8);
QPLAN_FIELD(qplan_session_config, kernels, 12, 16);
QPLAN_FIELD(qplan_session_config, platform, 16, 24);
QPLAN_FIELD(qplan_session_config, npu, 20, 32);
QPLAN_FIELD(qplan_session_config, devices, 24, 40);
QPLAN_FIELD(qplan_session_config, num_devices, 28, 48);
QPLAN_FIELD(qplan_session_config, on_npu_failure, 32, 52);
QPLAN_FIELD(qplan_session_config, npu_flags, 36, 56);
QPLAN_FIELD(qplan_session_config, npu_timeout_us, 40, 60);
QPLAN_FIELD(qplan_session_config, max_work, 48, 64);

QPLAN_SIZE(qplan_npu_device_config, 32, 40);
QPLAN_FIELD(qplan_npu_device_config, struct_size, 0, 0);
QPLAN_FIELD(qplan_npu_device_config, target, 8, 8);
QPLAN_FIELD(qplan_npu_device_config, driver, 12, 16);
QPLAN_FIELD(qplan_npu_device_config, device, 16, 24);
QPLAN_FIELD(qplan_npu_device_config, status, 24, 32);
QPLAN_FIELD(qplan_npu_device_config, max_failures, 28, 36);

QPLAN_SIZE(qplan_memory_need, 16, 16);
QPLAN_FIELD(qplan_memory_need, bank, 0, 0);
QPLAN_FIELD(qplan_memory_need, alignment, 4, 4);
QPLAN_FIELD(qplan_memory_need, size, 8, 8);

QPLAN_SIZE(qplan_session_info, 48, 48);
QPLAN_FIELD(qplan_session_info, struct_size, 0, 0);
QPLAN_FIELD(qplan_session_info, num_steps, 4, 4);
QPLAN_FIELD(qplan_session_info, num_threads, 8, 8);
QPLAN_FIELD(qplan_session_info, isa, 12, 12);
QPLAN_FIELD(qplan_session_info, isa_name, 16, 16);
QPLAN_FIELD(qplan_session_info, macs, 24, 24);
QPLAN_FIELD(qplan_session_info, memory_bytes, 32, 32);
QPLAN_FIELD(qplan_session_info, work, 40, 40);

QPLAN_SIZE(qplan_region_info, 256, 264);
QPLAN_FIELD(qplan_region_info, struct_size, 0, 0);
QPLAN_FIELD(qplan_region_info, step, 4, 4);
QPLAN_FIELD(qplan_region_info, name, 8, 8);
QPLAN_FIELD(qplan_region_info, target, 12, 16);
QPLAN_FIELD(qplan_region_info, on_device, 16, 24);
QPLAN_FIELD(qplan_region_info, status, 20, 28);
QPLAN_FIELD(qplan_region_info, num_operators, 24, 32);
QPLAN_FIELD(qplan_region_info, has_alternative, 28, 36);
QPLAN_FIELD(qplan_region_info, macs, 32, 40);
QPLAN_FIELD(qplan_region_info, device_runs, 40, 48);
QPLAN_FIELD(qplan_region_info, cpu_runs, 48, 56);
QPLAN_FIELD(qplan_region_info, failures, 56, 64);
QPLAN_FIELD(qplan_region_info, mismatches, 64, 72);
QPLAN_FIELD(qplan_region_info, copies, 72, 80);
QPLAN_FIELD(qplan_region_info, copy_bytes, 80, 88);
QPLAN_FIELD(qplan_region_info, last_cycles, 88, 96);
QPLAN_FIELD(qplan_region_info, text, 96, 104);

QPLAN_SIZE(qplan_device_info, 256, 264);
QPLAN_FIELD(qplan_device_info, struct_size, 0, 0);
QPLAN_FIELD(qplan_device_info, state, 4, 4);
QPLAN_FIELD(qplan_device_info, target, 8, 8);
QPLAN_FIELD(qplan_device_info, driver, 12, 16);
QPLAN_FIELD(qplan_device_info, last_status, 16, 24);
QPLAN_FIELD(qplan_device_info, num_regions, 20, 28);
QPLAN_FIELD(qplan_device_info, jobs, 24, 32);
QPLAN_FIELD(qplan_device_info, failed_jobs, 32, 40);
QPLAN_FIELD(qplan_device_info, timeouts, 40, 48);
QPLAN_FIELD(qplan_device_info, retries, 48, 56);
QPLAN_FIELD(qplan_device_info, fallbacks, 56, 64);
QPLAN_FIELD(qplan_device_info, resets, 64, 72);
QPLAN_FIELD(qplan_device_info, cycles, 72, 80);
QPLAN_FIELD(qplan_device_info, program_bytes, 80, 88);
QPLAN_FIELD(qplan_device_info, text, 88, 96);
QPLAN_FIELD(qplan_device_info, misplaced_bytes, 248, 256);

QPLAN_SIZE(qplan_buffer, 128, 128);
