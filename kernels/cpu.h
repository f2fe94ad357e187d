// Which instruction sets this machine has, of those that kernels/isa.def lists. CPUID is slow in virtual
// machines: ask once per session.
#ifndef QPLAN_KERNELS_CPU_H_
#define QPLAN_KERNELS_CPU_H_

#include <stdint.h>

namespace qplan {

// Whether the processor, its operating system and this build can run kernels of that QPLAN_ISA_*.
bool cpu_has_isa(uint32_t isa);
// The best that cpu_has_isa; QPLAN_ISA_REFERENCE at least.
uint32_t cpu_best_isa();
// The architecture that this build is for, in the words of a target's "arch": "x86_64", "cortex-m",
// "aarch64", "riscv64"; others that no target is for, as "arm"; "unknown".
const char* cpu_arch();
// Whether its kernels have vectors: isa.def says so.
bool isa_has_vectors(uint32_t isa);
// Whether a kernel of `isa` may run on every machine that has `limit`: by the bases of isa.def, and by its
// number where there is no such limit.
bool isa_within(uint32_t isa, uint32_t limit);

}  // namespace qplan

#endif  // QPLAN_KERNELS_CPU_H_
