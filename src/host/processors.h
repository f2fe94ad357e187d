// The processors of this machine, by their numbers in Linux.
#ifndef QPLAN_SRC_HOST_PROCESSORS_H_
#define QPLAN_SRC_HOST_PROCESSORS_H_

#include <pthread.h>

#include <cstdint>
#include <string>
#include <vector>

namespace qplan::host {

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

}  // namespace qplan::host

#endif  // QPLAN_SRC_HOST_PROCESSORS_H_
