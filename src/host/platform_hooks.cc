// Hooks of qplan_platform on this system: a steady clock, a log sink (standard error, or spdlog in builds
// that ask for it), and how long each step took.
#if defined(QPLAN_WITH_SPDLOG)
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "qplan/host.h"

// A steady clock for qplan_platform.now_ns.
uint64_t qplan_host_now_ns(void*) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

#if !defined(QPLAN_WITH_SPDLOG)

// The lines of the sink below. One call writes one, so that threads do not mix theirs.
void qplan_host_log(void*, uint32_t level, const char* text) {
  if (text == nullptr || level == QPLAN_LOG_OFF) return;
  const char* name = "debug";
  if (level == QPLAN_LOG_ERROR) name = "error";
  if (level == QPLAN_LOG_WARNING) name = "warning";
  if (level == QPLAN_LOG_INFO) name = "info";
  std::fprintf(stderr, "[%s] %s\n", name, text);
}

#else

// A log sink on spdlog. The logger is built on first use and is in no registry, so that it does not clash
// with other users of spdlog in the process.
namespace {

spdlog::level::level_enum level_of(uint32_t level) {
  switch (level) {
    case QPLAN_LOG_ERROR:
      return spdlog::level::err;
    case QPLAN_LOG_WARNING:
      return spdlog::level::warn;
    case QPLAN_LOG_INFO:
      return spdlog::level::info;
    default:
      return spdlog::level::debug;
  }
}

spdlog::logger& logger() {
  // Never destroyed: texts may still come from destructors of static objects.
  static spdlog::logger* const instance = [] {
    auto* made = new spdlog::logger("qplan", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("[%l] %v");
    made->set_level(spdlog::level::debug);
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return *instance;
}

}  // namespace

void qplan_host_log(void*, uint32_t level, const char* text) {
  if (text == nullptr || level == QPLAN_LOG_OFF) return;
  try {
    logger().log(level_of(level), spdlog::string_view_t(text));
  } catch (...) {
    // A log that cannot be written is no reason to fail.
  }
}

#endif

// ---- how long each step took: sums per step, for callers that want no record of every event

struct qplan_step_times {
  std::vector<qplan_step_time> steps;  // by position in the plan
  uint64_t begin_ns = 0;               // of the step that runs
  bool is_attached = false;
  qplan_platform before = {};  // whose functions are called as before
};

namespace {

void begin_timing(void* user, const qplan_event* event) {
  auto* times = static_cast<qplan_step_times*>(user);
  if (times->before.step_begin != nullptr) times->before.step_begin(times->before.user, event);
  times->begin_ns = qplan_host_now_ns(nullptr);  // last, so that our own work is not the step's
}

void end_timing(void* user, const qplan_event* event, qplan_status status) {
  const uint64_t end_ns = qplan_host_now_ns(nullptr);
  auto* times = static_cast<qplan_step_times*>(user);
  try {
    while (times->steps.size() <= event->step) {
      times->steps.push_back(
          {sizeof(qplan_step_time), static_cast<uint32_t>(times->steps.size()), 0, 0, 0, 0});
    }
    qplan_step_time& step = times->steps[event->step];
    if (status >= 0) {
      const uint64_t ns = end_ns - times->begin_ns;
      step.least_ns = step.runs == 0 ? ns : std::min(step.least_ns, ns);
      step.total_ns += ns;
      step.last_ns = ns;
      ++step.runs;
    }
  } catch (const std::bad_alloc&) {
    // The step stays without a time: runs says how many were counted.
  }
  if (times->before.step_end != nullptr) times->before.step_end(times->before.user, event, status);
}

void pass_log_on(void* user, uint32_t level, const char* text) {
  const auto* times = static_cast<const qplan_step_times*>(user);
  times->before.log(times->before.user, level, text);
}

uint64_t ask_clock(void* user) {
  const auto* times = static_cast<const qplan_step_times*>(user);
  return times->before.now_ns(times->before.user);
}

void pass_yield_on(void* user) {
  const auto* times = static_cast<const qplan_step_times*>(user);
  times->before.yield(times->before.user);
}

}  // namespace

qplan_step_times* qplan_step_times_create(void) { return new (std::nothrow) qplan_step_times; }

qplan_status qplan_step_times_attach(qplan_step_times* times, qplan_platform* platform) {
  // The struct must reach as far as what is set here.
  if (times == nullptr || platform == nullptr ||
      platform->struct_size < offsetof(qplan_platform, now_ns) + sizeof(platform->now_ns)) {
    return QPLAN_INVALID_ARGUMENT;
  }
  if (times->is_attached) return QPLAN_INVALID_STATE;
  std::memcpy(&times->before, platform, std::min<size_t>(platform->struct_size, sizeof(*platform)));
  times->is_attached = true;
  platform->user = times;
  platform->step_begin = begin_timing;
  platform->step_end = end_timing;
  platform->now_ns = times->before.now_ns != nullptr ? ask_clock : qplan_host_now_ns;
  if (platform->log != nullptr) platform->log = pass_log_on;
  // A copy from a struct that does not reach yield has none.
  if (times->before.yield != nullptr) platform->yield = pass_yield_on;
  return QPLAN_OK;
}

qplan_status qplan_step_times_read(const qplan_step_times* times, qplan_step_time* rows, uint32_t* count) {
  if (times == nullptr || count == nullptr) return QPLAN_INVALID_ARGUMENT;
  const auto all = static_cast<uint32_t>(times->steps.size());
  if (rows != nullptr) {
    for (uint32_t i = 0; i < std::min(all, *count); ++i) {
      const uint32_t size = rows[i].struct_size;
      if (size < offsetof(qplan_step_time, runs)) return QPLAN_INVALID_ARGUMENT;
      std::memcpy(&rows[i], &times->steps[i], std::min<size_t>(size, sizeof(qplan_step_time)));
      rows[i].struct_size = size;
    }
  }
  *count = all;
  return QPLAN_OK;
}

void qplan_step_times_reset(qplan_step_times* times) {
  if (times != nullptr) times->steps.clear();
}

void qplan_step_times_destroy(qplan_step_times* times) { delete times; }
