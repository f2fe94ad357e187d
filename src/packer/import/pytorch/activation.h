// Clamps of quantised tensors.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_ACTIVATION_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_ACTIVATION_H_

#include <limits>

#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {

struct RealRange {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

// The clamp to the range in quantised units (quantize_value.h), or the value itself where that would do
// nothing.
ir::ValueId emit_clamp(OpContext& op, ir::ValueId value, RealRange range, QuantParams quantization);

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_ACTIVATION_H_
