// What operators that move bytes say, in the axes of the image: 0 height, 1 width, 2 channels.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_MOVEMENT_H_
#define QPLAN_SRC_ETHOSU_COMPILER_MOVEMENT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/ethosu/compiler/unit.h"

namespace qplan::ethosu::compiler {

// nullopt: steps backwards, steps along the channels, or another axis than the image's.
std::optional<View> slice_view(const ir::Function& function, const ir::Node& slice);

// The positions that a take reads; nullopt: they are no list of constants, or out of range.
std::optional<std::vector<uint32_t>> taken_positions(const ir::Function& function, const ir::Node& take);
// Outputs to + i * to_step are inputs from + i * from_step, for i below count. Steps are at least 1.
struct Run {
  uint32_t from = 0, from_step = 1, to = 0, to_step = 1, count = 1;
};
std::vector<Run> runs_of(const std::vector<uint32_t>& positions);

struct AxisPad {
  uint32_t before = 0, after = 0;
};
// nullopt: another axis than the image's is padded.
std::optional<std::array<AxisPad, 3>> pads_of(const ir::Node& pad);

// For each axis of the output's image the axis of the input's; nullopt: axes beside the image are not 1.
std::optional<std::array<size_t, 3>> transposed_axes(const ir::Function& function, const ir::Node& transpose);

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_MOVEMENT_H_
