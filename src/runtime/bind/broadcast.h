// Shapes seen from some of their axes, and shapes that broadcast.
#ifndef QPLAN_SRC_RUNTIME_BIND_BROADCAST_H_
#define QPLAN_SRC_RUNTIME_BIND_BROADCAST_H_

#include "kernels/elementwise/broadcast.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {

// The product of the extents before the axis.
template <typename AnyShape>
inline uint64_t axis_rows(const AnyShape& shape, uint32_t axis) {
  uint64_t rows = 1;
  for (uint32_t i = 0; i < axis; ++i) rows *= shape[i];
  return rows;
}

// Whether two shapes of one rank agree in every other axis.
inline bool equal_but_for_axis(const Shape& a, const Shape& b, uint32_t axis) {
  bool equal = a.rank == b.rank;
  for (uint32_t i = 0; equal && i < a.rank; ++i) equal = i == axis || a[i] == b[i];
  return equal;
}

// Whether a set of axes (bit i: axis i) has the axis.
constexpr bool reduces(uint32_t axes, uint32_t axis) { return (axes >> axis & 1) != 0; }

// Whether output is the input's shape with 1 at each axis of the set, or without those axes.
inline bool is_reduced_shape(const Shape& input, uint32_t axes, const Shape& output) {
  const bool keeps_rank = output.rank == input.rank;
  uint32_t at = 0;
  for (uint32_t axis = 0; axis < input.rank; ++axis) {
    const bool reduced = reduces(axes, axis);
    if (reduced && !keeps_rank) continue;
    if (at >= output.rank || output[at] != (reduced ? 1 : input[axis])) return false;
    ++at;
  }
  return at == output.rank;
}

// Whether a step of float_mean or int_reduce on these dtypes is sound.
bool check_reduced(const StepCheck& check, const StepView& step, uint32_t dtypes);
// Whether a set of axes names some of the input's, and none beyond them.
bool check_axes(const StepCheck& check, uint32_t axes, const Shape& input);

// Appends an axis inside those that are there.
inline void append_axis(uint64_t extent, uint64_t stride, uint32_t* rank, uint64_t* extents,
                        uint64_t* strides) {
  if (extent == 1) return;
  if (*rank > 0 && strides[*rank - 1] == extent * stride) {
    extents[*rank - 1] *= extent;
    strides[*rank - 1] = stride;
    return;
  }
  extents[*rank] = extent;
  strides[*rank] = stride;
  ++*rank;
}

// Divides the input's axes into those of the set, over which a kernel reduces, and those that its output
// keeps.
template <typename Args>
void split_axes(const Shape& input, uint32_t axes, Args& args) {
  uint64_t stride = input.elements();
  for (uint32_t axis = 0; axis < input.rank; ++axis) {
    const uint64_t extent = input[axis];
    stride /= extent;
    if (reduces(axes, axis)) {
      args.num_reduced *= static_cast<decltype(args.num_reduced)>(extent);
      append_axis(extent, stride, &args.reduced_rank, args.reduced_extents, args.reduced_strides);
    } else {
      args.num_outputs *= extent;
      append_axis(extent, stride, &args.kept_rank, args.kept_extents, args.kept_strides);
    }
  }
}

// The glue's part of broadcasting: from the shapes of a step's two inputs and its output.

// Whether `output` is the shape that a and b broadcast to; if so, fills *broadcast, which is otherwise left
// in part.
[[nodiscard]] bool make_broadcast(const Extents& a, const Extents& b, const Extents& output,
                                  Broadcast* broadcast);
// The same of the step's first two inputs and its output.
[[nodiscard]] bool make_broadcast(const StepView& step, Broadcast* broadcast);

// For KernelFamily::in_place of families with two inputs: the input has the output's shape and element size,
// so that each element is read only for the output element in its place.
bool binary_in_place(const StepView& step, uint32_t output, uint32_t input);

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_BIND_BROADCAST_H_
