// A plan that runs on the reference kernels, in memory of its own.
#ifndef QPLAN_SRC_PACKER_EVALUATE_REFERENCE_SESSION_H_
#define QPLAN_SRC_PACKER_EVALUATE_REFERENCE_SESSION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "qplan/qplan.h"

namespace qplan::evaluate {

class ReferenceSession {
 public:
  // plan: 64-byte aligned; must outlive the session. PackError (QPLAN_INTERNAL) with the runtime's text.
  explicit ReferenceSession(std::span<const uint8_t> plan);
  ~ReferenceSession();
  ReferenceSession(const ReferenceSession&) = delete;
  ReferenceSession& operator=(const ReferenceSession&) = delete;

  // The bytes of input or output `index`.
  std::span<uint8_t> io(int direction, uint32_t index);
  void invoke();

 private:
  struct AlignedMemory {
    void* base = nullptr;
    size_t size = 0;
    size_t alignment = 1;
  };
  void init(std::span<const uint8_t> plan);
  void release();
  [[noreturn]] void fail(const qplan_error& error);

  qplan_plan plan_ = {};
  std::vector<AlignedMemory> memories_;
  qplan_session* session_ = nullptr;
};

}  // namespace qplan::evaluate

#endif  // QPLAN_SRC_PACKER_EVALUATE_REFERENCE_SESSION_H_
