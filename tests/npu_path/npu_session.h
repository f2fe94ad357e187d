// A plan with regions on the simulator, through the public C APIs alone: what an application would write.
#ifndef QPLAN_TESTS_NPU_PATH_NPU_SESSION_H_
#define QPLAN_TESTS_NPU_PATH_NPU_SESSION_H_

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "qplan/npu_sim.h"
#include "qplan/pack.h"
#include "qplan/qplan.h"
#include "tests/support/buffer.h"

namespace qplan::npu_path {

using Bytes = std::vector<uint8_t>;

inline qplan_error empty_error() {
  qplan_error error{};
  error.struct_size = sizeof(error);
  return error;
}

struct PackResult {
  Bytes plan;
  qplan_status status = QPLAN_OK;
  std::string text;  // of the error
  std::string summary;
};

struct PackSettings {
  std::string target = "vta, cpu";
  bool cost_gate = false;
  bool fallback = true;
  bool strict = false;
};

// A Relay text.
inline PackResult pack_text(const std::string& model, const PackSettings& settings) {
  PackResult result;
  qplan_pack_options options{};
  options.struct_size = sizeof(options);
  options.target = settings.target.c_str();
  options.no_cost_gate = settings.cost_gate ? 0 : 1;
  options.no_fallback = settings.fallback ? 0 : 1;
  options.placement = settings.strict ? QPLAN_PLACEMENT_STRICT : QPLAN_PLACEMENT_SOFT;
  options.user = &result;
  options.error_text = [](void* user, const char* bytes, size_t size) {
    static_cast<PackResult*>(user)->text.append(bytes, size);
  };
  options.summary = [](void* user, const char* text) { static_cast<PackResult*>(user)->summary = text; };
  qplan_error error = empty_error();
  const auto write = [](void* user, const char* bytes, size_t size) {
    auto& plan = static_cast<PackResult*>(user)->plan;
    plan.insert(plan.end(), bytes, bytes + size);
  };
  result.status =
      qplan_pack_bytes(model.data(), model.size(), "model.relay", &options, write, &result, &error);
  return result;
}

// Where a driver's memory comes from, counted.
class CountedMemory {
 public:
  CountedMemory() {
    platform_.struct_size = sizeof(platform_);
    platform_.now_ns = [](void*) {
      const auto now = std::chrono::steady_clock::now().time_since_epoch();
      return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
    };
    hooks_.struct_size = sizeof(hooks_);
    hooks_.platform = &platform_;
    hooks_.user = this;
    hooks_.alloc = [](void* user, size_t size, size_t alignment) -> void* {
      auto& self = *static_cast<CountedMemory*>(user);
      ++self.allocations;
      void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
      self.live_[memory] = size;
      return memory;
    };
    hooks_.free = [](void* user, void* memory) {
      auto& self = *static_cast<CountedMemory*>(user);
      if (memory != nullptr && self.live_.erase(memory) == 0) ++self.unknown_frees;
      std::free(memory);
    };
  }
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  const qplan_device_hooks* hooks() const { return &hooks_; }
  const qplan_platform* platform() const { return &platform_; }
  size_t live() const { return live_.size(); }
  uint64_t allocations = 0, unknown_frees = 0;

 private:
  qplan_platform platform_{};
  qplan_device_hooks hooks_{};
  std::map<void*, size_t> live_;
};

struct RunSettings {
  bool device = true;          // false: the session has no devices
  std::string simulator = {};  // options of open
  std::string target = "vta";
  uint32_t policy = QPLAN_NPU_FALLBACK;
  uint32_t flags = 0;
  uint32_t timeout_us = 0;
  uint32_t isa = QPLAN_ISA_AUTO;
};

class NpuSession {
 public:
  NpuSession(const Bytes& plan, const RunSettings& settings) : bytes_(plan) {
    qplan_error error = empty_error();
    status_ = qplan_plan_open(&plan_, bytes_.data(), bytes_.size(), QPLAN_PLAN_DIGEST, &error);
    if (status_ == QPLAN_OK) create(settings, &error);
    if (status_ < 0) text_ = error.text;
  }
  ~NpuSession() { close(); }
  NpuSession(const NpuSession&) = delete;
  NpuSession& operator=(const NpuSession&) = delete;

