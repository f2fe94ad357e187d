// What a measurement must know of the machine: whether it had time, and what it can do at most.
#ifndef QPLAN_TOOLS_MACHINE_H_
#define QPLAN_TOOLS_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/reports.h"

namespace qplan::tools {

// Whether the machine had time for a measurement.
struct MachineLoad {
  double average = 0;  // threads that ran or waited to run, mean of the last minute
  uint32_t cpus = 1;   // that this process may use
};
// How many processors the calling thread might use when this was first called: ask before pinning it.
uint32_t usable_cpus();
// average 0 where the system does not say.
MachineLoad machine_load();

// Why the figures of a measurement may be worse than the machine's best; one sentence each, empty for a quiet
// machine. load: before the measurement, with `threads` threads. Of fewer than 10 runs the spread says
// nothing.
std::vector<std::string> load_warnings(const MachineLoad& load, uint32_t threads, const TimeSummary& times,
                                       uint64_t runs);

// The multiply-accumulates that this machine can do at most: the roof over a kernel's rate.

// GMAC/s of one thread that multiplies 8-bit numbers out of registers and sums them exactly in int32, by the
// best instructions of a QPLAN_ISA_* that this machine has: VPDPBUSD, or PMADDWD and PADDD. The fastest of
// several measurements, about 10 ms in all. 0 for an instruction set that has no such loop here.
double measure_peak_gmacs(uint32_t isa);

// GB/s with which one thread reads memory that no cache holds: 64 MB in order, the fastest of three times,
// about 30 ms in all.
double measure_read_gbytes();

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_MACHINE_H_
