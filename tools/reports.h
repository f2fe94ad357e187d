// What commands learn of a plan and of the machine that runs it, and print about them or keep: inspect, pack,
// import, explain, report, bench, tune.
#ifndef QPLAN_TOOLS_REPORTS_H_
#define QPLAN_TOOLS_REPORTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "qplan/qplan.h"
#include "tools/files.h"
#include "tools/model_options.h"
#include "tools/session.h"
#include "tools/tensor.h"

namespace qplan::tools {

// ---- inspect_command.cc

// The text of qplan_inspect_json. Failure, with label, when the plan is not valid.
std::string inspect_text(const void* plan, size_t size, const std::string& label);

// "65.4 kB" beside exact figures, decimal units.
std::string size_text(uint64_t bytes);

// The page that `qplan inspect` prints.
std::string inspect_page(const nlohmann::ordered_json& plan);

// A line for all and one for each entry of memory.copies of `inspect --json`: how many bytes are copied from
// where to where, and what that saves by estimate.
std::string copies_text(const nlohmann::ordered_json& copies);

// The lines that `qplan pack` prints below its first one: steps, MACs, bytes; indented.
std::string pack_summary(const nlohmann::ordered_json& plan);

// Whether a target of the plan is no CPU.
bool has_devices(const nlohmann::ordered_json& plan);

// ---- import_command.cc

// What `qplan import` prints about a model without --print. relay: the text of qplan_import_text. Lines for
// inputs, outputs and the operators by kind, most frequent first; each indented and ended by a line feed.
std::string ir_summary(const std::string& relay);

// ---- explain_command.cc: which kernel computes which operator when the CPU runs everything

// And why one is slower than it could be. The kernels are those that this machine would choose: the plan does
// not decide about them. Failure where no session can be made of the plan.
// {"isa": "avx2", "macs": 301000000, "steps": [{"step", "op", "kernel", "name", "macs", "bytes", "schedule",
// "notes": [...]},
// ...]}
nlohmann::ordered_json cpu_explain_json(const PlanFile& plan, const std::string& custom_operators);

// ---- reports.cc: what several commands take from a plan's JSON, and the metadata that they use where
// their options say nothing

// As `inspect --json` prints it.
nlohmann::ordered_json inspect_plan(const PlanFile& plan);

// Bytes of inputs, constants and outputs of a step.
uint64_t step_bytes(const nlohmann::ordered_json& plan, const nlohmann::ordered_json& step);

// Where a step runs: "cpu", or the target of its region; "" for fallback steps of a region.
std::string step_target(const nlohmann::ordered_json& step);

// Nanoseconds, from the plan alone. A step of the CPU takes its MACs at 66 GMAC/s or its bytes at 24.5 GB/s,
// whichever takes longer: the figures of docs/placement.md for an x86-64 processor with AVX-512 VNNI. A
// region takes its estimated cycles at 100 MHz. Fallback steps take none.
double estimated_ns(const nlohmann::ordered_json& plan, const nlohmann::ordered_json& step);
double estimated_ns(const nlohmann::ordered_json& plan);

// The main arena over the steps of main: which tensors hold bytes at each step.
struct MemoryOverTime {
  std::vector<uint64_t> bytes;               // per step, of the tensors alive at it, each byte once
  std::vector<std::vector<uint32_t>> alive;  // per step
  uint32_t peak_step = 0;                    // the first that has the most
};
MemoryOverTime memory_over_time(const nlohmann::ordered_json& plan);

// What the model's file said of inputs and outputs, as the plan keeps it (format/README.md, "Metadata").
class PlanMetadata {
 public:
  // Failure where the plan's metadata is no metadata: a plan is untrusted.
  explicit PlanMetadata(const PlanFile& plan);

