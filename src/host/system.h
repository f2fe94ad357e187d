// The system: its processors and forks, which thread pools ask for, and errors with its reasons.
#ifndef QPLAN_SRC_HOST_SYSTEM_H_
#define QPLAN_SRC_HOST_SYSTEM_H_

#include <pthread.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include "qplan/qplan.h"
#include "src/base/error.h"

namespace qplan::host {

// ---- processors, by their numbers in Linux

// Numbers that a cpu_set_t of fixed size has room for.
inline constexpr uint32_t kMaxProcessors = 1024;

// Those that the calling thread may run on; hardware_concurrency also counts those that taskset and cpusets
// withhold. Never empty.
std::vector<uint32_t> allowed_processors();

// Whether some of them are of another speed than the others, as the cores of big.LITTLE are. False where the
// system does not say. folder: Linux's, whose files cpu<N>/cpu_capacity have the speeds.
bool differ_in_speed(const std::vector<uint32_t>& processors,
                     const std::string& folder = "/sys/devices/system/cpu");

// Whether the thread now runs on that processor alone.
bool pin_thread(pthread_t thread, uint32_t processor);

// ---- forks: a child has its parent's memory, but only the thread that called fork()

// Counts forks from now on; once is enough, and more do no harm. False where memory runs out.
[[nodiscard]] bool watch_forks();
// Returns the number of forks between this process and the one that started to watch. A changed number means
// that the earlier threads do not exist in this process. The call is as cheap as reading a variable; getpid()
// would ask the kernel.
[[nodiscard]] uint32_t forks_so_far();

// ---- errors: "file 'model.qplan': No such file or directory"

// Fills *error (may be null) and returns status.
inline qplan_status report(qplan_error* error, qplan_status status, const std::string& text) {
  Error record;
  record.set(status) << text.c_str();
  record.copy_to(error);
  return status;
}

// Long paths lose their beginning: the reason that follows must fit too.
inline std::string quoted_path(const std::string& path) {
  constexpr size_t kMaxBytes = 120;
  return path.size() <= kMaxBytes ? "'" + path + "'" : "'..." + path.substr(path.size() - kMaxBytes) + "'";
}

// errno_value: 0 where the reason says it all.
inline qplan_status file_error(qplan_error* error, const std::string& path, const std::string& reason,
                               int errno_value = 0) {
  std::string text = "file " + quoted_path(path) + ": " + reason;
  if (errno_value != 0) text += ": " + std::generic_category().message(errno_value);
  return report(error, QPLAN_FILE_ERROR, text);
}

}  // namespace qplan::host

#endif  // QPLAN_SRC_HOST_SYSTEM_H_
