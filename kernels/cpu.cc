#include "kernels/cpu.h"

#include "qplan/qplan.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace qplan {
namespace {

#if defined(__x86_64__)
// CPUID is asked directly: __builtin_cpu_supports would need a symbol of the compiler's library.
struct X86Features {
  bool sse41 = false;
  bool avx2 = false;
  bool avxvnni = false;
  bool avx512vnni = false;
};

X86Features x86_features() {
  X86Features features;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(1, 0, &a, &b, &c, &d)) return features;
  const bool osxsave = (c >> 27) & 1, fma = (c >> 12) & 1;
  features.sse41 = ((c >> 19) & 1) && ((c >> 9) & 1);  // and SSSE3
  if (!osxsave) return features;
  uint32_t xcr0 = 0, xcr0_high = 0;
  __asm__("xgetbv" : "=a"(xcr0), "=d"(xcr0_high) : "c"(0));
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return features;
  const bool ymm = (xcr0 & 0x6) == 0x6, zmm = (xcr0 & 0xe6) == 0xe6;
  features.avx2 = ymm && fma && ((b >> 5) & 1);
  const bool f = (b >> 16) & 1, dq = (b >> 17) & 1, bw = (b >> 30) & 1, vl = (b >> 31) & 1,
             vnni = (c >> 11) & 1;
  features.avx512vnni = features.avx2 && zmm && f && dq && bw && vl && vnni;
  if (features.avx2 && a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) features.avxvnni = (a >> 4) & 1;
  return features;
}
#endif

}  // namespace

bool cpu_has_isa(uint32_t isa) {
  if (isa == QPLAN_ISA_AUTO || isa == QPLAN_ISA_REFERENCE) return true;
#if defined(__x86_64__)
#if defined(QPLAN_HAVE_SSE41)
  if (isa == QPLAN_ISA_SSE41) return x86_features().sse41;
#endif
#if defined(QPLAN_HAVE_AVX2)
  if (isa == QPLAN_ISA_AVX2) return x86_features().avx2;
#endif
#if defined(QPLAN_HAVE_AVXVNNI)
  if (isa == QPLAN_ISA_AVXVNNI) return x86_features().avxvnni;
#endif
#if defined(QPLAN_HAVE_AVX512VNNI)
  if (isa == QPLAN_ISA_AVX512VNNI) return x86_features().avx512vnni;
#endif
#endif
  return false;
}

uint32_t cpu_best_isa() {
  constexpr uint32_t kBestFirst[] = {QPLAN_ISA_AVX512VNNI, QPLAN_ISA_AVXVNNI, QPLAN_ISA_AVX2,
                                     QPLAN_ISA_SSE41};
  for (const uint32_t isa : kBestFirst) {
    if (cpu_has_isa(isa)) return isa;
  }
  return QPLAN_ISA_REFERENCE;
}

const char* cpu_arch() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
  return "cortex-m";
#elif defined(__aarch64__)
  return "aarch64";
#elif defined(__arm__)
  return "arm";
#elif defined(__riscv) && __riscv_xlen == 64
  return "riscv64";
#elif defined(__riscv)
  return "riscv32";
#elif defined(__i386__)
  return "i386";
#else
  return "unknown";
#endif
}

bool isa_within(uint32_t isa, uint32_t limit) {
  if (isa == QPLAN_ISA_AVXVNNI && limit == QPLAN_ISA_AVX512VNNI) return false;
  return isa <= limit;
}

}  // namespace qplan
