// A steady clock for qplan_platform.now_ns.
#include <chrono>

#include "qplan/host.h"

uint64_t qplan_host_now_ns(void*) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}
