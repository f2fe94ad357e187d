// The driver of samples/ethosu_driver on its fake core driver, with memory that is counted.
#ifndef QPLAN_TESTS_ETHOSU_DRIVER_CORE_DEVICE_H_
#define QPLAN_TESTS_ETHOSU_DRIVER_CORE_DEVICE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "qplan/qplan.h"
#include "samples/ethosu_driver/ethosu_driver_shim.h"
#include "samples/ethosu_driver/fake_core_driver.h"

namespace qplan::ethosu::testing {

struct CoreOptions {
  bool has_clock = false;  // which advances by a millisecond whenever it is read
  bool has_caches = false;
  bool has_mutex = false;
  bool is_older_platform = false;          // which ends after the clock
  uint64_t address_offset = 0;             // of memory, as the device sees it
  std::set<const void*> unreachable = {};  // addresses
  // Where the platform tells classes apart: memory of alloc and alloc_class is DRAM or what was asked, all
  // other memory is of this class.
  uint32_t other_class = QPLAN_NPU_MEMORY_CLASS_ANY;
};

class CoreDevice {
 public:
  explicit CoreDevice(const std::string& config, CoreOptions options = {})
      : target_(config), options_(std::move(options)) {
    if (fake_ethosu_init(target_.c_str()) != 0) throw std::runtime_error("no such configuration");
    platform_.struct_size = options_.is_older_platform
                                ? offsetof(qplan_platform, now_ns) + sizeof(platform_.now_ns)
                                : sizeof(platform_);
    platform_.user = this;
    if (options_.has_clock) platform_.now_ns = [](void* user) { return of(user)->now_ns_ += 1'000'000; };
    hooks_.struct_size = sizeof(hooks_);
    hooks_.platform = &platform_;
    hooks_.user = this;
    hooks_.alloc = [](void* user, size_t size, size_t alignment) -> void* {
      void* const memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
      of(user)->blocks_[memory] = size;
      of(user)->most_bytes_ = std::max(of(user)->most_bytes_, of(user)->live_bytes());
      return memory;
    };
    hooks_.free = [](void* user, void* memory) {
      if (of(user)->blocks_.erase(memory) == 1) std::free(memory);
    };
    if (options_.other_class != QPLAN_NPU_MEMORY_CLASS_ANY) {
      hooks_.alloc_class = [](void* user, size_t size, size_t alignment, uint32_t memory_class) {
        void* const memory = of(user)->hooks_.alloc(user, size, alignment);
        of(user)->classes_[memory] = memory_class;
        return memory;
      };
      hooks_.memory_class = [](void* user, const void* memory) {
        const auto& classes = of(user)->classes_;
        const auto found = classes.find(memory);
        return found == classes.end() ? of(user)->options_.other_class : found->second;
      };
    }
    hooks_.device_address = [](void* user, const void* memory) {
      const bool is_reached = of(user)->options_.unreachable.count(memory) == 0;
      return is_reached ? reinterpret_cast<uintptr_t>(memory) + of(user)->options_.address_offset : 0;
    };
    if (options_.has_mutex) add_mutex();
    if (options_.has_caches) {
      hooks_.cache_clean = [](void* user, const void*, size_t) { ++of(user)->cleans; };
      hooks_.cache_invalidate = [](void* user, void*, size_t) { ++of(user)->invalidates; };
    }
    qplan_npu_reason why = {};
    if (driver().open(&hooks_, 0, "", &handle_, &why) != QPLAN_NPU_OK) throw std::runtime_error(why.text);
    config_.struct_size = sizeof(config_);
    config_.target = target_.c_str();
    config_.driver = &driver();
    config_.device = handle_;
  }
  ~CoreDevice() { close(); }
  CoreDevice(const CoreDevice&) = delete;
  CoreDevice& operator=(const CoreDevice&) = delete;

  static const qplan_npu_driver& driver() { return *qplan_ethosu_driver(QPLAN_NPU_ABI); }
  qplan_npu_device handle() const { return handle_; }
  qplan_npu_device_config* config() { return &config_; }
  void close() {
    if (handle_ != 0) (void)driver().close(handle_);
    handle_ = 0;
  }
  uint64_t live_bytes() const {
    uint64_t bytes = 0;
    for (const auto& [memory, size] : blocks_) bytes += size;
    return bytes;
  }
  uint64_t most_bytes() const { return most_bytes_; }
  uint32_t cleans = 0, invalidates = 0;
  uint32_t locks = 0, unlocks = 0;
  std::atomic<uint32_t> destroyed = 0;  // nobody has the mutex then
  uint32_t uses_after_destroy = 0;
  std::function<void()> before_next_lock;

 private:
  void add_mutex() {
    hooks_.mutex_create = [](void* user) -> void* { return &of(user)->mutex_; };
    hooks_.mutex_lock = [](void* user, void* mutex) {
      std::function<void()>& next = of(user)->before_next_lock;  // set while there is one thread
      if (next != nullptr) std::exchange(next, nullptr)();
      static_cast<std::mutex*>(mutex)->lock();
      of(user)->uses_after_destroy += of(user)->destroyed;
      ++of(user)->locks;
    };
    hooks_.mutex_unlock = [](void* user, void* mutex) {
      ++of(user)->unlocks;
      static_cast<std::mutex*>(mutex)->unlock();
    };
    hooks_.mutex_destroy = [](void* user, void*) { ++of(user)->destroyed; };
  }
  static CoreDevice* of(void* user) { return static_cast<CoreDevice*>(user); }

  std::string target_;
  CoreOptions options_;
  qplan_platform platform_{};
  qplan_device_hooks hooks_{};
  qplan_npu_device handle_ = 0;
  qplan_npu_device_config config_{};
  std::map<void*, size_t> blocks_;
  std::map<const void*, uint32_t> classes_;  // of blocks of alloc_class
  std::mutex mutex_;
  uint64_t now_ns_ = 0, most_bytes_ = 0;
};

}  // namespace qplan::ethosu::testing

#endif  // QPLAN_TESTS_ETHOSU_DRIVER_CORE_DEVICE_H_
