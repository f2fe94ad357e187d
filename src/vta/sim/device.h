// One open device: its buffers and programs, its queue, and the thread that plays the hardware.
#ifndef QPLAN_SRC_VTA_SIM_DEVICE_H_
#define QPLAN_SRC_VTA_SIM_DEVICE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "qplan/npu_driver.h"
#include "src/vta/isa/vta.h"
#include "src/vta/sim/machine.h"
#include "src/vta/sim/options.h"

namespace qplan::sim {

struct Job {
  uint64_t handle = 0;
  uint64_t number = 0;  // of the device, from 0: what fault scripts and records count
  uint32_t priority = 0;
  std::vector<uint64_t> after;
  std::shared_ptr<Program> program;
  std::vector<std::shared_ptr<Buffer>> buffers;  // of each bind
  std::vector<uint64_t> addresses;               // of each region
  Dram dram;
  void (*done)(void*, qplan_npu_job, qplan_npu_status) = nullptr;
  void* user = nullptr;
  uint64_t submitted_ns = 0;
  // How it ends when stop is set: by cancel, reset, close or because the device went away.
  std::atomic<bool> stop{false};
  qplan_npu_status stop_status = QPLAN_NPU_E_CANCELLED;
  bool is_complete = false;
  qplan_npu_report report = {};
};

class Device {
 public:
  Device(const qplan_device_hooks* hooks, Options options);
  virtual ~Device();  // of other devices: they call close() themselves, before what they override is gone
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const vta::Config& config() const { return options_.config; }

  // ---- what is VTA's here, and what devices of other kinds do their own way
  virtual uint32_t blob_format() const { return QPLAN_NPU_BLOB_VTA; }
  virtual std::vector<qplan_npu_reason> why_unsupported(const qplan_npu_op& op) const;

  qplan_npu_status capabilities(qplan_npu_capabilities* capabilities);
  qplan_npu_status power(int on);
  qplan_npu_status reset();

  qplan_npu_status requirements(const qplan_npu_buffer_request& request, qplan_npu_layout* layout);
  qplan_npu_status alloc(const qplan_npu_buffer_request& request, uint64_t* handle);
  qplan_npu_status import_memory(const qplan_npu_buffer_request& request, uint8_t* memory, uint64_t* handle);
  qplan_npu_status release(uint64_t handle);
  qplan_npu_status layout(uint64_t handle, qplan_npu_layout* layout);
  qplan_npu_status map(uint64_t handle, uint32_t access, void** memory);
  qplan_npu_status unmap(uint64_t handle, uint32_t access);
  qplan_npu_status maintain(uint64_t handle, uint64_t offset, uint64_t bytes, bool is_flush);

  qplan_npu_status load(const void* blob, uint64_t bytes, uint64_t* handle, qplan_npu_reason* why);
  qplan_npu_status program_info(uint64_t handle, qplan_npu_program_info* info);
  qplan_npu_status region_info(uint64_t handle, uint32_t slot, qplan_npu_region_info* info);
  qplan_npu_status unload(uint64_t handle);

  qplan_npu_status submit(const qplan_npu_submit& submit, uint64_t* handle, qplan_npu_reason* why);
  qplan_npu_status wait(uint64_t handle, uint64_t timeout_ns, qplan_npu_report* report);
  qplan_npu_status cancel(uint64_t handle);
  qplan_npu_status counters(const uint32_t* ids, uint64_t* values, uint32_t count);

  // Cancels, waits, writes the trace.
  qplan_npu_status close();

 protected:
  virtual void describe(qplan_npu_capabilities* capabilities) const;
  // Validates and decodes; the memory of the program is there when place() is called.
  virtual qplan_npu_status read(const void* blob, uint64_t bytes, std::shared_ptr<Program>* program,
                                qplan_npu_reason* why) const;
  virtual void place(const void* blob, Program* program) const;
  // Executes a job on the device's thread: its report, all but times and status, and how it ended. rule: the
  // fault that it meets, or null.
  virtual Fault play(Job& job, const FaultRule* rule);
  const Options& options() const { return options_; }
  void log(uint32_t level, const std::string& text) const;

 private:
  using JobPtr = std::shared_ptr<Job>;

  uint64_t now_ns() const;
  qplan_npu_status make_buffer(const qplan_npu_buffer_request& request, uint8_t* imported, uint64_t* handle);
  bool bind(const qplan_npu_submit& submit, Job* job, std::string* error);
  // Takes from the queue the next job that may start; null if no job may. mutex_ is held.
  JobPtr next_job();
  void work();
  void run(const JobPtr& job);
  // Ends what is queued and what runs. lock holds mutex_, and is let go while done functions are called.
  void stop_all(qplan_npu_status status, std::unique_lock<std::mutex>& lock);
  // Sets the report and tells everybody who waits. mutex_ is held; the caller calls done afterwards, without
  // it.
  void complete(Job& job, const Fault& fault);
  std::optional<FaultRule> fault_of(const Job& job) const;

  qplan_device_hooks hooks_ = {};
  const qplan_platform* platform_ = nullptr;
  Options options_;
  std::mutex mutex_;  // guards all below; the running job's memories belong to the thread
  std::condition_variable changed_;
  AddressSpace space_;
  std::map<uint64_t, std::shared_ptr<Buffer>> buffers_;
  std::map<uint64_t, std::shared_ptr<Program>> programs_;
  std::map<uint64_t, JobPtr> jobs_;  // until wait has told their end
  std::deque<JobPtr> queue_;
  JobPtr running_;
  uint64_t next_handle_ = 1;
  uint64_t num_jobs_ = 0;
  uint64_t num_allocs_ = 0;
  uint64_t num_loads_ = 0;
  uint64_t counters_[QPLAN_NPU_COUNTER_BUFFER_BYTES + 1] = {};
  int power_ = 1;
  bool is_lost_ = false;
  bool is_closing_ = false;
  Trace trace_;
  std::thread thread_;  // last: it uses all of the above
};

// The fault that a script puts before an instruction; none for kinds that show only at the end.
Fault injected_fault(const FaultRule& rule, uint64_t index);

// What every device of these options can do.
void fill_capabilities(const Options& options, qplan_npu_capabilities* capabilities);

// Whether VTA can execute an operator, and all the reasons why not. Codes are stable: append only.

enum OpRule : uint32_t {
  kOpKind = 101,
  kOpContract = 102,
  kOpTensors = 103,
  kOpInputType = 104,
  kOpWeightType = 105,
  kOpGroups = 106,
  kOpWindow = 107,
  kOpScales = 108,
};

// QPLAN_NPU_TFL2 ...: what the device executes bit for bit.
constexpr uint32_t contracts_of(const vta::Config& config) {
  const uint32_t tfl2 = config.has_multiply ? uint32_t{QPLAN_NPU_TFL2} : 0u;
  return tfl2 | QPLAN_NPU_ACC32;
}

std::vector<qplan_npu_reason> why_unsupported(const vta::Config& config, const qplan_npu_op& op);

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_DEVICE_H_
