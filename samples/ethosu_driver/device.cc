// Devices, what the platform gives them, and the table of functions.
#include <ethosu_driver.h>
#include <stddef.h>

#include <atomic>

#include "shim.h"

namespace qplan::ethosu::shim {
namespace {

// Devices of Arm's driver that this driver may hold at a time. Other code of the firmware that holds one
// makes submit wait for it.
#ifndef QPLAN_ETHOSU_NPUS
#define QPLAN_ETHOSU_NPUS 1
#endif
std::atomic<uint32_t> num_reserved{0};

// handle of entry i: a count of opens, times kMaxDevices, plus i; 0: free. kUnusable: being opened or closed.
// users: calls that look at the entry, and one more while the device is open. Whoever is the last takes the
// mutex away, so that none is destroyed that somebody waits for.
constexpr uint32_t kUnusable = UINT32_MAX;
struct Entry {
  std::atomic<uint32_t> handle{0};
  std::atomic<uint32_t> users{0};
  uint32_t opens = 0;
  Device device;
};
Entry entries[kMaxDevices];

bool has_handle(const Entry& entry, qplan_npu_device handle) {
  return handle != 0 && handle != kUnusable && entry.handle.load() == handle;
}

void leave(Entry* entry) {
  if (entry->users.fetch_sub(1) > 1) return;
  Device& device = entry->device;
  if (device.mutex != nullptr && device.hooks.mutex_destroy != nullptr)
    device.hooks.mutex_destroy(device.hooks.user, device.mutex);
  entry->handle.store(0);
}

// Null where the handle is unknown; else leave() follows.
Entry* enter(qplan_npu_device handle) {
  Entry* const entry = &entries[handle % kMaxDevices];
  uint32_t users = entry->users.load();
  do {
    if (users == 0) return nullptr;
  } while (!entry->users.compare_exchange_weak(users, users + 1));
  if (has_handle(*entry, handle)) return entry;
  leave(entry);
  return nullptr;
}

// The configuration that the hardware says it has.
const Config* detect(ethosu_driver* driver) {
  ethosu_hw_info hardware = {};
  ethosu_get_hw_info(driver, &hardware);
  for (const Config& config : kConfigs) {
    if (hardware.version.product_major == (config.is_u65 ? 1u : 0u) &&
        hardware.cfg.macs_per_cc == (config.config_word & 0xf))
      return &config;
  }
  return nullptr;
}

qplan_npu_status enumerate(const qplan_device_hooks*, uint32_t* count) {
  if (count == nullptr) return QPLAN_NPU_E_ARGUMENT;
  *count = 1;
  return QPLAN_NPU_OK;
}

// "sram=...", which a plan's target has and which concerns the packer alone, or nothing.
bool are_known_options(const char* options) {
  if (options == nullptr || options[0] == '\0') return true;
  if (strncmp(options, "sram=", 5) != 0) return false;
  return strchr(options, ',') == nullptr;
}

bool has_clock(const qplan_platform* platform) {
  constexpr size_t kBytes = offsetof(qplan_platform, now_ns) + sizeof(platform->now_ns);
  return platform != nullptr && platform->struct_size >= kBytes && platform->now_ns != nullptr;
}

// What the driver needs of the hooks, and "" or what is missing.
const char* missing_hook(const qplan_device_hooks& hooks) {
  if (hooks.mutex_create == nullptr) return "";
  if (hooks.mutex_lock == nullptr || hooks.mutex_unlock == nullptr)
    return "ethos-u: the platform's hooks have mutex_create without mutex_lock and mutex_unlock";
  // wait could not sleep in Arm's driver, where no other thread may stop the job, and would poll for ever.
  if (!has_clock(hooks.platform))
    return "ethos-u: hooks with a mutex need a platform with a clock (now_ns): wait polls, and stops polling "
           "by "
           "it";
  return "";
}

qplan_npu_status open_device(const qplan_device_hooks* hooks, uint32_t index, const char* options,
                             qplan_npu_device* handle, qplan_npu_reason* why) {
  qplan_device_hooks known;
  if (handle == nullptr || (hooks != nullptr && !copy_in(hooks, &known))) return QPLAN_NPU_E_ARGUMENT;
  if (index > 0) return refuse(why, QPLAN_NPU_E_ABSENT, 1, index, "ethos-u: there is one device, 0");
  if (!are_known_options(options))
    return refuse(why, QPLAN_NPU_E_ARGUMENT, 0, 0, "ethos-u: the driver has no options");
  if (hooks == nullptr || known.alloc == nullptr)
    return refuse(why, QPLAN_NPU_E_MEMORY, 0, 0, "ethos-u: the platform's hooks have no alloc");
  const char* const missing = missing_hook(known);
  if (missing[0] != '\0') return refuse(why, QPLAN_NPU_E_ARGUMENT, 0, 0, missing);
  ethosu_driver* const driver = reserve();
  if (driver == nullptr)
    return refuse(why, QPLAN_NPU_E_BUSY, QPLAN_ETHOSU_NPUS, num_reserved.load(),
                  "ethos-u: all devices of Arm's driver are in use");
  const Config* const config = detect(driver);
  release(driver);
  if (config == nullptr)
    return refuse(why, QPLAN_NPU_E_UNSUPPORTED, 0, 0, "ethos-u: the hardware is neither a U55 nor a U65");
  for (uint32_t i = 0; i < kMaxDevices; ++i) {
    Entry& entry = entries[i];
    uint32_t free = 0;
    if (!entry.handle.compare_exchange_strong(free, kUnusable)) continue;
    Device& device = entry.device;
    device = Device();
    device.hooks = known;
    if (has_clock(known.platform)) device.platform = known.platform;
    device.config = config;
    if (known.mutex_create != nullptr) {
      device.mutex = known.mutex_create(known.user);
      if (device.mutex == nullptr) {
        entry.handle.store(0);
        return refuse(why, QPLAN_NPU_E_MEMORY, 0, 0, "ethos-u: the platform's mutex_create has made none");
      }
    }
    entry.opens = entry.opens % (UINT32_MAX / kMaxDevices - 1) + 1;
    *handle = entry.opens * kMaxDevices + i;
    entry.users.store(1);
    entry.handle.store(static_cast<uint32_t>(*handle));
    return QPLAN_NPU_OK;
  }
  return refuse(why, QPLAN_NPU_E_BUSY, kMaxDevices, kMaxDevices, "ethos-u: too many open devices");
}

qplan_npu_status close_device(qplan_npu_device handle) {
  Entry* const entry = &entries[handle % kMaxDevices];
  const Locked device(handle);
  if (!device) return QPLAN_NPU_E_ARGUMENT;
  entry->handle.store(kUnusable);  // the handle is unknown from here on, also to those who wait for the mutex
  stop_job(&*device, QPLAN_NPU_E_CANCELLED, "the device was closed");
  free_programs(&*device);
  free_buffers(&*device);
  (void)entry->users.fetch_sub(1);  // of the open device
  return QPLAN_NPU_OK;
}

void put_name(const char* from, char* to, size_t size) {
  size_t i = 0;
  for (; i + 1 < size && from[i] != '\0'; ++i) to[i] = from[i];
  to[i] = '\0';
}

qplan_npu_status capabilities(qplan_npu_device handle, qplan_npu_capabilities* to) {
  if (!can_fill(to)) return QPLAN_NPU_E_ARGUMENT;
  const Locked device(handle);
  if (!device) return QPLAN_NPU_E_ARGUMENT;
  const Config& config = *device->config;
  qplan_npu_capabilities all = {};
  all.abi = QPLAN_NPU_ABI;
  put_name("Arm", all.vendor, sizeof(all.vendor));
  put_name(config.name, all.target, sizeof(all.target));
  put_name("1.0", all.driver_revision, sizeof(all.driver_revision));
  all.hash = config_hash(config);
  all.blob_formats[0] = kBlobMagic;
  all.onchip_bytes[0] = config.banks * kBankBytes;
  all.buffer_alignment = kAddressAlignment;
  all.line_alignment = 1;
  all.channel_pack = 1;
  all.max_binds = kMaxSlots;
  all.max_queue = 1;
  all.num_engines = 1;
  all.memory_kinds = is_cached(*device) ? QPLAN_NPU_MEMORY_CACHED : QPLAN_NPU_MEMORY_COHERENT;
  all.address_bits = address_bits(config);
  all.max_buffer_bytes = uint64_t{1} << (sizeof(size_t) > 4 ? address_bits(config) : 31);
  all.contracts = all.contracts_per_channel = QPLAN_NPU_TFL2;
  all.input_zero_point = all.output_zero_point = all.pad_value = 1;
  all.memory_classes = memory_classes(*device);
  // The clock is not known here; the runtime assumes 100 MHz for timeouts.
  all.flags = QPLAN_NPU_CAN_ASYNC | QPLAN_NPU_CAN_IMPORT | QPLAN_NPU_CAN_SOFT_RESET;
  copy_out(all, to);
  return QPLAN_NPU_OK;
}

// The packer has the conditions; the driver takes command streams alone.
qplan_npu_status supported(qplan_npu_device handle, const qplan_npu_op* op, qplan_npu_reason* reasons,
                           uint32_t* num_reasons) {
  if (op == nullptr || op->struct_size < sizeof(uint32_t) || num_reasons == nullptr ||
      (*num_reasons > 0 && reasons == nullptr) ||
      (handle != 0 && !has_handle(entries[handle % kMaxDevices], handle)))
    return QPLAN_NPU_E_ARGUMENT;
  if (*num_reasons > 0)
    (void)refuse(reasons, QPLAN_NPU_E_UNSUPPORTED, 0, 0, "ethos-u: the driver takes command streams only");
  if (*num_reasons > 0) reasons->code = 1;
  *num_reasons = 1;
  return QPLAN_NPU_E_UNSUPPORTED;
}

qplan_npu_status counters(qplan_npu_device handle, const uint32_t* ids, uint64_t* values, uint32_t count) {
  if (count > 0 && (ids == nullptr || values == nullptr)) return QPLAN_NPU_E_ARGUMENT;
  const Locked device(handle);
  if (!device) return QPLAN_NPU_E_ARGUMENT;
  qplan_npu_status status = QPLAN_NPU_OK;
  for (uint32_t i = 0; i < count; ++i) {
    values[i] = 0;
    switch (ids[i]) {
      case QPLAN_NPU_COUNTER_JOBS:
        values[i] = device->jobs;
        break;
      case QPLAN_NPU_COUNTER_FAILED_JOBS:
        values[i] = device->failed_jobs;
        break;
      case QPLAN_NPU_COUNTER_RESETS:
        values[i] = device->resets;
        break;
      case QPLAN_NPU_COUNTER_BUFFER_BYTES:
        values[i] = device->buffer_bytes;
        break;
      default:
        status = QPLAN_NPU_E_UNSUPPORTED;
    }
  }
  return status;
}

constexpr qplan_npu_driver kDriver = {sizeof(qplan_npu_driver),
                                      QPLAN_NPU_ABI,
                                      "ethos-u",
                                      enumerate,
                                      open_device,
                                      close_device,
                                      capabilities,
                                      supported,
                                      nullptr,  // power: Arm's driver requests it for each job
                                      reset,
                                      requirements,
                                      alloc_buffer,
                                      import_memory,
                                      release_buffer,
                                      layout,
                                      map,
                                      unmap,
                                      flush,
                                      invalidate_buffer,
                                      load,
                                      program_info,
                                      region_info,
                                      unload,
                                      submit,
                                      wait,
                                      cancel,
                                      counters,
                                      load_in_place,
                                      nullptr};  // disassemble

}  // namespace

Locked::Locked(qplan_npu_device handle) : handle_(handle) {
  Entry* const entry = enter(handle);
  if (entry == nullptr) return;
  device_ = &entry->device;
  if (device_->mutex == nullptr) return;
  device_->hooks.mutex_lock(device_->hooks.user, device_->mutex);
  if (!has_handle(*entry, handle)) unlock();  // closed meanwhile
}

Locked::~Locked() {
  if (device_ != nullptr) unlock();
}

void Locked::unlock() {
  if (device_->mutex != nullptr) device_->hooks.mutex_unlock(device_->hooks.user, device_->mutex);
  device_ = nullptr;
  leave(&entries[handle_ % kMaxDevices]);
}

uint64_t now_ns(const Device& device) {
  return device.platform == nullptr ? 0 : device.platform->now_ns(device.platform->user);
}
bool is_cached(const Device& device) {
  return device.hooks.cache_clean != nullptr || device.hooks.cache_invalidate != nullptr;
}

void* allocate(Device* device, uint64_t bytes, uint32_t memory_class) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  if (memory_class != QPLAN_NPU_MEMORY_CLASS_ANY && device->hooks.alloc_class != nullptr)
    return device->hooks.alloc_class(device->hooks.user, static_cast<size_t>(bytes), kMemoryAlignment,
                                     memory_class);
  return device->hooks.alloc(device->hooks.user, static_cast<size_t>(bytes), kMemoryAlignment);
}
void give_back(Device* device, void* memory) {
  if (memory != nullptr && device->hooks.free != nullptr) device->hooks.free(device->hooks.user, memory);
}

