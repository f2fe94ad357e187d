// Hooks of qplan_platform on this system: a steady clock, and a log sink: standard error, or spdlog in builds
// that ask for it.
#if defined(QPLAN_WITH_SPDLOG)
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>
#endif

#include <chrono>
#include <cstdio>
#include <memory>

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
