// What a qplan_buffer holds: a member of its session's list, in the application's storage.
#ifndef QPLAN_SRC_RUNTIME_NPU_BUFFER_H_
#define QPLAN_SRC_RUNTIME_NPU_BUFFER_H_

#include <stdint.h>

#include "src/runtime/session.h"

namespace qplan {

struct NpuBuffer {
  static constexpr uint32_t kLive = 0x51425546;

  uint32_t tag;
  uint32_t access;  // QPLAN_BUFFER_*, while the CPU has it
  Session* session;
  NpuBuffer* next;
  NpuDevice* device;
  qplan_npu_buffer handle;
  uint8_t* memory;  // as the CPU sees it
  uint64_t size;    // bytes of the tensor
  uint64_t device_address;
  DLDataType dtype;
  int32_t ndim;
  int64_t shape[format::kMaxRank];
};
static_assert(sizeof(NpuBuffer) <= sizeof(qplan_buffer::opaque), "qplan_buffer is ABI");
static_assert(alignof(NpuBuffer) <= alignof(qplan_buffer), "qplan_buffer is ABI");

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_NPU_BUFFER_H_
