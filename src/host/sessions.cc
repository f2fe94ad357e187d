// Sessions on hosts: one whose memories come from the heap, and many samples through one by one call.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "src/host/system.h"

namespace {

// Zeroed: the operating system hands out such pages for nothing, and an input that was never written then has
// the same bytes in every run.
class AlignedBlock {
 public:
  AlignedBlock(uint64_t size, uint32_t alignment) {
    if (size > SIZE_MAX - alignment) return;
    block_.reset(std::calloc(static_cast<size_t>(size) + alignment, 1));
    const auto address = reinterpret_cast<uintptr_t>(block_.get());
    offset_ = (alignment - address % alignment) % alignment;
  }
  bool is_allocated() const { return block_ != nullptr; }
  void* get() const { return static_cast<char*>(block_.get()) + offset_; }

 private:
  struct Free {
    void operator()(void* block) const { std::free(block); }
  };
  std::unique_ptr<void, Free> block_;
  size_t offset_ = 0;
};

}  // namespace

struct qplan_host_session {
  std::vector<AlignedBlock> blocks;
  qplan_session* session = nullptr;
  qplan_host_session* next_abandoned = nullptr;
};

qplan_status qplan_host_session_create(const qplan_plan* plan, const qplan_session_config* config,
                                       qplan_host_session** host_session, qplan_error* error) {
  using qplan::host::report;
  if (host_session == nullptr)
    return report(error, QPLAN_INVALID_ARGUMENT, "host session: host_session is NULL");
  *host_session = nullptr;
  try {
    uint32_t count = 0;
    qplan_status status = qplan_session_memory_needs(plan, config, nullptr, &count, error);
    if (status != QPLAN_OK) return status;
    std::vector<qplan_memory_need> needs(count);
    status = qplan_session_memory_needs(plan, config, needs.data(), &count, error);
    if (status != QPLAN_OK) return status;
    auto made = std::make_unique<qplan_host_session>();
    std::vector<qplan_memory> memories;
    for (const qplan_memory_need& need : needs) {
      made->blocks.emplace_back(need.size, need.alignment);
      if (!made->blocks.back().is_allocated()) {
        return report(
            error, QPLAN_OUT_OF_MEMORY,
            "host session: no " + std::to_string(need.size) + " bytes for bank " + std::to_string(need.bank));
      }
      memories.push_back({made->blocks.back().get(), static_cast<size_t>(need.size)});
    }
    status = qplan_session_init(plan, config, memories.data(), count, &made->session, error);
    if (status == QPLAN_OK) *host_session = made.release();
    return status;
  } catch (const std::bad_alloc&) {
    return report(error, QPLAN_OUT_OF_MEMORY, "");
  }
}

qplan_session* qplan_host_session_get(qplan_host_session* host_session) {
  return host_session == nullptr ? nullptr : host_session->session;
}

void qplan_host_session_destroy(qplan_host_session* host_session) {
  if (host_session == nullptr) return;
  if (qplan_session_deinit(host_session->session) != QPLAN_DEVICE_ERROR) {
    delete host_session;
    return;
  }
  // A device may still write to the blocks. They stay in memory, where leak checkers find them.
  static std::atomic<qplan_host_session*> abandoned{nullptr};
  host_session->next_abandoned = abandoned.exchange(host_session);
}

// ---- many samples through one session by one call: what a loop over write, invoke and read does

