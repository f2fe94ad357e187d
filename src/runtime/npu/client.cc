#include "src/runtime/npu/client.h"

#include <stddef.h>
#include <string.h>

#include "qplan/npu_op.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/runtime/npu/driver_answers.h"
#include "src/runtime/structs.h"

namespace qplan {
namespace {

constexpr uint32_t kDefaultMaxFailures = 3;

// An array of the caller's has elements of the caller's struct_size.
qplan_npu_device_config config_at(const SessionOptions& options, uint32_t i) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(options.devices);
  return known_fields(
      reinterpret_cast<const qplan_npu_device_config*>(bytes + size_t{options.devices->struct_size} * i));
}

// What every driver of this major has.
constexpr size_t kDriverBytes = offsetof(qplan_npu_driver, counters) + sizeof(qplan_npu_driver::counters);

bool has_known_abi(const qplan_npu_driver& driver) {
  return driver.abi >> 16 == QPLAN_NPU_ABI >> 16 && driver.struct_size >= kDriverBytes;
}

// Only of one with a known ABI.
bool is_whole(const qplan_npu_driver& d) {
  return d.name != nullptr && d.enumerate != nullptr && d.open != nullptr && d.close != nullptr &&
         d.capabilities != nullptr && d.supported != nullptr && d.reset != nullptr &&
         d.requirements != nullptr && d.alloc != nullptr && d.import_memory != nullptr &&
         d.release != nullptr && d.layout != nullptr && d.map != nullptr && d.unmap != nullptr &&
         d.flush != nullptr && d.invalidate != nullptr && d.load != nullptr && d.program_info != nullptr &&
         d.region_info != nullptr && d.unload != nullptr && d.submit != nullptr && d.wait != nullptr &&
         d.cancel != nullptr;
}

qplan_status check_configs(const SessionOptions& options, Error* error) {
  for (uint32_t i = 0; i < options.num_devices; ++i) {
    const qplan_npu_device_config config = config_at(options, i);
    if (config.struct_size == 0 || config.struct_size != options.devices->struct_size) {
      return error->set(QPLAN_INVALID_ARGUMENT)
             << "session: struct_size of device " << i << " is " << config.struct_size
             << "; set it to sizeof(qplan_npu_device_config), the same for all";
    }
    if (config.target == nullptr) {
      return error->set(QPLAN_INVALID_ARGUMENT) << "session: device " << i << " names no target";
    }
    if (config.driver != nullptr && has_known_abi(*config.driver) && !is_whole(*config.driver)) {
      return error->set(QPLAN_INVALID_ARGUMENT)
             << "session: the driver of device " << i << ", for target " << Quoted{config.target}
             << ", has no name, or lacks a function that qplan/npu_driver.h does not call optional";
    }
    for (uint32_t k = 0; k < i; ++k) {
      if (!same_text(config_at(options, k).target, config.target)) continue;
      return error->set(QPLAN_INVALID_ARGUMENT)
             << "session: devices " << k << " and " << i << " are both for target " << Quoted{config.target};
    }
  }
  return QPLAN_OK;
}

void make_absent(NpuDevice* device, qplan_npu_status status, const char* what, const char* why) {
  device->state = QPLAN_DEVICE_ABSENT;
  device->last_status = status;
  Error text;
  text << what << why;
  put_text(text.text(), device->text);
}

// The buffer of a bank: the caller's memory where the device reaches it, otherwise a buffer of the driver.
qplan_npu_status take_memory(const NpuDevice& device, const qplan_npu_buffer_request& request,
                             bool can_import, uint8_t* memory, NpuBank* bank) {
  const qplan_npu_driver& driver = *device.driver;
  if (can_import) {
    const qplan_npu_status status =
        driver.import_memory(device.device, &request, QPLAN_NPU_IMPORT_POINTER,
                             static_cast<uint64_t>(reinterpret_cast<uintptr_t>(memory)), 0, &bank->buffer);
    if (status >= 0) {
      bank->memory = memory;
      return status;
    }
    bank->buffer = 0;
    if (QPLAN_NPU_CLASS(status) == QPLAN_NPU_CLASS_GONE) return status;
  }
  qplan_npu_status status = driver.alloc(device.device, &request, &bank->buffer);
  if (status < 0) {
    bank->buffer = 0;
    return status;
  }
  void* mapped = nullptr;
  status = driver.map(device.device, bank->buffer, QPLAN_NPU_READ | QPLAN_NPU_WRITE, &mapped);
  bank->memory = static_cast<uint8_t*>(mapped);
  bank->is_shadow = true;
  return status < 0 || mapped != nullptr ? status : qplan_npu_status{QPLAN_NPU_E_UNSUPPORTED};
}

// A device computes the same in any memory: a class that is not to be had makes it slower, and is logged.
void log_misplaced(const Session& session, const NpuDevice& device, const format::Bank& bank,
                   qplan_npu_status status) {
  if (session.platform.log == nullptr || session.platform.log_level < QPLAN_LOG_WARNING) return;
  Error line;
  line << "npu: the plan asks for " << bank.size() << " bytes of "
       << Quoted{qplan_npu_memory_class_name(bank.memory_class())} << " memory for "
       << Quoted{name_of_target(session, device)} << ", driver " << Quoted{device.driver->name};
  if (status < 0) {
    line << " gives none: " << npu_status_text(status) << " (status " << status << ")";
  } else {
    line << " has them elsewhere";
  }
  line << "; other memory is used, which may be slower (see qplan_plan_memory_class)";
  log_text(session.platform, QPLAN_LOG_WARNING, line.text());
}

void release_bank(const NpuDevice& device, NpuBank* bank) {
  if (bank->buffer == 0) return;
  if (bank->is_shadow && bank->memory != nullptr) {
    (void)device.driver->unmap(device.device, bank->buffer, QPLAN_NPU_READ);
  }
  (void)device.driver->release(device.device, bank->buffer);
  bank->buffer = 0;
  bank->memory = nullptr;
}
void release_banks(NpuDevice* device) {
  for (NpuBank& bank : device->banks) release_bank(*device, &bank);
}

qplan_npu_status take_bank(Session* session, bool can_import, NpuDevice* device, NpuBank* taken) {
  const format::Bank& bank = session->plan.bank(taken->index);
  uint8_t* memory = session->arenas[taken->index];
  qplan_npu_buffer_request request = {};
  request.struct_size = sizeof(request);
  request.usage = QPLAN_NPU_USE_INPUT | QPLAN_NPU_USE_OUTPUT | QPLAN_NPU_USE_SCRATCH;
  request.alignment = bank.alignment();
  request.min_bytes = bank.size();
  request.memory_class = bank.memory_class();
  const qplan_npu_status status = take_memory(*device, request, can_import, memory, taken);
  if (lacks_class(status, request.memory_class)) {
    release_bank(*device, taken);
    taken->is_shadow = false;
    taken->is_misplaced = true;
    request.memory_class = QPLAN_NPU_MEMORY_CLASS_ANY;
    const qplan_npu_status elsewhere = take_memory(*device, request, can_import, memory, taken);
    if (elsewhere >= 0) log_misplaced(*session, *device, bank, status);
    return elsewhere;
  }
  if (status < 0 || request.memory_class == QPLAN_NPU_MEMORY_CLASS_ANY) return status;
  qplan_npu_layout layout = {};
  layout.struct_size = sizeof(layout);
  if (device->driver->layout(device->device, taken->buffer, &layout) >= 0 &&
      layout.memory_class != QPLAN_NPU_MEMORY_CLASS_ANY && layout.memory_class != request.memory_class) {
    taken->is_misplaced = true;
    log_misplaced(*session, *device, bank, QPLAN_NPU_OK);
  }
  return status;
}

void open_device(Session* session, const qplan_npu_device_config& config, NpuDevice* device) {
  device->max_failures = config.max_failures == 0 ? kDefaultMaxFailures : config.max_failures;
  const qplan_npu_driver* driver = config.driver;
  if (driver == nullptr) {
    return make_absent(device, config.status, "its device could not be opened: ",
                       config.status < 0 ? npu_status_text(config.status) : "no driver");
  }
  if (!has_known_abi(*driver)) {
    return make_absent(device, QPLAN_NPU_E_VERSION, "its driver has another version of the ABI", "");
  }
  device->driver = driver;
  device->device = config.device;
  qplan_npu_capabilities capabilities = {};
  capabilities.struct_size = sizeof(capabilities);
  qplan_npu_status status = driver->capabilities(device->device, &capabilities);
  if (status < 0)
    return make_absent(device, status, "its device states no capabilities: ", npu_status_text(status));
  device->is_asynchronous = (capabilities.flags & QPLAN_NPU_CAN_ASYNC) != 0;
  device->max_binds = capabilities.max_binds;
  device->clock_khz = capabilities.clock_khz;
  const bool can_import = (capabilities.flags & QPLAN_NPU_CAN_IMPORT) != 0;
  for (NpuBank& bank : device->banks) {
    if (bank.index >= session->plan.num_banks()) continue;
    status = take_bank(session, can_import, device, &bank);
    if (status < 0) break;
  }
  if (status < 0) {
    release_banks(device);
    return make_absent(device, status,
                       "its device has no memory for the plan's bank: ", npu_status_text(status));
  }
  device->state = QPLAN_DEVICE_PRESENT;
}

qplan_status init(Session* session, const SessionOptions& options, Error* error) {
  NpuState& npu = *session->npu;
  if (check_configs(options, error) != QPLAN_OK) return error->status();
  if ((npu.flags & QPLAN_NPU_OFF) != 0) return QPLAN_OK;
  for (uint32_t d = 0; d < npu.num_devices; ++d) {
    NpuDevice* device = &npu.devices[d];
    uint32_t i = 0;
    while (i < options.num_devices &&
           !same_text(config_at(options, i).target, name_of_target(*session, *device))) {
      ++i;
    }
    if (i < options.num_devices) {
      open_device(session, config_at(options, i), device);
    } else {
      make_absent(device, QPLAN_NPU_OK, "no device was given for its target", "");
    }
  }
  for (uint32_t r = 0; r < npu.num_regions; ++r) load_region(session, &npu.regions[r]);
  return QPLAN_OK;
}

qplan_status deinit(Session* session) {
  NpuState& npu = *session->npu;
  stop_job(session);
  qplan_status status = QPLAN_OK;
  for (uint32_t r = 0; r < npu.num_regions; ++r) unload_region(&npu.regions[r]);
  for (uint32_t d = 0; d < npu.num_devices; ++d) {
    NpuDevice* device = &npu.devices[d];
    release_banks(device);
    if (!device->has_lost_job) continue;
    Error line;
    line << "npu: " << Quoted{name_of_target(*session, *device)} << ", driver "
         << Quoted{device->driver->name}
         << " could not be stopped, neither by cancel nor by reset: it may still write to the session's "
            "memory";
    log_text(session->platform, QPLAN_LOG_ERROR, line.text());
    status = QPLAN_DEVICE_ERROR;
  }
  return status;
}

qplan_status recover(Session* session, NpuDevice* device) {
  NpuState& npu = *session->npu;
  Error& error = session->error;
  if (device->state == QPLAN_DEVICE_ABSENT) {
    return error.set(QPLAN_INVALID_STATE)
           << "recover_device: the device of " << Quoted{name_of_target(*session, *device)}
           << " takes no jobs: " << device_reason(*session, *device)
           << ((npu.flags & QPLAN_NPU_OFF) != 0 ? "" : "; open it again and make a new session");
  }
  ++device->resets;
  const qplan_npu_status status = device->driver->reset(device->device);
  if (status < 0) {
    device->state = QPLAN_NPU_CLASS(status) == QPLAN_NPU_CLASS_GONE ? uint32_t{QPLAN_DEVICE_ABSENT}
                                                                    : uint32_t{QPLAN_DEVICE_QUARANTINED};
    device->last_status = status;
    put_text(npu_status_text(status), device->text);
    return error.set(QPLAN_DEVICE_ERROR)
           << "recover_device: reset of " << Quoted{name_of_target(*session, *device)}
           << " failed: " << npu_status_text(status);
  }
  device->state = QPLAN_DEVICE_PRESENT;
  device->failures_in_a_row = 0;
  // All of them, whatever one says. Those that did not run on the device before are no failure of this.
  qplan_status result = QPLAN_OK;
  for (uint32_t r = 0; r < npu.num_regions; ++r) {
    NpuRegion* region = &npu.regions[r];
    if (region->device != device) continue;
    const bool was_loaded = region->status == QPLAN_OK;
    unload_region(region);
    load_region(session, region);
    if (region->is_on_device() || !was_loaded || result != QPLAN_OK) continue;
    const uint32_t step = session->step_index(region->step);
    result = error.set(QPLAN_DEVICE_ERROR, static_cast<int32_t>(step))
             << "recover_device: step " << step << " does not load: " << region->text;
  }
  return result;
}

}  // namespace

void put_text(const char* text, char (&to)[kNpuTextBytes]) {
  Error printable;
  printable << text;
  uint32_t i = 0;
  for (; i + 1 < kNpuTextBytes && printable.text()[i] != '\0'; ++i) to[i] = printable.text()[i];
  // Not within a character of UTF-8.
  while (i > 0 && (static_cast<uint8_t>(printable.text()[i]) & 0xc0) == 0x80) --i;
  to[i] = '\0';
}

uint64_t now_ns(const Session& session) {
  return session.platform.now_ns == nullptr ? 0 : session.platform.now_ns(session.platform.user);
}

// ---- the texts of status codes

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

// ---- the table

namespace {
constexpr qplan_npu_client kClient = {
    init, deinit, run_region, provide_inputs, remember_outputs, compare_region, finish_run, recover};
}  // namespace
}  // namespace qplan

const qplan_npu_client* qplan_npu_client_default(void) { return &qplan::kClient; }
