// The glue's part of broadcasting: from the shapes of a step's two inputs and its output.
#ifndef QPLAN_SRC_RUNTIME_BIND_BROADCAST_H_
#define QPLAN_SRC_RUNTIME_BIND_BROADCAST_H_

#include "kernels/elementwise/broadcast.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {

// Whether `output` is the shape that a and b broadcast to; if so, fills *broadcast.
[[nodiscard]] bool make_broadcast(const Shape& a, const Shape& b, const Shape& output, Broadcast* broadcast);

// For KernelFamily::in_place of families with two inputs: the input has the output's shape and element size,
// so that each element is read only for the output element in its place.
bool binary_in_place(const StepView& step, uint32_t output, uint32_t input);

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_BIND_BROADCAST_H_
