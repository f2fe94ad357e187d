#include "src/packer/passes/channels.h"

#include "src/packer/op/op_def.h"
#include "src/packer/op/shape.h"

namespace qplan::passes {

size_t channel_axis(const ir::Node& product, size_t result_rank) {
  const bool dense = product.op->name == "nn.dense" || product.op->name == "qnn.dense";
  return dense ? result_rank - 1 : op::data_layout(op::attr_string(product, "data_layout")).c;
}

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
