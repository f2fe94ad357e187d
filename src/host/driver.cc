// Drivers of NPUs in shared libraries, opened with the hooks of a host.
#include <dlfcn.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "qplan/host.h"
#include "qplan/npu_driver.h"
#include "src/host/shared_library.h"
#include "src/host/system.h"

namespace {

using qplan::host::load_library;
using qplan::host::quoted_path;
using qplan::host::report;
using qplan::host::SharedLibrary;

// ---- hooks: those of a machine whose device shares memory and caches with the CPU ----

void* allocate(void*, size_t size, size_t alignment) {
  void* memory = nullptr;
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  return posix_memalign(&memory, alignment, size) == 0 ? memory : nullptr;
}

struct Event {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_set = false;
};

int wait_event(void*, void* handle, uint64_t timeout_ns) {
  auto* event = static_cast<Event*>(handle);
  std::unique_lock<std::mutex> lock(event->mutex);
  const auto is_set = [event] { return event->is_set; };
  // Beyond this a point in time has no number.
  constexpr uint64_t kForEver = static_cast<uint64_t>(INT64_MAX) / 4;
  if (timeout_ns > kForEver) {
    event->changed.wait(lock, is_set);
  } else if (!event->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns), is_set)) {
    return 1;
  }
  event->is_set = false;
  return 0;
}

void set_event(void*, void* handle) {
  auto* event = static_cast<Event*>(handle);
  {
    const std::lock_guard<std::mutex> lock(event->mutex);
    event->is_set = true;
  }
  event->changed.notify_one();
}

qplan_device_hooks host_hooks(const qplan_platform* platform) {
  qplan_device_hooks hooks = {};
  hooks.struct_size = sizeof(hooks);
  hooks.platform = platform;
  hooks.alloc = allocate;
  hooks.free = [](void*, void* memory) { std::free(memory); };
  hooks.mutex_create = [](void*) -> void* { return new (std::nothrow) std::mutex(); };
  hooks.mutex_destroy = [](void*, void* mutex) { delete static_cast<std::mutex*>(mutex); };
  hooks.mutex_lock = [](void*, void* mutex) { static_cast<std::mutex*>(mutex)->lock(); };
  hooks.mutex_unlock = [](void*, void* mutex) { static_cast<std::mutex*>(mutex)->unlock(); };
  hooks.event_create = [](void*) -> void* { return new (std::nothrow) Event(); };
  hooks.event_destroy = [](void*, void* event) { delete static_cast<Event*>(event); };
  hooks.event_wait = wait_event;
  hooks.event_set = set_event;
  return hooks;
}

// ---- the table ----

std::string abi_text(uint32_t abi) { return std::to_string(abi >> 16) + "." + std::to_string(abi & 0xffff); }

// Why the table cannot be called; empty when it can.
std::string fault_of(const qplan_npu_driver& driver) {
  if (driver.abi >> 16 != QPLAN_NPU_ABI >> 16) {
    return "is of driver ABI " + abi_text(driver.abi) + ", expected " + abi_text(QPLAN_NPU_ABI) +
           "; build it against this version's qplan/npu_driver.h";
  }
  // Every driver has at least the fields of this major's first minor version.
  const size_t whole = offsetof(qplan_npu_driver, counters) + sizeof(driver.counters);
  if (driver.struct_size < whole) {
    return "has a table of " + std::to_string(driver.struct_size) + " bytes, expected at least " +
           std::to_string(whole) + "; set struct_size to sizeof(qplan_npu_driver)";
  }
  const bool is_whole =
      driver.name != nullptr && driver.enumerate != nullptr && driver.open != nullptr &&
      driver.close != nullptr && driver.capabilities != nullptr && driver.supported != nullptr &&
      driver.reset != nullptr && driver.requirements != nullptr && driver.alloc != nullptr &&
      driver.import_memory != nullptr && driver.release != nullptr && driver.layout != nullptr &&
      driver.map != nullptr && driver.unmap != nullptr && driver.flush != nullptr &&
      driver.invalidate != nullptr && driver.load != nullptr && driver.program_info != nullptr &&
      driver.region_info != nullptr && driver.unload != nullptr && driver.submit != nullptr &&
      driver.wait != nullptr && driver.cancel != nullptr;
  if (!is_whole) return "lacks a function that qplan/npu_driver.h does not call optional";
  return "";
}

