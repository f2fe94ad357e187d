// What reductions share: where the elements along a set of axes are. Internal linkage only: ISA files include
// this.
#ifndef QPLAN_KERNELS_NUMERIC_AXES_H_
#define QPLAN_KERNELS_NUMERIC_AXES_H_

#include <stdint.h>

namespace qplan {

// The offset of element number `index`, counted along axes of these extents and strides, outermost first.
static inline uint64_t strided_offset(uint64_t index, uint32_t rank, const uint64_t* extents,
                                      const uint64_t* strides) {
  uint64_t offset = 0;
  for (uint32_t axis = rank; axis-- > 0;) {
    offset += index % extents[axis] * strides[axis];
    index /= extents[axis];
  }
  return offset;
}

// visit(element) for the elements that become one, in the order of the tensor; the first is *input.
template <typename T, typename Args, typename Visit>
static inline void for_each_reduced(const Args& args, const T* input, const Visit& visit) {
  const bool one = args.reduced_rank == 0;
  const uint64_t run = one ? 1 : args.reduced_extents[args.reduced_rank - 1];
  const uint64_t stride = one ? 0 : args.reduced_strides[args.reduced_rank - 1];
  for (uint64_t i = 0; i < args.num_reduced; i += run) {
    const T* at = input + strided_offset(i, args.reduced_rank, args.reduced_extents, args.reduced_strides);
    for (uint64_t k = 0; k < run; ++k) visit(at[k * stride]);
  }
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_AXES_H_
