// The multiply-accumulates that this machine can do at most: the roof over a kernel's rate.
#ifndef TOOLS_PEAK_H_
#define TOOLS_PEAK_H_

#include <cstdint>

namespace qplan::tools {

// GMAC/s of one thread that multiplies 8-bit numbers out of registers and sums them exactly in int32, by the
// best instructions of a QPLAN_ISA_* that this machine has: VPDPBUSD, or PMADDWD and PADDD. The fastest of
// several measurements, about 10 ms in all. 0 for an instruction set that has no such loop here.
double measure_peak_gmacs(uint32_t isa);

}  // namespace qplan::tools

#endif  // TOOLS_PEAK_H_
