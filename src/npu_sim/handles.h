// What the drivers of this folder need at the border of the ABI: handles, and structs of other versions.
#ifndef QPLAN_SRC_NPU_SIM_HANDLES_H_
#define QPLAN_SRC_NPU_SIM_HANDLES_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "qplan/npu_driver.h"

namespace qplan::sim {

// Open devices by handle. Numbers are not used again, so that a handle of a closed device is known as such.
template <typename T>
class Handles {
 public:
  // Lives as long as the process: calls may come while it ends.
  static Handles& all() {
    static Handles* const handles = new Handles();
    return *handles;
  }

  uint64_t add(std::shared_ptr<T> device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    devices_[next_] = std::move(device);
    return next_++;
  }
  std::shared_ptr<T> find(uint64_t handle) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = devices_.find(handle);
    return found == devices_.end() ? nullptr : found->second;
  }
  std::shared_ptr<T> remove(uint64_t handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto node = devices_.extract(handle);
    return node.empty() ? nullptr : node.mapped();
  }

  // Returns call(device) for a handle that is known. Nothing is thrown over the border.
  template <typename Call>
  static qplan_npu_status on_device(uint64_t handle, Call call) {
    try {
      const std::shared_ptr<T> device = all().find(handle);
      return device == nullptr ? QPLAN_NPU_E_ARGUMENT : call(*device);
    } catch (...) {
      return QPLAN_NPU_E_MEMORY;
    }
  }

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<T>> devices_;
  uint64_t next_ = 1;
};

// A struct of the caller's version as ours. False when there is no struct, or its size is not set.
template <typename T>
bool copy_in(const T* from, T* to) {
  *to = {};
  if (from == nullptr || from->struct_size < sizeof(from->struct_size)) return false;
  std::memcpy(to, from, std::min<size_t>(from->struct_size, sizeof(T)));
  return true;
}

template <typename T>
bool can_fill(const T* to) {
  return to != nullptr && to->struct_size >= sizeof(to->struct_size);
}

}  // namespace qplan::sim

#endif  // QPLAN_SRC_NPU_SIM_HANDLES_H_
