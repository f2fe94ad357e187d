// arg_max of bytes along the last axis, a vector at a time: the largest byte of a row first, then where it
// stands first.
#include <stddef.h>
#include <stdint.h>

#include "kernels/arg_max/arg_max.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// Bytes are seen as uint8: `sign_bias` is 0x80 for int8.

// kIsWhole: a whole vector may be read, otherwise no more than the row.
template <bool kIsWhole>
inline uint32_t arg_max_of_vector(const uint8_t* row, uint32_t extent, VecI32 sign_biases) {
  const VecI32 bytes = kIsWhole ? load_ints(row) : load_vector(row, extent);
  const VecI32 all = first_bytes(bit_xor(bytes, sign_biases), extent);
  return first_equal(all, largest_in_all(all));
}

inline uint32_t arg_max_of_row(const uint8_t* row, uint32_t extent, VecI32 sign_biases) {
  const auto load = [&](uint32_t at) { return bit_xor(load_ints(row + at), sign_biases); };
  VecI32 most = load(0);
  uint32_t k = kBytes;
  for (; k + kBytes <= extent; k += kBytes) most = max_bytes(most, load(k));
  const VecI32 largest = largest_in_all(max_bytes(most, load(extent - kBytes)));
  for (k = 0; k + kBytes <= extent; k += kBytes) {
    const uint32_t at = first_equal(load(k), largest);
    if (at < kBytes) return k + at;
  }
  return extent - kBytes + first_equal(load(extent - kBytes), largest);
}

template <typename Index>
inline void arg_max_rows(const ArgMaxArgs& args, ElementRange range) {
  const uint32_t extent = args.extent;
  const uint8_t* row = static_cast<const uint8_t*>(args.input) + range.begin * extent;
  Index* output = static_cast<Index*>(args.output);
  const VecI32 sign_biases = set_bytes(args.input_dtype == Dtype::kS8 ? 128 : 0);
  uint64_t at = range.begin;
  if (extent > kBytes) {
    for (; at < range.end; ++at, row += extent) {
      output[at] = static_cast<Index>(arg_max_of_row(row, extent, sign_biases));
    }
    return;
  }
  // The last rows of the input have no vector after their beginning.
  const uint64_t last = kBytes / extent + 1;
  const uint64_t whole = args.outer > last ? args.outer - last : 0;
  for (; at < range.end && at < whole; ++at, row += extent) {
    output[at] = static_cast<Index>(arg_max_of_vector<true>(row, extent, sign_biases));
  }
  for (; at < range.end; ++at, row += extent) {
    output[at] = static_cast<Index>(arg_max_of_vector<false>(row, extent, sign_biases));
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(arg_max) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const ArgMaxArgs& args) {
  if (args.inner != 1) return Refusal::kAxes;
  // Short rows take half as long with vectors of 32 bytes: half the work of a longer vector would be for
  // nothing. Many of them are for arg_max_short.
  if (kBytes > 32 && args.extent <= 32) return Refusal::kTooSmall;
  return args.input_dtype == Dtype::kU8 || args.input_dtype == Dtype::kS8 ? Refusal::kNone : Refusal::kDtype;
}

size_t scratch_bytes(const ArgMaxArgs&) { return 0; }

uint32_t work_items(const ArgMaxArgs& args) { return num_chunks(args.outer); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const ArgMaxArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.outer, begin, end);
  if (args.output_dtype == Dtype::kS32) {
    arg_max_rows<int32_t>(args, range);
  } else {
    arg_max_rows<int64_t>(args, range);
  }
}
#endif

}  // QPLAN_SIMD_NAMESPACE(arg_max)

}  // namespace qplan
