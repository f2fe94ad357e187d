// Regions on devices: what the session remembers of them, and the table of functions through which it reaches
// the code that talks to drivers (src/runtime/npu). A program that passes no client does not link that code:
// here, regions only run on their CPU steps.
#ifndef QPLAN_SRC_RUNTIME_NPU_H_
#define QPLAN_SRC_RUNTIME_NPU_H_

#include <stdint.h>

#include "format/memory_layout.h"
#include "format/plan_view.h"
#include "qplan/npu_driver.h"
#include "qplan/qplan.h"
#include "src/base/error.h"

namespace qplan {

struct Session;
struct SessionOptions;
struct NpuBuffer;

inline constexpr uint32_t kNpuTextBytes = 160;

// One class of memory of a device.
struct NpuBank {
  uint8_t index = format::kMaxBanks;  // of the plan's DEVICE bank; kMaxBanks: the plan has no such bank
  bool is_shadow = false;
  bool is_misplaced = false;    // in another class than the plan asks for
  qplan_npu_buffer buffer = 0;  // of the bank: imported, or a shadow
  uint8_t* memory = nullptr;    // the buffer as the CPU sees it
};
// Those that a device writes.
inline constexpr uint32_t kNumBankClasses = format::MemoryClass_DRAM + 1;

// A target of the plan that regions of the function run on.
struct NpuDevice {
  uint32_t target = 0;  // position in the plan's targets
  NpuBank banks[kNumBankClasses];
  const qplan_npu_driver* driver = nullptr;
  qplan_npu_device device = 0;
  bool is_asynchronous = false;
  uint32_t max_binds = 0;
  bool has_lost_job = false;     // that neither cancel nor reset ended: it may use its memory for good
  bool lost_job_writes = false;  // ... and write where the CPU's steps do
  uint32_t clock_khz = 0;        // 0: not stated
  uint32_t state = QPLAN_DEVICE_ABSENT;
  uint32_t max_failures = 0;
  uint32_t failures_in_a_row = 0;
  qplan_npu_status last_status = QPLAN_NPU_OK;
  uint64_t jobs = 0;
  uint64_t failed_jobs = 0;
  uint64_t timeouts = 0;
  uint64_t retries = 0;
  uint64_t fallbacks = 0;
  uint64_t resets = 0;
  uint64_t cycles = 0;
  char text[kNpuTextBytes] = {};

  bool takes_jobs() const { return state == QPLAN_DEVICE_PRESENT || state == QPLAN_DEVICE_DEGRADED; }
};
static_assert(sizeof(NpuDevice) <= format::kNpuDeviceBytes, "memory_layout.h promises this much");

// One NpuStep of the function.
struct NpuRegion {
  uint32_t step = 0;  // of the function
  NpuDevice* device = nullptr;
  qplan_npu_program program = 0;  // 0: not loaded
  uint64_t program_bytes = 0;
  uint64_t estimated_cycles = 0;               // by the plan or by the driver, whichever is more
  uint32_t alignment = 1;                      // that the program wants of any slot; all are powers of two
  qplan_status status = QPLAN_DRIVER_MISSING;  // why it is not on the device for good
  uint64_t device_runs = 0;
  uint64_t cpu_runs = 0;
  uint64_t failures = 0;
  uint64_t mismatches = 0;
  uint64_t copies = 0;
  uint64_t copy_bytes = 0;
  uint64_t last_cycles = 0;
  uint64_t checksum = 0;  // of what the device made, until the CPU has made the same
  // Its job of this run has left the outputs that the plan keeps in the device's bank.
  bool keeps_outputs = false;
  char text[kNpuTextBytes] = {};

  bool is_on_device() const { return status == QPLAN_OK && device->takes_jobs(); }
};
static_assert(sizeof(NpuRegion) <= format::kNpuRegionBytes, "memory_layout.h promises this much");

// What a session with regions has besides.
struct NpuState {
  const qplan_npu_client* client = nullptr;  // null: no devices
  bool lacks_client = false;                 // null, but devices were given
  NpuDevice* devices = nullptr;
  NpuRegion* regions = nullptr;
  uint32_t num_devices = 0;
  uint32_t num_regions = 0;
  uint32_t policy = QPLAN_NPU_FALLBACK;
  uint32_t flags = 0;
  uint64_t given_timeout_ns = 0;  // by the application; 0: by the estimate of the region
  uint64_t timeout_ns = 0;        // of the job in flight
  NpuBuffer* buffers = nullptr;
  // The next step of the run in progress.
  uint32_t next_step = 0;
  uint32_t attempts = 0;      // of the region at next_step
  bool has_job = false;       // of that region
  bool is_cancelled = false;  // the job took too long
  bool is_reset = false;      // ... and cancelling did not end it
  qplan_npu_job job = 0;
  uint64_t started_ns = 0;   // of the job, on the platform's clock
  uint64_t waited_ns = 0;    // for the job, in calls that were to wait
  uint64_t comparisons = 0;  // by which init has checked regions (prepare_regions.h)
};
static_assert(sizeof(NpuState) <= format::kNpuStateBytes, "memory_layout.h promises this much");

// How long a call of the application's may wait.
struct NpuWait {
  uint64_t remaining_ns = 0;  // 0: not at all, UINT64_MAX: without limit
};

enum class NpuRun : uint32_t {
  kPending,   // the job is in flight
  kDone,      // on the device
  kCpu,       // not on the device
  kFailed,    // the session's error says why
  kCancelled  // the run was cancelled, and the job has ended
};

}  // namespace qplan

struct qplan_npu_client {
  // Takes the config's devices into use, loads the regions. What does not work is written into the records;
  // errors are the caller's mistakes in the config.
  qplan_status (*init)(qplan::Session* session, const qplan::SessionOptions& options, qplan::Error* error);
  // Stops the job in flight and gives back all that init took from drivers. QPLAN_DEVICE_ERROR where a job,
  // of this run or an earlier one, may still use the session's memory; the log says so.
  qplan_status (*deinit)(qplan::Session* session);
  // Submits the region's job, or goes on with the one in flight, and waits for it as long as the caller wants
  // to; without limit where the driver is synchronous.
  qplan::NpuRun (*run)(qplan::Session* session, qplan::NpuRegion* region, qplan::NpuWait* wait);
  // Before the CPU's steps of a region: inputs that an earlier region keeps in the device's bank are copied.
  void (*provide)(qplan::Session* session, qplan::NpuRegion* region);
  // Called for a region that ran on the device, before and after the CPU's steps compute the same outputs.
  void (*remember)(qplan::Session* session, qplan::NpuRegion* region);
  void (*compare)(qplan::Session* session, qplan::NpuRegion* region);
  // At the end of a run, which fails where this does.
  qplan_status (*finish)(qplan::Session* session);
  qplan_status (*recover)(qplan::Session* session, qplan::NpuDevice* device);
};

#endif  // QPLAN_SRC_RUNTIME_NPU_H_
