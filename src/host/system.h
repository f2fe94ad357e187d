// What thread pools ask of the system: which processors there are, and whether this process came out of
// fork() after the pool was made.
#ifndef QPLAN_SRC_HOST_SYSTEM_H_
#define QPLAN_SRC_HOST_SYSTEM_H_

#include <pthread.h>

#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace qplan::host

#endif  // QPLAN_SRC_HOST_SYSTEM_H_
