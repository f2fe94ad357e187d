// Running regions on devices: the options about drivers, the devices of a plan, the report of what ran where.
#ifndef QPLAN_TOOLS_NPU_H_
#define QPLAN_TOOLS_NPU_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "qplan/npu_driver.h"
#include "qplan/qplan.h"
#include "tools/files.h"

namespace qplan::tools {

struct NpuOptions {
  std::string driver = "sim";  // "sim", "none", or a library with options: "x.so,a=b"
  std::string driver_options;
  std::string on_failure = "fallback";
  std::string record, trace;
  bool records_all = false;  // --npu-record-all
  bool verify = false;
  uint32_t timeout_ms = 0;  // 0: the session's default
};

// --driver, --npu-options.
void add_driver_options(CLI::App& command, NpuOptions& options);
// Adds these and --on-npu-failure, --npu-verify, --npu-timeout-ms.
void add_npu_options(CLI::App& command, NpuOptions& options);
// --npu-record, --npu-record-all, --npu-trace: of one run.
void add_npu_file_options(CLI::App& command, NpuOptions& options);

// A driver: the simulator of this program, or a library's.
class Driver {
 public:
  // name: "sim" or a path. Failure where the library is no driver.
  explicit Driver(const std::string& name);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  [[nodiscard]] const qplan_npu_driver* get() const { return driver_; }

 private:
  const qplan_npu_driver* driver_ = nullptr;
  void* library_ = nullptr;
};

// The driver's name of NpuOptions, without options; and the options of `open`.
std::string driver_name(const NpuOptions& options);
std::string driver_options(const NpuOptions& options);
// Whether that is the simulator of this program; a library's driver.
bool is_simulator(const NpuOptions& options);
bool is_driver_library(const NpuOptions& options);
// Failure where options about devices can have no effect, because the plan has no regions.
void check_npu_options(const NpuOptions& options, const PlanFile& plan);

struct PlanTarget {
  std::string name;                  // "vta"
  std::string options;               // "sram=quarter,mul=on"
  std::vector<std::string> formats;  // of its regions' programs: "VTA1"
};
// The targets of a plan that are no CPU.
std::vector<PlanTarget> device_targets(const PlanFile& plan);
// The options of the simulator that make it the device of that target, "sram=quarter".
std::string simulator_options(const PlanTarget& target);

// An open device for each such target; none for --driver none. A device that is not there stays absent: the
// session's policy decides what then.
class NpuDevices {
 public:
  // platform (may be null) outlives this. Failure, UsageError.
  NpuDevices(const PlanFile& plan, const NpuOptions& options, const qplan_platform* platform);
  ~NpuDevices();
  NpuDevices(const NpuDevices&) = delete;
  NpuDevices& operator=(const NpuDevices&) = delete;

  // The fields of config about devices; config points into this.
  void configure(qplan_session_config* config) const;
  // The failure to write --npu-record and --npu-trace so far, with the system's reason; "": none. The trace
  // is written by close.
  [[nodiscard]] std::string write_error() const;
  // Closes the devices, after the sessions that use them.
  void close();
  // The CPU repeats what a device did.
  [[nodiscard]] bool verifies() const { return (flags_ & QPLAN_NPU_VERIFY) != 0; }

 private:
  static void log(void* user, uint32_t level, const char* text);
  // Options of the driver's `open`. A driver that refuses them is tried again without those of the plan.
  struct OpenOptions {
    std::string of_plan, of_user;
  };
  void open(const PlanTarget& target, const NpuOptions& options, const OpenOptions& given,
            const qplan_platform* platform);

  std::vector<PlanTarget> targets_;
  qplan_platform platform_{};  // of devices that write files: keeps the first error of their log
  const qplan_platform* forward_ = nullptr;  // gets the rest of it; may be null
  mutable std::mutex mutex_;                 // guards write_error_: devices have threads
  std::string write_error_;
  std::unique_ptr<Driver> driver_;
  std::vector<qplan_host_device> devices_;
  std::vector<qplan_npu_device_config> configs_;
  uint32_t on_failure_ = QPLAN_NPU_FALLBACK;
  uint32_t flags_ = 0;
  uint32_t timeout_us_ = 0;
};

// ---- what ran where ----
std::vector<qplan_region_info> region_infos(const qplan_session* session);
std::vector<qplan_device_info> device_infos(const qplan_session* session);
// "npu: 3 of 3 regions on 'vta' (sim), 12.3 M cycles, 2 copies (150.5 kB)" and a line for each reason why
// something did not run there; "" where the plan has no regions.
// verifies: the CPU ran each region after its device, which counts as its runs too.
std::string npu_text(const qplan_session* session, bool verifies);
nlohmann::ordered_json npu_json(const qplan_session* session, bool verifies);
// Whether a device's bytes were not the CPU's; Failure where they were not.
bool has_mismatches(const qplan_session* session);
void check_mismatches(const qplan_session* session);

// A directory of recorded jobs: DIR/job-NNNN/job.txt.

// The record of one run, whose jobs the device's driver writes into the directory.
class NpuRecord {
 public:
  // To be called when all is ready for the run. directory "": nothing is recorded. Else it is made, as one of
  // the outputs; jobs of an earlier recording in it are removed. Failure where that cannot be done, or no
  // region will run on its device.
  NpuRecord(std::string directory, const qplan_session* session, OutputFiles* outputs);
  // After the run: the check files are the CPU's bytes where the session (with QPLAN_NPU_VERIFY) found no
  // difference. Where it did the jobs are removed; that, or fewer jobs than ran, is a Failure. write_error:
  // what the simulator could not write, "" where it does not say.
  void finish(const qplan_session* session, const std::string& write_error) const;

 private:
  std::string directory_;
};

// Whether the file is in a job of the directory, which a new recording there removes.
bool is_in_recorded_job(const std::string& directory, const std::string& file);

// Paths of the jobs in a directory, or the directory itself where it is one. Failure where it is neither.
std::vector<std::string> find_jobs(const std::string& directory);

// ---- operator lists (qplan/npu_oplist.h) for people

// Lists the slots, then one line for each operator. Returns false, with the reason in *text, if the blob is
// no operator list.
bool list_operators(const void* blob, uint64_t bytes, std::string* text);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_NPU_H_