  // From --mean and --std; if neither is given, the input's own, which inputs of 8 bits do without.
  // UsageError, or Failure if the plan's own is wrong.
  [[nodiscard]] Normalisation normalisation(uint32_t input, const std::string& mean,
                                            const std::string& std) const;
  // The names of an output's classes; none where the model had none.
  [[nodiscard]] const std::vector<std::string>& labels(uint32_t output) const;

 private:
  std::vector<Normalisation> inputs_;
  std::vector<std::vector<std::string>> outputs_;
};

// ---- bench_steps.cc: how long each step takes, and how far that is from what the machine can do

struct TimeSummary {
  uint64_t median_ns = 0;
  uint64_t p90_ns = 0;
  uint64_t min_ns = 0;
  uint64_t p99_ns = 0;
};
// median: the mean of the middle two of an even count; p90: the smallest value that 90 % do not exceed; p99
// alike.
TimeSummary summarise(std::vector<uint64_t> times);

// macs / ns = GMAC/s.
inline double gmacs(uint64_t macs, uint64_t ns) {
  return ns == 0 ? 0 : static_cast<double>(macs) / static_cast<double>(ns);
}

// Random bytes for integers, 0 or 1 for booleans, [-1, 1) for floats: the bytes of each input, the same in
// every call with a seed.
std::vector<std::vector<uint8_t>> random_inputs(const PlanFile& plan, uint32_t seed);
// Those of seed 1: kernels whose time depends on values meet ordinary ones.
void write_random_inputs(const PlanFile& plan, Session& session);

// Time of each step in each run, through the platform's hooks.
class StepTimes {
 public:
  // Must outlive the sessions that use the platform.
  void attach(qplan_platform& platform);
  void clear() { times_.clear(); }
  // step: its position in the plan.
  [[nodiscard]] TimeSummary summary(uint32_t step) const;

 private:
  uint64_t begin_ns_ = 0;
  std::vector<std::vector<uint64_t>> times_;
};

// The steps as `inspect --json` prints them.
nlohmann::ordered_json plan_steps(const PlanFile& plan);
// Per step of the plan an object of what its schedule sets, by name; empty for the default.
nlohmann::ordered_json plan_schedules(const PlanFile& plan);
// "block_pixels=24, isa=avx2"
std::string schedule_text(const nlohmann::ordered_json& schedule);

struct StepReport {
  const Session& session;
  const StepTimes& times;
  double peak_gmacs;  // of all threads together; 0: unknown
  nlohmann::ordered_json schedules;
};
std::string steps_text(const StepReport& report);
nlohmann::ordered_json steps_json(const StepReport& report);
std::string steps_csv(const StepReport& report);

// ---- reports.cc too: what a measurement must know of the machine: whether it had time, and what it can do
// at most

// Whether the machine had time for a measurement.
struct MachineLoad {
  double average = 0;  // threads that ran or waited to run, mean of the last minute
  uint32_t cpus = 1;   // that this process may use
};
// How many processors the calling thread might use when this was first called: ask before pinning it.
uint32_t usable_cpus();
// average 0 where the system does not say.
MachineLoad machine_load();

// Why the figures of a measurement may be worse than the machine's best; one sentence each, empty for a quiet
// machine. load: before the measurement, with `threads` threads. Of fewer than 10 runs the spread says
// nothing.
std::vector<std::string> load_warnings(const MachineLoad& load, uint32_t threads, const TimeSummary& times,
                                       uint64_t runs);

// The multiply-accumulates that this machine can do at most: the roof over a kernel's rate.

// GMAC/s of one thread that multiplies 8-bit numbers out of registers and sums them exactly in int32, by the
// best instructions of a QPLAN_ISA_* that this machine has: VPDPBUSD, or PMADDWD and PADDD. The fastest of
// several measurements, about 10 ms in all. 0 for an instruction set that has no such loop here.
double measure_peak_gmacs(uint32_t isa);

// GB/s with which one thread reads memory that no cache holds: 64 MB in order, the fastest of three times,
// about 30 ms in all.
double measure_read_gbytes();

// ---- report_data.cc, report_command.cc: a plan as data, as a page, as a graph and as a table

struct ReportOptions {
  std::string plan;
  SessionOptions session;
  uint32_t runs = 30;               // that are measured; 0: times are estimated
  std::vector<std::string> inputs;  // files; none: random ones
  std::string mean, std;            // of pictures among them
};

// The plan with the time of its steps: measured, or estimated where it is not run. Failure.
nlohmann::ordered_json report_data(const PlanFile& plan, const ReportOptions& options);

// A page that holds the data and loads nothing.
std::string report_html(const nlohmann::ordered_json& data);
// The steps and the tensors between them, for Graphviz.
std::string report_dot(const nlohmann::ordered_json& data);
// A line for each step.
std::string report_csv(const nlohmann::ordered_json& data);

// ---- bench_steps.cc: the trace of `qplan bench`

// One lane for each worker, one span for each run, for Perfetto. Watches runs, steps and the tasks of the
// thread pool. Each span costs two readings of the clock.
class BenchTrace {
 public:
  // Before the session is made: both must outlive it.
  void attach(qplan_platform& platform, SessionOptions& options);
  void clear();
  void add_run(uint64_t begin_ns, uint64_t end_ns) { runs_.push_back({"", 0, begin_ns, end_ns}); }
  // Complete events of the Trace Event Format, as one JSON object.
  [[nodiscard]] std::string text() const;

