// Which steps compute their rows in order. It is asked of the arguments alone, so that images without the
// family do not link its functions.
#ifndef QPLAN_SRC_RUNTIME_BIND_ROW_ORDER_H_
#define QPLAN_SRC_RUNTIME_BIND_ROW_ORDER_H_

#include <stdint.h>

#include "kernels/conv2d/conv2d.h"
#include "src/runtime/bind/family.h"

namespace qplan {

// Whether work items have to be computed in ascending order, none beside another: those of a convolution that
// writes over the beginning of its larger input, of which each row overwrites what rows before it read. In
// the place of an input of the same size, each pixel is made of itself alone. args: Conv2dArgs where the
// kernel is conv2d.
inline bool is_ordered(uint16_t kernel, const void* args) {
  if (kernel != kKernel_conv2d) return false;
  const auto& a = *static_cast<const Conv2dArgs*>(args);
  return a.input == a.output && a.output_h * a.output_w * a.output_c != a.input_h * a.input_w * a.input_c;
}

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_BIND_ROW_ORDER_H_
