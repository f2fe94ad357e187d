#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "qplan/host.h"
#include "qplan/qplan.h"
#include "tools/reports.h"

namespace qplan::tools {

uint32_t usable_cpus() {
  static const uint32_t at_first = [] {
    cpu_set_t cpus;
    // cpu_set_t holds 1,024 processors; on larger machines all that are online count.
    const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
    const long usable = ::sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : online;
    return static_cast<uint32_t>(std::max(usable, 1L));
  }();
  return at_first;
}

MachineLoad machine_load() {
  MachineLoad load;
  if (::getloadavg(&load.average, 1) != 1) load.average = 0;
  load.cpus = usable_cpus();
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

namespace {

#if defined(__x86_64__)
// Twelve sums that do not wait for each other: more than latency times throughput of any of these
// instructions. The values in the registers do not matter, because integers take the same time for all
// values.
constexpr uint64_t kSumsPerRound = 12;
#define QPLAN_PEAK_LOOP(sum)                                                                           \
  asm volatile("1:\n.irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11\n" sum "\n.endr\ndec %0\njnz 1b\n"    \
               : "+r"(rounds)                                                                          \
               :                                                                                       \
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                 "xmm10", "xmm11", "xmm12")

void avx512vnni_rounds(uint64_t rounds) {
  QPLAN_PEAK_LOOP("vpdpbusd %%zmm14, %%zmm15, %%zmm\\i");
  asm volatile("vzeroupper");
}
void avxvnni_rounds(uint64_t rounds) {
  QPLAN_PEAK_LOOP("%{vex%} vpdpbusd %%ymm14, %%ymm15, %%ymm\\i");
  asm volatile("vzeroupper");
}
void avx2_rounds(uint64_t rounds) {
  QPLAN_PEAK_LOOP("vpmaddwd %%ymm14, %%ymm15, %%ymm12\nvpaddd %%ymm12, %%ymm\\i, %%ymm\\i");
  asm volatile("vzeroupper");
}
void sse41_rounds(uint64_t rounds) {
  QPLAN_PEAK_LOOP("movdqa %%xmm15, %%xmm12\npmaddwd %%xmm14, %%xmm12\npaddd %%xmm12, %%xmm\\i");
}

struct PeakLoop {
  uint32_t isa;
  uint64_t macs_per_sum;
  void (*run)(uint64_t rounds);
};
constexpr PeakLoop kLoops[] = {{QPLAN_ISA_AVX512VNNI, 64, avx512vnni_rounds},
                               {QPLAN_ISA_AVXVNNI, 32, avxvnni_rounds},
                               {QPLAN_ISA_AVX2, 16, avx2_rounds},
                               {QPLAN_ISA_SSE41, 8, sse41_rounds}};
#endif

}  // namespace

double measure_peak_gmacs(uint32_t isa) {
#if defined(__x86_64__)
  constexpr uint64_t kRounds = 20'000;
  constexpr int kMeasurements = 100;
  for (const PeakLoop& loop : kLoops) {
    if (loop.isa != isa || qplan_isa_available(isa) == 0) continue;
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < kMeasurements; ++i) {
      const uint64_t begin = qplan_host_now_ns(nullptr);
      loop.run(kRounds);
      best_ns = std::min(best_ns, qplan_host_now_ns(nullptr) - begin);
    }
    const double macs = static_cast<double>(kRounds * kSumsPerRound * loop.macs_per_sum);
    return macs / static_cast<double>(std::max<uint64_t>(best_ns, 1));
  }
#endif
  static_cast<void>(isa);
  return 0;
}

double measure_read_gbytes() {
  constexpr size_t kWords = size_t{64} << 17;  // of 8 bytes
  const std::vector<uint64_t> words(kWords, 1);
  uint64_t best_ns = UINT64_MAX;
  for (int i = 0; i < 3; ++i) {
    const uint64_t begin = qplan_host_now_ns(nullptr);
    uint64_t sums[4] = {};  // that do not wait for each other
    for (size_t k = 0; k < kWords; k += 4) {
      for (size_t s = 0; s < 4; ++s) sums[s] += words[k + s];
    }
    const uint64_t ns = qplan_host_now_ns(nullptr) - begin;
    // A use of the sums, which the compiler would leave out else.
    if (sums[0] + sums[1] + sums[2] + sums[3] == kWords) best_ns = std::min(best_ns, ns);
  }
  return static_cast<double>(kWords * sizeof(uint64_t)) / static_cast<double>(std::max<uint64_t>(best_ns, 1));
}

}  // namespace qplan::tools