 private:
  struct Span {
    std::string name;
    uint32_t step;
    uint64_t begin_ns;
    uint64_t end_ns;
  };
  struct Step {
    std::string name, op, kernel;
    uint64_t macs = 0;
  };
  struct Task;  // of the pool, with the one that it wraps

  static void on_begin(void* user, const qplan_event* event);
  static void on_end(void* user, const qplan_event* event, qplan_status status);
  static void parallel_for(void* user, uint32_t count,
                           void (*task)(void* context, uint32_t index, uint32_t worker), void* context);
  static void run_task(void* context, uint32_t index, uint32_t worker);
  const qplan_thread_pool* wrap(const qplan_thread_pool* pool);

  qplan_platform before_{};
  const qplan_thread_pool* pool_ = nullptr;
  qplan_thread_pool own_pool_{};
  uint32_t step_ = 0;          // that runs
  bool uses_workers_ = false;  // it was divided into tasks
  uint64_t step_begin_ns_ = 0;
  std::vector<Step> steps_;  // by position in the plan
  std::vector<Span> runs_, step_spans_;
  std::vector<std::vector<Span>> workers_;  // a worker writes its own list alone
};

// ---- tune.cc: the log of what `qplan tune` measured, and --calibrate

// The file that `qplan tune` appends to. docs/schedules.md has the format of its lines.
class TuningLog {
 public:
  // The file is made with the first line. Failure where it is there and cannot be appended to.
  explicit TuningLog(std::string path);
  ~TuningLog();
  TuningLog(const TuningLog&) = delete;
  TuningLog& operator=(const TuningLog&) = delete;

  // The previous lines of a regular file, except those that are not JSON objects.
  [[nodiscard]] std::vector<nlohmann::json> lines() const;

  // Whole lines, each with its line feed, which other processes may append to the same file. Failure with the
  // system's reason; the file may then end within a line, which lines() passes over.
  void append(const std::string& lines);

 private:
  [[noreturn]] void fail(int reason) const;

  std::string path_;
  int fd_ = -1;
};

// qplan tune --calibrate: what this machine takes for work of each kind, as a target file. docs/placement.md.

struct CalibrateOptions {
  ModelOptions model;
  PlacementOptions placement;
  SessionOptions session;
  std::vector<std::string> more;  // plans and models beside the model
  std::string file;
  double budget_s = 20;
};

// Measures the steps, prints how near the estimates come, writes the file. UsageError, Failure.
void calibrate(const CalibrateOptions& options);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_REPORTS_H_
