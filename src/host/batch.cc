// Many samples through one session by one call: what a loop over write, invoke and read does.
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "src/host/host_error.h"

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