  // The status of making the session, then of the last invoke.
  qplan_status status() const { return status_; }
  const std::string& text() const { return text_; }
  bool is_open() const { return host_session_ != nullptr; }
  CountedMemory& memory() { return memory_; }

  // Empty outputs: status() and text() say why.
  std::vector<Bytes> run(const std::vector<Bytes>& inputs) {
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      DLTensor view{};
      if (qplan_session_view(get(), QPLAN_INPUT, i, &view) < 0) return {};
      std::memcpy(static_cast<uint8_t*>(view.data) + view.byte_offset, inputs[i].data(), inputs[i].size());
    }
    status_ = qplan_session_invoke(get());
    if (status_ != QPLAN_OK) {
      qplan_error error = empty_error();
      qplan_session_last_error(get(), &error);
      text_ = error.text;
      return {};
    }
    std::vector<Bytes> outputs;
    for (uint32_t i = 0; i < qplan_plan_io_count(&plan_, nullptr, QPLAN_OUTPUT); ++i) {
      DLTensor view{};
      if (qplan_session_view(get(), QPLAN_OUTPUT, i, &view) < 0) return {};
      const uint8_t* bytes = static_cast<const uint8_t*>(view.data) + view.byte_offset;
      outputs.emplace_back(bytes, bytes + io_bytes(QPLAN_OUTPUT, i));
    }
    return outputs;
  }

  size_t io_bytes(int direction, uint32_t index) const {
    qplan_tensor_info info{};
    info.struct_size = sizeof(info);
    return qplan_plan_io_info(&plan_, nullptr, direction, index, &info) < 0
               ? 0
               : static_cast<size_t>(info.size_bytes);
  }
  uint32_t num_inputs() const { return qplan_plan_io_count(&plan_, nullptr, QPLAN_INPUT); }

  uint32_t num_regions() { return qplan_session_num_regions(get()); }
  qplan_region_info region(uint32_t index) {
    qplan_region_info info{};
    info.struct_size = sizeof(info);
    (void)qplan_session_region_info(get(), index, &info);
    return info;
  }
  qplan_device_info device() {
    qplan_device_info info{};
    info.struct_size = sizeof(info);
    (void)qplan_session_device_info(get(), 0, &info);
    return info;
  }
  qplan_session* get() { return qplan_host_session_get(host_session_); }

  // Closes the session and its device; memory() returns what is left.
  void close() {
    qplan_host_session_destroy(host_session_);
    host_session_ = nullptr;
    if (device_ != 0) (void)driver().close(device_);
    device_ = 0;
  }

 private:
  static const qplan_npu_driver& driver() { return *qplan_npu_sim_driver(QPLAN_NPU_ABI); }

  void create(const RunSettings& settings, qplan_error* error) {
    qplan_npu_device_config device{};
    device.struct_size = sizeof(device);
    device.target = settings.target.c_str();
    if (settings.device) {
      device.status = driver().open(memory_.hooks(), 0, settings.simulator.c_str(), &device_, nullptr);
      if (device.status == QPLAN_NPU_OK) device.driver = &driver();
      device.device = device_;
    }
    qplan_session_config config{};
    config.struct_size = sizeof(config);
    config.isa_limit = settings.isa;
    config.kernels = qplan_kernels_all();
    config.platform = memory_.platform();
    config.npu = qplan_npu_client_default();
    config.devices = &device;
    config.num_devices = settings.device ? 1 : 0;
    config.on_npu_failure = settings.policy;
    config.npu_flags = settings.flags;
    config.npu_timeout_us = settings.timeout_us;
    status_ = qplan_host_session_create(&plan_, &config, &host_session_, error);
  }

  CountedMemory memory_;
  testing::Buffer<uint8_t> bytes_;
  qplan_plan plan_{};
  qplan_npu_device device_ = 0;
  qplan_host_session* host_session_ = nullptr;
  qplan_status status_ = QPLAN_OK;
  std::string text_;
};

}  // namespace qplan::npu_path

#endif  // QPLAN_TESTS_NPU_PATH_NPU_SESSION_H_
