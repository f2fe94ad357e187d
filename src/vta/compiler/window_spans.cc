#include "src/vta/compiler/window_spans.h"

namespace qplan::target::vta {
namespace {

struct Axis {
  int64_t kernel, stride, dilation, pad, extent;
};

int64_t cells_at(const Axis& axis, int64_t at) {
  int64_t cells = 0;
  for (int64_t k = 0; k < axis.kernel; ++k) {
    const int64_t from = at * axis.stride - axis.pad + k * axis.dilation;
    cells += from >= 0 && from < axis.extent ? 1 : 0;
  }
  return cells;
}

std::vector<WindowSpan> spans(const Axis& axis, int64_t begin, int64_t end) {
  std::vector<WindowSpan> result;
  for (int64_t at = begin; at < end; ++at) {
    const int64_t cells = cells_at(axis, at);
    if (result.empty() || result.back().cells != cells) result.push_back({at, at, cells});
    result.back().end = at + 1;
  }
  return result;
}

}  // namespace

std::vector<WindowSpan> window_spans_h(const Geometry& g, int64_t begin, int64_t end) {
  return spans({g.window.kernel_h, g.window.stride_h, g.window.dilation_h, g.window.pad_top, g.in_h}, begin,
               end);
}

std::vector<WindowSpan> window_spans_w(const Geometry& g, int64_t begin, int64_t end) {
  return spans({g.window.kernel_w, g.window.stride_w, g.window.dilation_w, g.window.pad_left, g.in_w}, begin,
               end);
}

}  // namespace qplan::target::vta
