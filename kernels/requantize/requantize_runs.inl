// Runs of neighbouring elements whose channels are neighbours too. Shared by the ISA files; internal linkage
// only.
#ifndef QPLAN_KERNELS_REQUANTIZE_REQUANTIZE_RUNS_INL_
#define QPLAN_KERNELS_REQUANTIZE_REQUANTIZE_RUNS_INL_

#include <stddef.h>
#include <stdint.h>

#include "kernels/requantize/requantize.h"

namespace qplan {
namespace {

// What the vector variants compute: one channel, or int32 with channels along the last axis.
inline Refusal runs_accept(const RequantizeArgs& a) {
  if (a.channels == 1) return Refusal::kNone;
  if (a.input_dtype != Dtype::kS32) return Refusal::kDtype;
  return a.inner == 1 ? Refusal::kNone : Refusal::kAxes;
}

inline uint32_t runs_units(const RequantizeArgs& a) {
  return static_cast<uint32_t>((a.count + kRequantizeChunk - 1) / kRequantizeChunk);
}

// run(i, c, count): the elements from i on, of the channels from c on; of channel 0 all of them where there
// is one.
template <typename Run>
inline void for_runs(const RequantizeArgs& a, uint32_t begin, uint32_t end, Run run) {
  uint64_t i = uint64_t{begin} * kRequantizeChunk;
  const uint64_t stop = uint64_t{end} * kRequantizeChunk;
  const uint64_t last = stop < a.count ? stop : a.count;
  if (a.channels == 1) return run(i, uint32_t{0}, last - i);
  uint32_t c = static_cast<uint32_t>(i % a.channels);
  while (i < last) {
    const uint64_t left = last - i;
    const uint64_t count = left < a.channels - c ? left : a.channels - c;
    run(i, c, count);
    i += count;
    c = 0;
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_REQUANTIZE_REQUANTIZE_RUNS_INL_
