// What is known of the order of axes, for the passes that change it.
#ifndef QPLAN_SRC_PACKER_PASSES_LAYOUT_H_
#define QPLAN_SRC_PACKER_PASSES_LAYOUT_H_

#include <array>
#include <cstddef>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::passes {

// `axes` of the transposes from one order to the other.
inline const ir::Ints kToNhwc = {0, 2, 3, 1};
inline const ir::Ints kToNchw = {0, 3, 1, 2};

// The operands whose order of axes the results have too (OpDef::follows_layout). None: the order means
// something to the operator.
std::vector<size_t> layout_operands(const ir::Node& node);
// Where an axis of NCHW is in NHWC.
inline constexpr std::array<int64_t, 4> kAxisInNhwc = {0, 3, 1, 2};
// The attributes of an operator that follows its data, counted in NHWC instead of NCHW.
ir::Attrs attrs_in_nhwc(const ir::Node& node);

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_LAYOUT_H_
