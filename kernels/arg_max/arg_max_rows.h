// arg_max of bytes along the last axis: the largest byte of a row first, then where it stands first. Internal
// linkage only.
#ifndef QPLAN_KERNELS_ARG_MAX_ARG_MAX_ROWS_H_
#define QPLAN_KERNELS_ARG_MAX_ARG_MAX_ROWS_H_

#include <stdint.h>

#include "kernels/arg_max/arg_max.h"
#include "kernels/elementwise/chunks.h"

namespace qplan {
namespace {

inline Refusal rows_accept(const ArgMaxArgs& args) {
  if (args.inner != 1) return Refusal::kAxes;
  return args.input_dtype == Dtype::kU8 || args.input_dtype == Dtype::kS8 ? Refusal::kNone : Refusal::kDtype;
}

// Lanes: kBytes bytes at a time as uint8, int8 lifted by `flip`.
//   load(from, flip), load_some(from, count, flip)     behind count: 0
//   max(a, b), largest(v)                              lane by lane, and of all lanes
//   first_of(v, largest)                               the first lane that holds it, or kBytes
template <typename Lanes>
inline uint32_t arg_max_of_row(const uint8_t* row, uint32_t extent, uint64_t readable, uint8_t flip) {
  constexpr uint32_t kBytes = Lanes::kBytes;
  if (extent <= kBytes) {
    const auto all = Lanes::load_some(row, extent, readable, flip);
    return Lanes::first_of(all, Lanes::largest(all));
  }
  auto most = Lanes::load(row, flip);
  uint32_t k = kBytes;
  for (; k + kBytes <= extent; k += kBytes) most = Lanes::max(most, Lanes::load(row + k, flip));
  most = Lanes::max(most, Lanes::load(row + extent - kBytes, flip));
  const auto largest = Lanes::largest(most);
  for (k = 0; k + kBytes <= extent; k += kBytes) {
    const uint32_t at = Lanes::first_of(Lanes::load(row + k, flip), largest);
    if (at < kBytes) return k + at;
  }
  return extent - kBytes + Lanes::first_of(Lanes::load(row + extent - kBytes, flip), largest);
}

template <typename Lanes, typename Index>
inline void arg_max_rows(const ArgMaxArgs& args, ElementRange range) {
  const uint8_t* input = static_cast<const uint8_t*>(args.input);
  Index* output = static_cast<Index*>(args.output);
  const uint8_t flip = args.input_dtype == Dtype::kS8 ? 128 : 0;
  for (uint64_t at = range.begin; at < range.end; ++at) {
    output[at] = static_cast<Index>(
        arg_max_of_row<Lanes>(input + at * args.extent, args.extent, (args.outer - at) * args.extent, flip));
  }
}

template <typename Lanes>
inline void run_rows(const ArgMaxArgs& args, uint32_t begin, uint32_t end) {
  const ElementRange range = chunk_range(args.outer, begin, end);
  if (args.output_dtype == Dtype::kS32) {
    arg_max_rows<Lanes, int32_t>(args, range);
  } else {
    arg_max_rows<Lanes, int64_t>(args, range);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_ARG_MAX_ARG_MAX_ROWS_H_
