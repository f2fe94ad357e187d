// Inputs and outputs of a session in memory of its device.
#ifndef QPLAN_TESTS_FUZZ_DEVICE_BUFFERS_H_
#define QPLAN_TESTS_FUZZ_DEVICE_BUFFERS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "qplan/qplan.h"
#include "tests/fuzz/fuzz_target.h"

namespace qplan::testing {

class DeviceBuffers {
 public:
  // Whether the tensor is in memory of the session's first device from now on, with this content; null: none.
  // Not where that device takes no jobs, has no such memory left, or the tensor is bound through another
  // mention.
  bool bind(qplan_session* session, int direction, uint32_t index, const DLTensor& like,
            const uint8_t* content, size_t size) {
    auto one = std::make_unique<Bound>();
    if (qplan_buffer_create(session, 0, &like, 0, &one->buffer) != QPLAN_OK) return false;
    DLTensor view{};
    FUZZ_CHECK(qplan_buffer_begin_access(&one->buffer, QPLAN_BUFFER_WRITE, &view) == QPLAN_OK,
               "begin_access");
    if (content != nullptr && size > 0) std::memcpy(view.data, content, size);
    if (content == nullptr) std::memset(view.data, 0x66, size);
    FUZZ_CHECK(qplan_buffer_end_access(&one->buffer) == QPLAN_OK, "end_access");
    const qplan_status status = qplan_session_bind(session, direction, index, &view);
    FUZZ_CHECK(status != QPLAN_INTERNAL, "bind of a device's buffer");
    if (status != QPLAN_OK) {
      FUZZ_CHECK(qplan_buffer_destroy(&one->buffer) == QPLAN_OK, "destroy of what is not bound");
      return false;
    }
    one->direction = direction;
    one->index = index;
    bound_.push_back(std::move(one));
    return true;
  }

  // Before and after the CPU reads outputs.
  void begin_reading() {
    DLTensor view{};
    for (const auto& one : bound_) {
      FUZZ_CHECK(qplan_buffer_begin_access(&one->buffer, QPLAN_BUFFER_READ, &view) == QPLAN_OK,
                 "begin_access to read");
    }
  }
  void end_reading() {
    for (const auto& one : bound_)
      FUZZ_CHECK(qplan_buffer_end_access(&one->buffer) == QPLAN_OK, "end_access after reading");
  }

  void destroy(qplan_session* session) {
    for (const auto& one : bound_) {
      FUZZ_CHECK(qplan_buffer_destroy(&one->buffer) == QPLAN_INVALID_STATE, "a bound buffer is destroyed");
      FUZZ_CHECK(qplan_session_bind(session, one->direction, one->index, nullptr) == QPLAN_OK, "unbind");
      FUZZ_CHECK(qplan_buffer_destroy(&one->buffer) == QPLAN_OK, "destroy");
    }
    bound_.clear();
  }

 private:
  struct Bound {
    qplan_buffer buffer{};
    int direction = 0;
    uint32_t index = 0;
  };
  std::vector<std::unique_ptr<Bound>> bound_;  // a buffer stays where it is
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_DEVICE_BUFFERS_H_