struct OpenDevice {
  qplan_device_hooks hooks;
};

}  // namespace

qplan_status qplan_host_driver_load(const char* path, const qplan_npu_driver** driver, void** library,
                                    qplan_error* error) {
  if (path == nullptr || driver == nullptr || library == nullptr) {
    return report(error, QPLAN_INVALID_ARGUMENT, "driver library: path, driver or library is NULL");
  }
  *driver = nullptr;
  *library = nullptr;
  try {
    const std::string where = "driver library " + quoted_path(path) + ": ";
    SharedLibrary handle = load_library(path, where, error);
    if (handle == nullptr) return QPLAN_FILE_ERROR;
    const auto entry =
        reinterpret_cast<qplan_npu_driver_entry_fn>(dlsym(handle.get(), QPLAN_NPU_DRIVER_ENTRY_NAME));
    if (entry == nullptr) {
      return report(error, QPLAN_DRIVER_MISSING,
                    where + "is no driver: it exports no '" QPLAN_NPU_DRIVER_ENTRY_NAME "'");
    }
    const qplan_npu_driver* const table = entry(QPLAN_NPU_ABI);
    if (table == nullptr) {
      return report(error, QPLAN_DRIVER_MISSING,
                    where + "does not serve driver ABI " + abi_text(QPLAN_NPU_ABI) +
                        "; it needs another version of qplan");
    }
    const std::string fault = fault_of(*table);
    if (!fault.empty()) return report(error, QPLAN_DRIVER_MISSING, where + fault);
    *driver = table;
    *library = handle.release();
    return QPLAN_OK;
  } catch (const std::bad_alloc&) {
    return report(error, QPLAN_OUT_OF_MEMORY, "");
  }
}

void qplan_host_driver_unload(void* library) {
  if (library != nullptr) dlclose(library);
}

qplan_status qplan_host_device_open(const qplan_npu_driver* driver, uint32_t index, const char* options,
                                    const qplan_platform* platform, qplan_host_device* device,
                                    qplan_error* error) {
  if (device == nullptr || device->struct_size < sizeof(*device)) {
    return report(error, QPLAN_INVALID_ARGUMENT, "device: NULL, or its struct_size is not set");
  }
  const uint32_t size = device->struct_size;
  *device = {};
  device->struct_size = size;
  device->status = QPLAN_NPU_E_ARGUMENT;
  if (driver == nullptr) return report(error, QPLAN_INVALID_ARGUMENT, "device: driver is NULL");
  try {
    const std::string fault = fault_of(*driver);
    if (!fault.empty()) {
      device->status = QPLAN_NPU_E_VERSION;
      return report(error, QPLAN_DRIVER_MISSING, "driver: " + fault);
    }
    auto open = std::make_unique<OpenDevice>();
    open->hooks = host_hooks(platform);
    qplan_npu_reason why = {};
    device->status =
        driver->open(&open->hooks, index, options == nullptr ? "" : options, &device->device, &why);
    why.text[sizeof(why.text) - 1] = '\0';
    if (device->status < 0) {
      const std::string text = why.text[0] != '\0' ? why.text : "error " + std::to_string(device->status);
      const bool is_absent = QPLAN_NPU_CLASS(device->status) == QPLAN_NPU_CLASS_GONE;
      const bool is_mistake = QPLAN_NPU_CLASS(device->status) == QPLAN_NPU_CLASS_MISTAKE;
      return report(error,
                    is_absent    ? QPLAN_DRIVER_MISSING
                    : is_mistake ? QPLAN_INVALID_ARGUMENT
                                 : QPLAN_DEVICE_ERROR,
                    "driver '" + std::string(driver->name) + "': device " + std::to_string(index) +
                        " cannot be opened: " + text);
    }
    device->driver = driver;
    device->hooks = &open->hooks;
    device->opaque = open.release();
    return QPLAN_OK;
  } catch (const std::bad_alloc&) {
    device->status = QPLAN_NPU_E_MEMORY;
    return report(error, QPLAN_OUT_OF_MEMORY, "");
  }
}

void qplan_host_device_close(qplan_host_device* device) {
  if (device == nullptr || device->driver == nullptr) return;
  device->driver->close(device->device);
  delete static_cast<OpenDevice*>(device->opaque);
  device->driver = nullptr;
  device->opaque = nullptr;
  device->hooks = nullptr;
  device->device = 0;
  device->status = QPLAN_NPU_E_ABSENT;
}
