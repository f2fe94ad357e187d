// Element by element of two broadcast tensors of 8 bits. An ISA file includes its
// kernels/numeric/lanes_<isa>.inl before this one, which gives the names used here their meaning. Internal
// linkage only.
#ifndef QPLAN_KERNELS_ELEMENTWISE_BINARY_LANES_INL_
#define QPLAN_KERNELS_ELEMENTWISE_BINARY_LANES_INL_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/chunks.h"

namespace qplan {
namespace {

// The first count elements; step 0 repeats the first one.
inline Ints load_elements(const uint8_t* from, uint64_t step, uint32_t count, Dtype dtype) {
  return widen(step == 0 ? _mm_set1_epi8(static_cast<char>(*from)) : load_bytes(from, count), dtype);
}

// F32E: what quantised values stand for.
inline Reals dequantize(Ints v, Ints zero_point, Reals scale) {
  return mul(to_reals(sub(v, zero_point)), scale);
}

// Calls compute(a, b), which returns kLanes output bytes, over the work units [begin, end) of a broadcast
// operation.
template <typename Args, typename Compute>
inline void for_each_pair(const Args& args, uint32_t begin, uint32_t end, const Compute& compute) {
  const uint8_t* a = static_cast<const uint8_t*>(args.a);
  const uint8_t* b = static_cast<const uint8_t*>(args.b);
  uint8_t* output = static_cast<uint8_t*>(args.output);
  const uint32_t last = args.broadcast.rank - 1;
  const uint64_t a_step = args.broadcast.a_strides[last], b_step = args.broadcast.b_strides[last];
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  for_each_broadcast_run(args.broadcast, range.begin, range.end,
                         [&](uint64_t out, uint64_t a_at, uint64_t b_at, uint64_t count) {
                           for (uint64_t i = 0; i < count; i += kLanes) {
                             const uint32_t now =
                                 count - i < kLanes ? static_cast<uint32_t>(count - i) : kLanes;
                             const Ints va = load_elements(a + a_at + i * a_step, a_step, now, args.dtype);
                             const Ints vb = load_elements(b + b_at + i * b_step, b_step, now, args.dtype);
                             store_bytes(output + out + i, compute(va, vb), now);
                           }
                         });
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_ELEMENTWISE_BINARY_LANES_INL_
