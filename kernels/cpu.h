// Which instruction sets this machine has. QPLAN_ISA_* values are grouped by architecture and ordered within it: a
// machine that has one has all lower ones of its architecture. CPUID is slow in virtual machines: ask once per session.
#ifndef QPLAN_KERNELS_CPU_H_
#define QPLAN_KERNELS_CPU_H_

#include <stdint.h>

namespace qplan {

// Whether the processor, its operating system and this build can run kernels of that QPLAN_ISA_*.
bool cpu_has_isa(uint32_t isa);
// The highest that cpu_has_isa; QPLAN_ISA_REFERENCE at least.
uint32_t cpu_best_isa();

}  // namespace qplan

#endif  // QPLAN_KERNELS_CPU_H_
