// The driver's bookkeeping. Memory comes from qplan_device_hooks.alloc and alloc_class alone; devices are a
// short static list, so that a handle that is unknown is found without touching memory that may be gone.
//
// Arm's driver runs one payload at a time and has no queue: a device has at most one job, which is submitted
// and whose end wait has not reported.
#ifndef QPLAN_SAMPLES_ETHOSU_DRIVER_BOOKS_H_
#define QPLAN_SAMPLES_ETHOSU_DRIVER_BOOKS_H_

#include <stdint.h>
#include <string.h>

#include "ethosu_driver_shim.h"
#include "src/ethosu/isa/blob.h"

struct ethosu_driver;

namespace qplan::ethosu::shim {

// Arm's driver demands that base addresses are multiples of this.
inline constexpr uint32_t kAddressAlignment = 16;
// Memory from hooks.alloc is aligned to a cache line, so that it shares none with other data.
inline constexpr uint32_t kMemoryAlignment = 64;
inline constexpr uint32_t kMaxDevices = 4;

struct Buffer {
  Buffer* next;
  uint64_t handle;
  uint8_t* memory;
  bool is_imported;
  bool is_in_use;  // by the device's job
  qplan_npu_layout layout;
};

// What a slot of the program is bound to, while there is a job.
struct Bound {
  Buffer* buffer;
  uint8_t* memory;
};

struct Program {
  Program* next;
  uint64_t handle;
  Blob blob;      // points into the caller's bytes, or into copy
  uint8_t* copy;  // of the whole blob; null where it is used in place
  uint8_t* arena[kMaxRegions];
  uint64_t memory_bytes;  // from hooks.alloc
  Bound* bound;           // of each slot, after this struct
};

struct Job {
  uint64_t handle = 0;  // 0 if there is no job
  Program* program = nullptr;
  ethosu_driver* reserved = nullptr;  // null: it has ended, and wait has not reported it
  qplan_npu_status status = QPLAN_NPU_OK;
  const char* text = "";
  void (*done)(void* user, qplan_npu_job job, qplan_npu_status status) = nullptr;
  void* user = nullptr;
  uint64_t submitted_ns = 0;
  // Addresses as the CPU sees them. Arm's driver reads entry 2 even where a payload has fewer regions.
  uint64_t address[kMaxRegions] = {};
  size_t bytes[kMaxRegions] = {};
};

struct Device {
  qplan_device_hooks hooks = {};
  const qplan_platform* platform = nullptr;  // null where it has no clock
  void* mutex = nullptr;
  const Config* config = nullptr;
  Buffer* buffers = nullptr;
  Program* programs = nullptr;
  Job job;
  uint64_t next_handle = 1;
  uint64_t jobs = 0, failed_jobs = 0, resets = 0, buffer_bytes = 0;
};

// ---- device.cc ----
// Holds the device's lock; null where the handle is unknown, or was closed while this waited for the lock.
class Locked {
 public:
  explicit Locked(qplan_npu_device handle);
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  Device* operator->() const { return device_; }
  Device& operator*() const { return *device_; }
  explicit operator bool() const { return device_ != nullptr; }

 private:
  void unlock();

