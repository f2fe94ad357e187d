#include "tools/peak.h"

#include <algorithm>

#include "qplan/host.h"
#include "qplan/qplan.h"

namespace qplan::tools {
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

}  // namespace qplan::tools
