// The parts of the code that talks to drivers: qplan_npu_client_default.
//
//   client.cc    devices taken into use, given back, recovered; the texts of status codes; the table
//   load.cc      blobs, and what their programs want bound
//   transfer.cc  inputs and outputs between the session's tensors and the device's buffers, and between their
//                arrangements
//   job.cc       one job from submit to its end, and what becomes of one that failed
//   buffer.cc    tensors of the application's in memory of the device
#ifndef QPLAN_SRC_RUNTIME_NPU_CLIENT_H_
#define QPLAN_SRC_RUNTIME_NPU_CLIENT_H_

#include <stdint.h>

#include "format/plan_view.h"
#include "src/runtime/npu/driver_answers.h"
#include "src/runtime/session.h"

namespace qplan {

// What a qplan_buffer holds: a member of its session's list, in the application's storage.
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

inline const format::NpuStep& step_of(const Session& session, const NpuRegion& region) {
  return *session.plan.npu_step(session.step_index(region.step));
}
inline const char* name_of_target(const Session& session, const NpuDevice& device) {
  return session.plan.plan().targets()->Get(device.target)->name()->c_str();
}
// Copies as much as there is room for, made printable: texts may be a driver's.
void put_text(const char* text, char (&to)[kNpuTextBytes]);
// A record of a reason or report that the driver filled: its text ends, whatever the driver wrote.
template <typename Record>
void terminate_text(Record* record) {
  record->text[sizeof(record->text) - 1] = '\0';
}
// The text of such a record; it may be "".
inline const char* text_or_status(const char* text, qplan_npu_status status) {
  return text[0] != '\0' ? text : npu_status_text(status);
}
// Whether the driver refused a request for the sake of its class of memory: ask for any then.
inline bool lacks_class(qplan_npu_status status, uint32_t memory_class) {
  return memory_class != QPLAN_NPU_MEMORY_CLASS_ANY &&
         (status == QPLAN_NPU_E_UNSUPPORTED || status == QPLAN_NPU_E_ONCHIP);
}
// On the platform's clock; 0 where the platform has no clock.
uint64_t now_ns(const Session& session);

// ---- load.cc ----
// Loads the region's blob and compares what its program wants with what the plan binds. The region's status
// and text say what came of it.
void load_region(Session* session, NpuRegion* region);
void unload_region(NpuRegion* region);

// ---- transfer.cc ----
struct JobBinds {
  uint32_t count = 0;
  qplan_npu_bind bind[format::kMaxNpuBinds];
};
// Copies inputs where they have to be, cleans the CPU's caches, says what is bound. The driver's status.
qplan_npu_status bring_inputs(Session* session, NpuRegion* region, JobBinds* binds);
qplan_npu_status fetch_outputs(Session* session, NpuRegion* region);
// Copies outputs that are in the device's bank alone.
void fetch_kept_outputs(Session* session, NpuRegion* region);
// The same of inputs, which an earlier region keeps.
void provide_inputs(Session* session, NpuRegion* region);
// Whether its job writes where the CPU's steps do: anywhere but in memory of the device's own.
bool writes_shared_memory(const Session& session, const NpuRegion& region);
// The checksum of the region's outputs.
uint64_t checksum_of_outputs(const Session& session, const NpuRegion& region);

// ---- job.cc ----
NpuRun run_region(Session* session, NpuRegion* region, NpuWait* wait);
void remember_outputs(Session* session, NpuRegion* region);
void compare_region(Session* session, NpuRegion* region);
// Ends the job in flight, whatever it takes.
void stop_job(Session* session);

// ---- buffer.cc ----
// The buffer that holds all these bytes; null where none does.
const NpuBuffer* find_buffer(const Session& session, const void* bytes, uint64_t size);
// Whether the storage, which may hold anything, is a buffer of the session.
bool is_live_buffer(const Session& session, const qplan_buffer* storage);
qplan_status create_buffer(Session* session, NpuDevice* device, const DLTensor& tensor, qplan_buffer* buffer);
qplan_status begin_buffer_access(qplan_buffer* buffer, uint32_t access, DLTensor* view);
qplan_status end_buffer_access(qplan_buffer* buffer);
qplan_status destroy_buffer(qplan_buffer* buffer);
// What the CPU wrote into bound buffers reaches the device; else the run has failed.
qplan_status finish_run(Session* session);

// Tensors between their packed form and what a device's program reads and writes: padded rows and channels,
// borders, blocks of channels, planes of bytes, a flipped sign bit. format/plan.fbs, NpuBind, has the
// formula.

struct Arrangement {
  uint32_t rank = 0;
  uint32_t element_bytes = 1;
  int64_t extents[format::kMaxRank] = {};
  uint64_t strides[format::kMaxRank] = {};  // bytes
  uint64_t origin = 0;                      // bytes
  uint64_t byte_stride = 1;                 // bytes, between the bytes of one element
  uint64_t size = 0;                        // bytes of the buffer
  uint8_t fill = 0;
  uint8_t sign_bias = 0;
  uint32_t block = 0;         // elements of the last axis, fewer than it has; 0: it is not divided
  uint64_t block_stride = 0;  // bytes

  // The elements lie as in the packed tensor, or its blocks after each other; the buffer has no other bytes.
  bool covers_all() const;
  // The buffer holds the packed tensor, byte for byte.
  bool is_packed() const { return covers_all() && sign_bias == 0 && block == 0; }
};

// The arrangement of a verified bind.
Arrangement arrangement_of(const format::NpuBind& bind, const format::Tensor& tensor);

// Fills the buffer of arrangement.size bytes from the packed tensor, and back. The two do not overlap.
void scatter(uint8_t* buffer, const uint8_t* packed, const Arrangement& arrangement);
void gather(uint8_t* packed, const uint8_t* buffer, const Arrangement& arrangement);

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_NPU_CLIENT_H_