uint32_t memory_classes(const Device& device) {
  if (device.hooks.alloc_class == nullptr) return 0;
  return 1u << QPLAN_NPU_MEMORY_CLASS_SRAM | 1u << QPLAN_NPU_MEMORY_CLASS_DRAM;
}
uint32_t memory_class_of(const Device& device, const void* memory) {
  if (device.hooks.memory_class == nullptr) return QPLAN_NPU_MEMORY_CLASS_ANY;
  return device.hooks.memory_class(device.hooks.user, memory);
}

uint64_t device_address(const Device& device, const void* memory) {
  if (device.hooks.device_address != nullptr) return device.hooks.device_address(device.hooks.user, memory);
  return reinterpret_cast<uintptr_t>(memory);
}
void clean(const Device& device, const void* memory, uint64_t bytes) {
  if (device.hooks.cache_clean == nullptr || bytes == 0) return;
  device.hooks.cache_clean(device.hooks.user, memory, static_cast<size_t>(bytes));
}
void invalidate(const Device& device, void* memory, uint64_t bytes) {
  if (device.hooks.cache_invalidate == nullptr || bytes == 0) return;
  device.hooks.cache_invalidate(device.hooks.user, memory, static_cast<size_t>(bytes));
}

qplan_npu_status refuse(qplan_npu_reason* why, qplan_npu_status status, int64_t limit, int64_t actual,
                        const char* text) {
  if (why == nullptr) return status;
  why->code = 0;
  why->place = UINT32_MAX;
  why->limit = limit;
  why->actual = actual;
  put_name(text, why->text, sizeof(why->text));
  return status;
}

ethosu_driver* reserve() {
  uint32_t held = num_reserved.load();
  do {
    if (held >= QPLAN_ETHOSU_NPUS) return nullptr;
  } while (!num_reserved.compare_exchange_weak(held, held + 1));
  ethosu_driver* const driver = ethosu_reserve_driver();
  if (driver == nullptr) num_reserved.fetch_sub(1);
  return driver;
}

void release(ethosu_driver* driver) {
  ethosu_release_driver(driver);
  num_reserved.fetch_sub(1);
}

}  // namespace qplan::ethosu::shim

const qplan_npu_driver* qplan_ethosu_driver(uint32_t abi) {
  return abi >> 16 == QPLAN_NPU_ABI >> 16 ? &qplan::ethosu::shim::kDriver : nullptr;
}
