// The cells that windows have inside the input, along one axis.
#ifndef QPLAN_SRC_VTA_COMPILER_WINDOW_SPANS_H_
#define QPLAN_SRC_VTA_COMPILER_WINDOW_SPANS_H_

#include <cstdint>
#include <vector>

#include "src/vta/compiler/layer.h"

namespace qplan::target::vta {

// Neighbouring positions of the output whose windows have equally many cells.
struct WindowSpan {
  int64_t begin = 0, end = 0;
  int64_t cells = 0;
};
// Of output positions [begin, end), in order.
std::vector<WindowSpan> window_spans_h(const Geometry& geometry, int64_t begin, int64_t end);
std::vector<WindowSpan> window_spans_w(const Geometry& geometry, int64_t begin, int64_t end);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_WINDOW_SPANS_H_