namespace {

// One tensor of a batch: where sample i begins, and what the session is given of it.
class Samples {
 public:
  // Whether given is count times the plan's tensor, of which view is one; else text says why not.
  bool open(const DLTensor& given, const DLTensor& view, uint32_t count, std::string* text) {
    if (given.ndim != view.ndim || given.ndim < 1 || given.shape == nullptr) {
      *text = "has rank " + std::to_string(given.ndim) + ", expected " + std::to_string(view.ndim) +
              (view.ndim < 1 ? "; a tensor without axes has no batches" : "");
      return false;
    }
    // Divided, not multiplied: an extent of the plan times count may not fit.
    if (given.shape[0] / count != view.shape[0] || given.shape[0] % count != 0) {
      *text = "has " + std::to_string(given.shape[0]) + " rows along its first axis, expected " +
              std::to_string(count) + " times " + std::to_string(view.shape[0]);
      return false;
    }
    sample_ = given;
    sample_.shape = view.shape;  // the session compares the extents from the second on through this
    for (int32_t i = 1; i < given.ndim; ++i) {
      if (given.shape[i] == view.shape[i]) continue;
      *text = "has extent " + std::to_string(given.shape[i]) + " along axis " + std::to_string(i) +
              ", expected " + std::to_string(view.shape[i]);
      return false;
    }
    int64_t stride = 1;  // of the first axis, in elements
    if (given.strides != nullptr) {
      stride = given.strides[0];
    } else {
      for (int32_t i = 1; i < given.ndim; ++i) stride *= given.shape[i];
    }
    const int64_t element = given.dtype.bits / 8;
    constexpr int64_t kLimit = int64_t{1} << 56;
    if (stride <= -kLimit / given.shape[0] / 8 || stride >= kLimit / given.shape[0] / 8) {
      *text = "has stride " + std::to_string(stride) + ", beyond the address space";
      return false;
    }
    step_bytes_ = stride * element * view.shape[0];
    return true;
  }

  // The samples of an output are written one after the other, and each needs a place of its own.
  bool has_place_for_each(uint32_t count) const { return count <= 1 || step_bytes_ != 0; }

  const DLTensor* at(uint32_t i) {
    // Unsigned, and in the address: a negative stride goes down, and byte_offset cannot.
    const uint64_t offset = static_cast<uint64_t>(step_bytes_) * i;
    current_ = sample_;
    current_.data =
        reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(sample_.data) + static_cast<uintptr_t>(offset));
    return &current_;
  }

 private:
  DLTensor sample_ = {};
  DLTensor current_ = {};
  int64_t step_bytes_ = 0;  // from a sample to the next
};

}  // namespace

qplan_status qplan_host_run_batch(qplan_session* session, uint32_t count, const DLTensor* inputs,
                                  uint32_t num_inputs, const DLTensor* outputs, uint32_t num_outputs,
                                  uint32_t* num_done, qplan_error* error) {
  using qplan::host::report;
  if (num_done != nullptr) *num_done = 0;
  if (session == nullptr || (num_inputs > 0 && inputs == nullptr) ||
      (num_outputs > 0 && outputs == nullptr)) {
    return report(error, QPLAN_INVALID_ARGUMENT, "batch: a pointer is NULL");
  }
  if (count == 0) return QPLAN_OK;
  const auto failed = [&](qplan_status status) {
    if (error != nullptr) qplan_session_last_error(session, error);
    return status;
  };
  try {
    std::vector<Samples> samples(size_t{num_inputs} + num_outputs);
    for (uint32_t i = 0; i < samples.size(); ++i) {
      const bool is_input = i < num_inputs;
      const uint32_t index = is_input ? i : i - num_inputs;
      DLTensor view = {};
      const qplan_status status =
          qplan_session_view(session, is_input ? QPLAN_INPUT : QPLAN_OUTPUT, index, &view);
      if (status < 0) return failed(status);
      std::string text;
      if (!samples[i].open(is_input ? inputs[index] : outputs[index], view, count, &text)) {
        return report(
            error, QPLAN_SHAPE_MISMATCH,
            std::string("batch: ") + (is_input ? "input " : "output ") + std::to_string(index) + ": " + text);
      }
      if (!is_input && !samples[i].has_place_for_each(count)) {
        return report(error, QPLAN_INVALID_ARGUMENT,
                      "batch: output " + std::to_string(index) +
                          ": has stride 0 along its first axis, where each sample has its own place");
      }
    }
    for (uint32_t s = 0; s < count; ++s) {
      for (uint32_t i = 0; i < num_inputs; ++i) {
        const qplan_status status = qplan_session_write(session, i, samples[i].at(s));
        if (status < 0) return failed(status);
      }
      const qplan_status status = qplan_session_invoke(session);
      if (status < 0) return failed(status);
      for (uint32_t i = 0; i < num_outputs; ++i) {
        const qplan_status read = qplan_session_read(session, i, samples[num_inputs + i].at(s));
        if (read < 0) return failed(read);
      }
      if (num_done != nullptr) *num_done = s + 1;
    }
  } catch (const std::bad_alloc&) {
    return report(error, QPLAN_OUT_OF_MEMORY, "");
  }
  return QPLAN_OK;
}
