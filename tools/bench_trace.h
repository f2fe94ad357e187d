// The trace of `qplan bench`: one lane for each worker, one span for each run, for Perfetto.
#ifndef QPLAN_TOOLS_BENCH_TRACE_H_
#define QPLAN_TOOLS_BENCH_TRACE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "tools/session.h"

namespace qplan::tools {

// Watches runs, steps and the tasks of the thread pool. Each span costs two readings of the clock.
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

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_BENCH_TRACE_H_
