// An open device of the driver under test, with hooks that watch it, and a workload on it.
#ifndef QPLAN_TESTS_CONFORMANCE_DEVICE_H_
#define QPLAN_TESTS_CONFORMANCE_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/conformance/check.h"
#include "tests/conformance/workload.h"

namespace qplan::conformance {

// Memory from the heap between guard bytes, all of it counted; clocks, mutexes and events of the host.
class Hooks {
 public:
  Hooks();
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

  const qplan_device_hooks* get() const { return &hooks_; }
  size_t num_live() const;
  uint64_t num_allocs() const { return num_allocs_; }
  // The fault of a guard or a free; "" when there is none.
  std::string damage() const;
  void fail_from(uint64_t alloc) { fail_from_ = alloc; }  // this and all later ones
  // Blocks that alloc_class has given and that are still there.
  size_t num_live(uint32_t memory_class) const;
  // From now on there is no such memory.
  void take_away(uint32_t memory_class) { taken_away_ = memory_class; }

 private:
  static void* allocate(void* user, size_t size, size_t alignment);
  static void* allocate_class(void* user, size_t size, size_t alignment, uint32_t memory_class);
  static uint32_t class_of(void* user, const void* memory);
  static void release(void* user, void* memory);

  struct Block {
    std::vector<uint8_t> bytes;
    uint8_t* begin = nullptr;
    size_t size = 0;
    uint32_t memory_class = QPLAN_NPU_MEMORY_CLASS_ANY;
    bool is_intact() const;
  };
  qplan_platform platform_ = {};
  qplan_device_hooks hooks_ = {};
  mutable std::mutex mutex_;
  std::map<void*, Block> blocks_;
  std::atomic<uint64_t> num_allocs_{0};
  std::atomic<uint64_t> fail_from_{UINT64_MAX};
  std::atomic<uint32_t> taken_away_{QPLAN_NPU_MEMORY_CLASS_ANY};
  std::string damage_;
};

class Device {
 public:
  explicit Device(const Subject& subject);
  ~Device();  // closes, without looking at what comes of it
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Closes, and requires that it works and that all memory went back intact.
  void close();

  const qplan_npu_driver& driver;
  Hooks hooks;
  qplan_npu_device handle = 0;
  qplan_npu_capabilities capabilities = {};
  const Subject& subject;

  // A workload in the driver's format, of what it supports. Throws as make_workload.
  Workload make(Size size, uint32_t seed) const;
  // What the driver's `supported` has against an operator.
  std::string refusal(const qplan_npu_op& op) const;
  qplan_npu_status load(uint32_t format, const std::vector<uint8_t>& blob, qplan_npu_program* program,
                        qplan_npu_reason* why = nullptr) const;
  qplan_npu_buffer alloc(uint32_t usage, uint64_t bytes) const;
  void write(qplan_npu_buffer buffer, const std::vector<uint8_t>& bytes) const;
  std::vector<uint8_t> read(qplan_npu_buffer buffer, size_t bytes) const;
  uint64_t counter(uint32_t id) const;
};

// A loaded workload with a buffer for each of its slots.
class Loaded {
 public:
  Loaded(const Device& device, const Workload& workload);

  const std::vector<qplan_npu_bind>& binds() const { return binds_; }
  qplan_npu_submit request() const;
  qplan_npu_status submit(qplan_npu_job* job) const;
  qplan_npu_job must_submit() const;
  qplan_npu_report must_wait(qplan_npu_job job) const;  // the job succeeds
  void must_run() const { must_wait(must_submit()); }
  void require_result() const;    // output bytes are those of the reference
  void require_unharmed() const;  // inputs are what was written
  void release() const;           // and unloads

  qplan_npu_program program = 0;

 private:
  const Device& device_;
  const Workload& workload_;
  std::vector<qplan_npu_bind> binds_;
};

// Waits at most 20 seconds.
qplan_npu_status wait_for(const Device& device, qplan_npu_job job, qplan_npu_report* report = nullptr);

}  // namespace qplan::conformance

#endif  // QPLAN_TESTS_CONFORMANCE_DEVICE_H_
