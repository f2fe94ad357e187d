// The glue's part of broadcasting: from the shapes of a step's two inputs and its output.
#ifndef QPLAN_KERNELS_ELEMENTWISE_BROADCAST_STEP_H_
#define QPLAN_KERNELS_ELEMENTWISE_BROADCAST_STEP_H_

#include "kernels/common/step_check.h"
#include "kernels/elementwise/broadcast.h"

namespace qplan {

// Whether `output` is the shape that a and b broadcast to; if so, fills *broadcast.
[[nodiscard]] bool make_broadcast(const Shape& a, const Shape& b, const Shape& output, Broadcast* broadcast);

// For KernelFamily::in_place of families with two inputs: the input has the output's shape and element size,
// so that each element is read only for the output element in its place.
bool binary_in_place(const StepView& step, uint32_t output, uint32_t input);

}  // namespace qplan

#endif  // QPLAN_KERNELS_ELEMENTWISE_BROADCAST_STEP_H_
