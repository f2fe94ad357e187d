// How fast one thread reads memory.
#ifndef QPLAN_BENCHMARKS_MODELS_BANDWIDTH_H_
#define QPLAN_BENCHMARKS_MODELS_BANDWIDTH_H_

#include <cstddef>

namespace qplan::benchmarks {

// GB/s at which one thread reads a buffer of so many bytes over and over: of the cache that holds it, or of
// memory. The fastest of many readings.
double measure_read_gb_per_s(size_t bytes);

}  // namespace qplan::benchmarks

#endif  // QPLAN_BENCHMARKS_MODELS_BANDWIDTH_H_
