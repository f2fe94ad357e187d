#include "src/packer/passes/channels.h"

namespace qplan::passes {

bool is_per_channel(const ir::Shape& shape, const ir::Shape& data, size_t axis) {
  if (shape.size() > data.size()) return false;
  const size_t missing = data.size() - shape.size();
  for (size_t i = 0; i < data.size(); ++i) {
    const int64_t extent = i < missing ? 1 : shape[i - missing];
    if (extent != (i == axis ? data[axis] : 1)) return false;
  }
  return true;
}

}  // namespace qplan::passes
