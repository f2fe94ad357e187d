// A driver with the ABI of npu_driver.h for a device that only tests have: it executes tiny blobs, and does
// on demand whatever can go wrong.
#ifndef QPLAN_TESTS_SUPPORT_FAKE_NPU_H_
#define QPLAN_TESTS_SUPPORT_FAKE_NPU_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "qplan/npu_driver.h"

namespace qplan::testing {

// Blobs are text: "add 3 in 24 in 8 out 24 scratch 16". Slots are numbered in that order, with their bytes;
// each byte of output o is one of input o plus 3.
inline constexpr uint32_t kFakeBlobFormat = QPLAN_NPU_FOURCC('F', 'A', 'K', 'E');
std::vector<uint8_t> fake_blob(uint8_t addend, const std::vector<uint64_t>& inputs,
                               const std::vector<uint64_t>& outputs,
                               const std::vector<uint64_t>& scratch = {});

// One device. The table of functions is the same for all; the handle is the object.
class FakeNpu {
 public:
  FakeNpu();
  ~FakeNpu();
  FakeNpu(const FakeNpu&) = delete;
  FakeNpu& operator=(const FakeNpu&) = delete;

  static const qplan_npu_driver* driver();
  qplan_npu_device device() const { return handle_; }

  // The device's properties; set before a session takes it.
  bool can_import = true;
  bool is_asynchronous = false;
  bool is_coherent = true;  // false: the CPU's bytes and the device's are two memories
  uint32_t alignment = 64;  // of each region
  uint32_t max_binds = 64;
  uint32_t input_usage = QPLAN_NPU_USE_INPUT;  // that programs report for their inputs
  uint32_t num_regions = 0;                    // that programs report; 0: as many as they have
  uint64_t device_address = 0x10000;           // of all buffers
  qplan_npu_status capabilities_status = QPLAN_NPU_OK;
  uint32_t clock_khz = 0;
  uint64_t estimated_cycles = 0;  // of each program; 0: not known
  uint32_t memory_classes = 0;    // of the capabilities: 0: the device knows none
  // Where imported memory is; ANY: as asked.
  uint32_t imported_class = QPLAN_NPU_MEMORY_CLASS_ANY;
  uint64_t sram_bytes = UINT64_MAX;  // that are left
  qplan_npu_status import_status = QPLAN_NPU_OK;
  qplan_npu_status alloc_status = QPLAN_NPU_OK;
  qplan_npu_status load_status = QPLAN_NPU_OK;
  qplan_npu_status reset_status = QPLAN_NPU_OK;
  std::string load_text;
  bool fills_texts = false;  // to the last byte
  // Statuses of the next loads, in their order; then load_status.
  std::deque<qplan_npu_status> load_statuses;
  // Statuses of the next jobs, in their order; QPLAN_NPU_OK for later ones.
  std::deque<qplan_npu_status> submit_statuses;
  std::deque<qplan_npu_status> job_statuses;
  // The same for calls: one that fails does nothing.
  std::deque<qplan_npu_status> flush_statuses, invalidate_statuses, release_statuses;
  std::string job_text = "scripted";
  // Jobs that never end by themselves, and what ends them.
  uint32_t hangs = 0;  // the next so many
  bool cancel_works = true;
  qplan_npu_status cancelled_status = QPLAN_NPU_E_CANCELLED;  // of a job that cancel ends
  bool reset_works = true;
  bool finishes_late = false;  // a job that is stopped completes as if nothing had been asked
  uint32_t pending_waits = 0;  // each job is PENDING in that many waits, whatever their timeout
  bool trashes_failed_outputs = true;
  bool flips_outputs = false;  // silently wrong

  struct Counts {
    uint32_t imports = 0, allocs = 0, releases = 0, loads = 0, unloads = 0, submits = 0, waits = 0,
             cancels = 0, resets = 0, flushes = 0, invalidates = 0, live_jobs = 0;
  };
  Counts counts;
  uint64_t allocations = 0;  // that the driver made on the heap in submit and wait, by malloc_trap.h
  std::vector<uint64_t> wait_timeouts;  // ns, of all waits
  uint64_t live_buffers() const { return buffers_.size(); }
  uint64_t live_programs() const { return programs_.size(); }
  // Adds this much to the clock in each wait that returns PENDING and had time; null: there is none.
  uint64_t* clock = nullptr;
  std::vector<qplan_npu_bind> last_binds;
  // The class of a bind's buffer.
  uint32_t memory_class_of(const qplan_npu_bind& bind) { return buffers_[bind.buffer].memory_class; }
  qplan_npu_buffer_request last_request = {};  // of alloc
  // The jobs in flight, hung ones too, write what they compute.
  void write_outputs_of_live_jobs();

 private:
  friend struct FakeNpuFunctions;
  struct Buffer {
    uint8_t* cpu = nullptr;
    std::vector<uint8_t> owned;
    std::vector<uint8_t> device;  // where the device is not coherent
    uint64_t bytes = 0;
    uint32_t memory_class = 0;
    uint8_t* seen() { return device.empty() ? cpu : device.data(); }
  };
  struct Program {
    uint8_t addend = 0;
    std::vector<uint64_t> inputs, outputs, scratch;
  };
  struct Job {
    Program program;
    std::vector<qplan_npu_bind> binds;
    qplan_npu_status status = QPLAN_NPU_OK;
    bool hangs = false;
    bool is_stopped = false;
    uint32_t pending_waits = 0;
  };
  void run(Job* job);

  uint64_t handle_ = 0;
  uint64_t next_ = 1;
  std::map<uint64_t, Buffer> buffers_;
  std::map<uint64_t, Program> programs_;
  std::map<uint64_t, Job> jobs_;
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_FAKE_NPU_H_
