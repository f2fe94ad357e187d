// What kernels rely on in packed weights.
#include "kernels/layout.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

// Which of four inputs a byte of a group of o2h4 belongs to.
uint64_t half_place(uint64_t at) {
  constexpr uint64_t kOrder[] = {0, 2, 1, 3};
  return kOrder[at / 2];
}

}  // namespace

// Not inlined, so that its stack is free where checked steps are bound.
__attribute__((noinline)) bool StepCheck::zeros_after_taps(uint32_t i, uint16_t layout,
                                                           const LayoutWindow& window) const {
  const LayoutTaps taps = layout_taps(layout, window);
  const uint64_t group = taps.group, tail = taps.bytes & (group - 1);  // these are powers of two
  if (!layout_needs_zeros(layout) || tail == 0) return true;
  const auto* weights = static_cast<const int8_t*>(step_.input_data(i));
  const uint64_t block = layout_block(layout) * group;
  const uint64_t tap_bytes = taps.padded() * layout_block(layout), bytes = step_.input(i).size_bytes;
  for (uint64_t last = tap_bytes - block; last < bytes; last += tap_bytes) {
    for (uint64_t at = last; at < last + block; ++at) {
      const uint64_t in_group = layout == kLayout_o2h4 ? half_place(at & (block - 1)) : at & (group - 1);
      if (in_group < tail || weights[at] == 0) continue;
      return fail_input(i, "weights") << "in " << layout_name(layout) << " have " << int32_t{weights[at]}
                                      << " at byte " << at << ", after a tap, expected 0";
    }
  }
  return true;
}

}  // namespace qplan
