// Constants with one value per channel, as models write them: [c], [1, c, 1, 1], or one for all.
#ifndef QPLAN_SRC_PACKER_PASSES_CHANNELS_H_
#define QPLAN_SRC_PACKER_PASSES_CHANNELS_H_

#include <cstddef>

#include "src/packer/ir/module.h"

namespace qplan::passes {

// Whether a tensor of this shape, broadcast to `data`, has one value per index of `axis` (and as many
// elements).
bool is_per_channel(const ir::Shape& shape, const ir::Shape& data, size_t axis);

// The value for an index, of a constant with one value for all or one per index.
template <typename T>
T entry(const ir::Constant& constant, size_t index) {
  const auto values = constant.as<T>();
  return values[values.size() == 1 ? 0 : index];
}

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_CHANNELS_H_
