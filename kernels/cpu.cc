#include "kernels/cpu.h"

#include <stddef.h>

#include "kernels/isas.h"
#include "qplan/qplan.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64)
// The C library's, where there is one: without it there is what every processor of the architecture has.
extern "C" unsigned long getauxval(unsigned long type) __attribute__((weak));
#endif

namespace qplan {
namespace {

// What the rows of isa.def ask of a processor, and of its operating system where there are wider registers.
#if defined(__x86_64__)
enum Feature : uint32_t {
  kSsse3 = 1 << 0,
  kSse41 = 1 << 1,
  kFma = 1 << 2,
  kYmm = 1 << 3,
  kZmm = 1 << 4,
  kAvx2 = 1 << 5,
  kAvx512 = 1 << 6,  // F, DQ, BW, VL and VNNI
  kAvxVnni = 1 << 7,
};

// CPUID is asked directly: __builtin_cpu_supports would need a symbol of the compiler's library.
uint32_t cpu_features() {
  uint32_t features = 0;
  const auto add = [&](uint32_t feature, bool has) { features |= has ? feature : 0; };
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(1, 0, &a, &b, &c, &d)) return features;
  const auto bit = [](uint32_t word, uint32_t number) { return ((word >> number) & 1) != 0; };
  add(kSsse3, bit(c, 9));
  add(kSse41, bit(c, 19));
  add(kFma, bit(c, 12));
  if (!bit(c, 27)) return features;  // OSXSAVE
  uint32_t xcr0 = 0, xcr0_high = 0;
  __asm__("xgetbv" : "=a"(xcr0), "=d"(xcr0_high) : "c"(0));
  add(kYmm, (xcr0 & 0x6) == 0x6);
  add(kZmm, (xcr0 & 0xe6) == 0xe6);
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return features;
  add(kAvx2, bit(b, 5));
  add(kAvx512, bit(b, 16) && bit(b, 17) && bit(b, 30) && bit(b, 31) && bit(c, 11));
  if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) add(kAvxVnni, bit(a, 4));
  return features;
}
#elif defined(__aarch64__)
enum Feature : uint32_t {
  kDotProd = 1 << 0,
  kI8mm = 1 << 1,
};

// Bits of AT_HWCAP and AT_HWCAP2, the words in which Linux tells programs what the processor has.
uint32_t cpu_features() {
  constexpr unsigned long kHwcap = 16, kHwcapAsimdDp = 1ul << 20, kHwcap2 = 26, kHwcap2I8mm = 1ul << 13;
  if (getauxval == nullptr) return 0;
  const uint32_t dot_product = (getauxval(kHwcap) & kHwcapAsimdDp) != 0 ? uint32_t{kDotProd} : 0;
  return dot_product | ((getauxval(kHwcap2) & kHwcap2I8mm) != 0 ? uint32_t{kI8mm} : 0);
}
#elif defined(__riscv) && __riscv_xlen == 64
enum Feature : uint32_t {
  kVector = 1 << 0,
};

// A bit of AT_HWCAP for each letter: 'V' is version 1.0 of the vector extension, with 128 bits or more.
uint32_t cpu_features() {
  constexpr unsigned long kHwcap = 16, kHwcapV = 1ul << ('V' - 'A');
  const unsigned long hwcap = getauxval != nullptr ? getauxval(kHwcap) : 0;
  return (hwcap & kHwcapV) != 0 ? uint32_t{kVector} : 0;
}
#elif defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
enum Feature : uint32_t { kDsp = 1 << 0, kMve = 1 << 1 };

// What the compiler may use: such a build is for one core.
[[maybe_unused]] uint32_t cpu_features() {
  uint32_t features = 0;
#if defined(__ARM_FEATURE_DSP)
  features |= kDsp;
#endif
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) != 0
  features |= kMve;
#endif
  return features;
}
#else
[[maybe_unused]] uint32_t cpu_features() { return 0; }
#endif

struct IsaBase {
  uint8_t isa;
  uint8_t base;
};
constexpr IsaBase kBases[] = {
#define QPLAN_ISA(arch, name, NAME, id, base, vectors, macs_per_cycle, features, flags) \
  {QPLAN_ISA_##NAME, QPLAN_ISA_##base},
#include "kernels/isa.def"
#undef QPLAN_ISA
};

#define QPLAN_ISA(arch, name, NAME, id, base, vectors, macs_per_cycle, features, flags) \
  static_assert(QPLAN_ISA_##NAME == id, "numbers of qplan.h never change");
#include "kernels/isa.def"
#undef QPLAN_ISA

}  // namespace

bool cpu_has_isa(uint32_t isa) {
  if (isa == QPLAN_ISA_AUTO || isa == QPLAN_ISA_REFERENCE) return true;
#define QPLAN_HAS_ISA(name, NAME, features, argument) \
  if (isa == QPLAN_ISA_##NAME) return (~cpu_features() & features) == 0;
  QPLAN_BUILT_ISAS(QPLAN_HAS_ISA, )
#undef QPLAN_HAS_ISA
  return false;
}

uint32_t cpu_best_isa() {
#define QPLAN_BEST_ISA(name, NAME, features, argument) \
  if (cpu_has_isa(QPLAN_ISA_##NAME)) return QPLAN_ISA_##NAME;
  QPLAN_BUILT_ISAS(QPLAN_BEST_ISA, )
#undef QPLAN_BEST_ISA
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

bool isa_has_vectors(uint32_t isa) {
  enum class Vectors { own, dot, none };
#define QPLAN_ISA(arch, name, NAME, id, base, vectors, macs_per_cycle, features, flags) \
  if (isa == QPLAN_ISA_##NAME) return Vectors::vectors != Vectors::none;
#include "kernels/isa.def"
#undef QPLAN_ISA
  return false;
}

bool isa_within(uint32_t isa, uint32_t limit) {
  for (size_t i = sizeof(kBases) / sizeof(kBases[0]); i-- > 0 && isa != limit;) {
    if (kBases[i].isa == limit) limit = kBases[i].base;
  }
  return isa <= limit;
}

}  // namespace qplan