  qplan_npu_device handle_;
  Device* device_ = nullptr;
};
// 0 where there is no clock.
uint64_t now_ns(const Device& device);
bool is_cached(const Device& device);
// Returns null if there is no memory of the class left.
void* allocate(Device* device, uint64_t bytes, uint32_t memory_class = QPLAN_NPU_MEMORY_CLASS_ANY);
// 1 << QPLAN_NPU_MEMORY_CLASS_* of each class that the platform allocates; 0: it does not tell them apart.
uint32_t memory_classes(const Device& device);
// ANY where the platform does not say.
uint32_t memory_class_of(const Device& device, const void* memory);
void give_back(Device* device, void* memory);
// What the platform says: 0: the device cannot reach it. Arm's driver gets CPU addresses.
uint64_t device_address(const Device& device, const void* memory);
void clean(const Device& device, const void* memory, uint64_t bytes);
void invalidate(const Device& device, void* memory, uint64_t bytes);
qplan_npu_status refuse(qplan_npu_reason* why, qplan_npu_status status, int64_t limit, int64_t actual,
                        const char* text);

// A device of Arm's driver, or null where all are in use: ethosu_reserve_driver would wait.
ethosu_driver* reserve();
void release(ethosu_driver* driver);

// Structs of the caller begin with their size as it knows it: fields beyond it are zero when read, and are
// not written. False where there is no such struct or its size is not set.
template <typename T>
bool copy_in(const T* from, T* to) {
  *to = T();
  if (from == nullptr || from->struct_size < sizeof(uint32_t)) return false;
  memcpy(static_cast<void*>(to), from, from->struct_size < sizeof(T) ? from->struct_size : sizeof(T));
  return true;
}
template <typename T>
bool can_fill(const T* to) {
  return to != nullptr && to->struct_size >= sizeof(uint32_t);
}
template <typename T>
void copy_out(const T& from, T* to) {
  const uint32_t size = to->struct_size < sizeof(T) ? to->struct_size : sizeof(T);
  const uint32_t known = to->struct_size;
  memcpy(static_cast<void*>(to), &from, size);
  to->struct_size = known;
}

// ---- memory.cc ----
Buffer* find_buffer(Device* device, qplan_npu_buffer handle);
void free_buffers(Device* device);
qplan_npu_status requirements(qplan_npu_device, const qplan_npu_buffer_request*, qplan_npu_layout*);
qplan_npu_status alloc_buffer(qplan_npu_device, const qplan_npu_buffer_request*, qplan_npu_buffer*);
qplan_npu_status import_memory(qplan_npu_device, const qplan_npu_buffer_request*, uint32_t kind,
                               uint64_t value, uint64_t offset, qplan_npu_buffer*);
qplan_npu_status release_buffer(qplan_npu_device, qplan_npu_buffer);
qplan_npu_status layout(qplan_npu_device, qplan_npu_buffer, qplan_npu_layout*);
qplan_npu_status map(qplan_npu_device, qplan_npu_buffer, uint32_t access, void** memory);
qplan_npu_status unmap(qplan_npu_device, qplan_npu_buffer, uint32_t access);
qplan_npu_status flush(qplan_npu_device, qplan_npu_buffer, uint64_t offset, uint64_t bytes);
qplan_npu_status invalidate_buffer(qplan_npu_device, qplan_npu_buffer, uint64_t offset, uint64_t bytes);

// ---- programs.cc ----
Program* find_program(Device* device, qplan_npu_program handle);
void free_programs(Device* device);
qplan_npu_status load(qplan_npu_device, uint32_t format, const void* blob, uint64_t bytes, qplan_npu_program*,
                      qplan_npu_reason*);
qplan_npu_status load_in_place(qplan_npu_device, uint32_t format, const void* blob, uint64_t bytes,
                               qplan_npu_program*, qplan_npu_reason*);
qplan_npu_status program_info(qplan_npu_device, qplan_npu_program, qplan_npu_program_info*);
qplan_npu_status region_info(qplan_npu_device, qplan_npu_program, uint32_t slot, qplan_npu_region_info*);
qplan_npu_status unload(qplan_npu_device, qplan_npu_program);

// ---- jobs.cc ----
// Ends the job, if one runs; wait reports it.
void stop_job(Device* device, qplan_npu_status status, const char* text);
qplan_npu_status submit(qplan_npu_device, const qplan_npu_submit*, qplan_npu_job*, qplan_npu_reason*);
qplan_npu_status wait(qplan_npu_device, qplan_npu_job, uint64_t timeout_ns, qplan_npu_report*);
qplan_npu_status cancel(qplan_npu_device, qplan_npu_job);
qplan_npu_status reset(qplan_npu_device);

}  // namespace qplan::ethosu::shim

#endif  // QPLAN_SAMPLES_ETHOSU_DRIVER_BOOKS_H_
