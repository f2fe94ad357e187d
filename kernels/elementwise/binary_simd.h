// Two broadcast tensors of 8 bits by vectors: element by element, or by whole vectors of bytes. Internal
// linkage only.
#ifndef QPLAN_KERNELS_ELEMENTWISE_BINARY_SIMD_H_
#define QPLAN_KERNELS_ELEMENTWISE_BINARY_SIMD_H_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// The first count elements; step 0 repeats the first one.
inline VecI32 load_elements(const uint8_t* from, uint64_t step, uint32_t count, Dtype dtype) {
  return widen(step == 0 ? set_lane_bytes(*from) : load_bytes(from, count), dtype);
}

// F32E: what quantised values stand for.
inline VecF32 dequantize(VecI32 v, VecI32 zero_point, VecF32 scale) {
  return mul(to_reals(sub(v, zero_point)), scale);
}

// Calls compute(a, b), which returns kLanes output bytes, over the work items [begin, end) of a
// broadcast operation.
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
                             const VecI32 va = load_elements(a + a_at + i * a_step, a_step, now, args.dtype);
                             const VecI32 vb = load_elements(b + b_at + i * b_step, b_step, now, args.dtype);
                             store_bytes(output + out + i, compute(va, vb), now);
                           }
                         });
}

// The next count (1 .. kBytes) outputs and what they are made of; an operand with step 0 is one byte.
struct VectorPair {
  const uint8_t* a;
  const uint8_t* b;
  uint64_t a_step, b_step;
  uint8_t* output;
  uint32_t count;
};

inline VecI32 load_repeated(const uint8_t* from, uint64_t step, uint32_t count) {
  return step == 0 ? set_bytes(*from) : load_vector(from, count);
}

// Calls compute(pair) over the work items [begin, end) of a broadcast operation.
template <typename Args, typename Compute>
inline void for_each_vector_pair(const Args& args, uint32_t begin, uint32_t end, const Compute& compute) {
  const uint8_t* a = static_cast<const uint8_t*>(args.a);
  const uint8_t* b = static_cast<const uint8_t*>(args.b);
  uint8_t* output = static_cast<uint8_t*>(args.output);
  const uint32_t last = args.broadcast.rank - 1;
  const uint64_t a_step = args.broadcast.a_strides[last], b_step = args.broadcast.b_strides[last];
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  for_each_broadcast_run(args.broadcast, range.begin, range.end,
                         [&](uint64_t out, uint64_t a_at, uint64_t b_at, uint64_t count) {
                           // Copies, which outputs, as bytes, cannot change.
                           const Compute own_compute = compute;
                           const uint64_t own_a_step = a_step, own_b_step = b_step;
                           VectorPair pair = {a + a_at, b + b_at, own_a_step, own_b_step, output + out, 0};
                           for (; count != 0; count -= pair.count) {
                             pair.count = count < kBytes ? static_cast<uint32_t>(count) : kBytes;
                             own_compute(pair);
                             pair.a += kBytes * own_a_step;
                             pair.b += kBytes * own_b_step;
                             pair.output += kBytes;
                           }
                         });
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_ELEMENTWISE_BINARY_SIMD_H_
