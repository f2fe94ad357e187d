// What reference kernels of two inputs share: each element of the output is a function of the two elements
// that broadcasting puts together.
#ifndef QPLAN_KERNELS_ELEMENTWISE_BINARY_REF_H_
#define QPLAN_KERNELS_ELEMENTWISE_BINARY_REF_H_

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/dtype.h"

namespace qplan {

template <typename In, typename Out, typename Combine>
static void combine_elements(const Broadcast& broadcast, ElementRange range, const In* a, const In* b,
                             Out* output, const Combine& combine) {
  const uint32_t last = broadcast.rank - 1;
  const uint64_t a_step = broadcast.a_strides[last], b_step = broadcast.b_strides[last];
  for_each_broadcast_run(
      broadcast, range.begin, range.end, [&](uint64_t out, uint64_t a_at, uint64_t b_at, uint64_t count) {
        for (uint64_t i = 0; i < count; ++i)
          output[out + i] = static_cast<Out>(combine(a[a_at + i * a_step], b[b_at + i * b_step]));
      });
}

template <typename T, typename Args, typename Combine>
static void combine_as(const Args& args, ElementRange range, const Combine& combine) {
  combine_elements(args.broadcast, range, static_cast<const T*>(args.a), static_cast<const T*>(args.b),
                   static_cast<T*>(args.output), combine);
}

// Inputs and output have one dtype, of 8 bits or int16.
template <typename Args, typename Combine>
static void combine_quantized(const Args& args, ElementRange range, const Combine& combine) {
  if (args.dtype == Dtype::kU8) {
    combine_as<uint8_t>(args, range, combine);
  } else if (args.dtype == Dtype::kS16) {
    combine_as<int16_t>(args, range, combine);
  } else {
    combine_as<int8_t>(args, range, combine);
  }
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_ELEMENTWISE_BINARY_REF_H_
