// Packs a model and runs it through the public C API.
#ifndef QPLAN_TESTS_MODELS_MODEL_SESSION_H_
#define QPLAN_TESTS_MODELS_MODEL_SESSION_H_

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "qplan/pack.h"
#include "qplan/qplan.h"
#include "tests/support/buffer.h"

namespace qplan::testing {

inline void append_bytes(void* user, const char* bytes, size_t size) {
  auto& to = *static_cast<std::vector<uint8_t>*>(user);
  to.insert(to.end(), bytes, bytes + size);
}

inline qplan_error empty_error() {
  qplan_error error{};
  error.struct_size = sizeof(error);
  return error;
}

inline qplan_pack_options pack_options(const char* target = nullptr) {
  qplan_pack_options options{};
  options.struct_size = sizeof(options);
  options.target = target;
  return options;
}

// Appends the packer's whole text of an error to `text`, which the options refer to from then on.
inline void collect_error(qplan_pack_options* options, std::string* text) {
  options->user = text;
  options->error_text = [](void* user, const char* bytes, size_t size) {
    static_cast<std::string*>(user)->append(bytes, size);
  };
}

// The plan of a model's bytes; the name is that of a file. Throws with the packer's whole text.
inline std::vector<uint8_t> pack_bytes(const std::vector<uint8_t>& model, const char* name,
                                       qplan_pack_options options) {
  std::string text;
  collect_error(&options, &text);
  qplan_error error = empty_error();
  std::vector<uint8_t> plan;
  if (qplan_pack_bytes(model.data(), model.size(), name, &options, append_bytes, &plan, &error) < 0)
    throw std::runtime_error(text);
  return plan;
}
inline std::vector<uint8_t> pack_bytes(const std::vector<uint8_t>& model, const char* name,
                                       const char* target = "cpu", uint32_t fuse = QPLAN_FUSE_AUTO) {
  qplan_pack_options options = pack_options(target);
  options.fuse = fuse;
  return pack_bytes(model, name, options);
}

// The plan of a model file; throws with the packer's whole text.
inline std::vector<uint8_t> pack_model(const std::string& path, const char* target = nullptr,
                                       bool fallback = true, uint32_t fuse = QPLAN_FUSE_AUTO) {
  qplan_pack_options options = pack_options(target);
  options.fuse = fuse;
  options.no_fallback = fallback ? 0 : 1;
  std::string text;
  collect_error(&options, &text);
  qplan_error error = empty_error();
  std::vector<uint8_t> plan;
  if (qplan_pack_file(path.c_str(), &options, append_bytes, &plan, &error) < 0)
    throw std::runtime_error(text);
  return plan;
}

class ModelSession {
 public:
  // Throws when the runtime refuses the plan or the ISA. device: of the target "vta", may be null.
  ModelSession(const std::vector<uint8_t>& plan, uint32_t isa, uint32_t num_threads,
               const qplan_npu_device_config* device = nullptr)
      : bytes_(plan), pool_(qplan_pool_create(num_threads)) {
    open(isa, pool_, device);
  }
  // On the caller's pool.
  ModelSession(const std::vector<uint8_t>& plan, uint32_t isa, const qplan_thread_pool* pool) : bytes_(plan) {
    open(isa, pool, nullptr);
  }
  ~ModelSession() {
    qplan_host_session_destroy(host_session_);
    qplan_pool_destroy(pool_);
  }
  ModelSession(const ModelSession&) = delete;
  ModelSession& operator=(const ModelSession&) = delete;

  const qplan_plan* plan() const { return &plan_; }
  qplan_session* get() { return qplan_host_session_get(host_session_); }

  // A run from the first state, as the goldens are.
  std::vector<std::vector<uint8_t>> run(const std::vector<std::vector<uint8_t>>& inputs) {
    if (qplan_session_reset_state(get()) != QPLAN_OK) throw std::runtime_error("reset_state");
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].size() != size(QPLAN_INPUT, i))
        throw std::runtime_error("input " + std::to_string(i) + " has another size");
      std::memcpy(data(QPLAN_INPUT, i), inputs[i].data(), inputs[i].size());
    }
    if (qplan_session_invoke(get()) != QPLAN_OK) {
      qplan_error error = empty_error();
      qplan_session_last_error(get(), &error);
      throw std::runtime_error(error.text);
    }
    std::vector<std::vector<uint8_t>> outputs;
    for (uint32_t i = 0; i < qplan_plan_io_count(&plan_, nullptr, QPLAN_OUTPUT); ++i) {
      const uint8_t* bytes = data(QPLAN_OUTPUT, i);
      outputs.emplace_back(bytes, bytes + size(QPLAN_OUTPUT, i));
    }
    return outputs;
  }

 private:
  void open(uint32_t isa, const qplan_thread_pool* pool, const qplan_npu_device_config* device) {
    qplan_platform platform{};
    platform.struct_size = sizeof(platform);
    platform.thread_pool = pool;
    qplan_session_config config{};
    config.struct_size = sizeof(config);
    config.isa_limit = isa;
    config.kernels = qplan_kernels_all();
    config.platform = &platform;
    if (device != nullptr) {
      config.npu = qplan_npu_client_default();
      config.devices = device;
      config.num_devices = 1;
      config.npu_timeout_us = 120'000'000;  // simulators are slow
    }
    qplan_error error = empty_error();
    if (qplan_plan_open(&plan_, bytes_.data(), bytes_.size(), QPLAN_PLAN_DIGEST, &error) < 0 ||
        qplan_host_session_create(&plan_, &config, &host_session_, &error) < 0) {
      qplan_pool_destroy(pool_);
      throw std::runtime_error(error.text);
    }
  }

  uint8_t* data(int direction, uint32_t index) {
    DLTensor view{};
    if (qplan_session_view(get(), direction, index, &view) < 0)
      throw std::runtime_error("no such input or output");
    return static_cast<uint8_t*>(view.data) + view.byte_offset;
  }
  size_t size(int direction, uint32_t index) const {
    qplan_tensor_info info{};
    info.struct_size = sizeof(info);
    if (qplan_plan_io_info(&plan_, nullptr, direction, index, &info) < 0)
      throw std::runtime_error("no such tensor");
    return static_cast<size_t>(info.size_bytes);
  }

  Buffer<uint8_t> bytes_;
  const qplan_thread_pool* pool_ = nullptr;
  qplan_plan plan_{};
  qplan_host_session* host_session_ = nullptr;
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_MODELS_MODEL_SESSION_H_
