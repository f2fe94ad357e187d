#include "tools/machine_load.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace qplan::tools {

MachineLoad machine_load() {
  MachineLoad load;
  if (::getloadavg(&load.average, 1) != 1) load.average = 0;
  cpu_set_t cpus;
  // cpu_set_t holds 1,024 processors; on larger machines all that are online count.
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  const long usable = ::sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : online;
  load.cpus = static_cast<uint32_t>(std::max(usable, 1L));
  return load;
}

std::vector<std::string> load_warnings(const MachineLoad& load, uint32_t threads, const TimeSummary& times,
                                       uint64_t runs) {
  // A machine whose other work leaves each thread a CPU of its own counts as quiet. Half a thread is what a
  // desktop's background takes.
  constexpr double kBackground = 0.5;
  // On quiet machines 90 % of the runs stay within a few percent of the median.
  constexpr double kSpread = 1.25;
  constexpr uint64_t kMinRuns = 10;
  std::vector<std::string> warnings;
  char text[200];
  if (load.average > kBackground && load.average + threads > load.cpus + kBackground) {
    std::snprintf(text, sizeof text, "the machine was busy before the runs: load average %.1f on %u %s",
                  load.average, load.cpus, load.cpus == 1 ? "CPU" : "CPUs");
    warnings.push_back(text);
  }
  const auto median = static_cast<double>(times.median_ns), p90 = static_cast<double>(times.p90_ns);
  if (runs >= kMinRuns && p90 > kSpread * median) {
    std::snprintf(text, sizeof text, "the runs spread widely: p90 is %.2f times the median",
                  p90 / std::max(median, 1.0));
    warnings.push_back(text);
  }
  return warnings;
}

}  // namespace qplan::tools
