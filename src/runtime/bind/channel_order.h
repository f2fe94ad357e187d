// Conversions that also move the channels of images: the shapes of their tensors say so.
#ifndef QPLAN_SRC_RUNTIME_BIND_CHANNEL_ORDER_H_
#define QPLAN_SRC_RUNTIME_BIND_CHANNEL_ORDER_H_

#include "src/runtime/bind/step_check.h"

namespace qplan {

// Whether `last` is `planes`, [n,c,...], with the channels last, [n,...,c]. Equal shapes move nothing.
inline bool moves_channels(const Shape& planes, const Shape& last) {
  if (planes.rank < 3 || planes.rank != last.rank || planes == last) return false;
  bool moves = planes[0] == last[0] && planes[1] == last[planes.rank - 1];
  for (uint32_t i = 2; i < planes.rank; ++i) moves = moves && planes[i] == last[i - 1];
  return moves;
}

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_BIND_CHANNEL_ORDER_H_
