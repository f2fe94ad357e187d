#include "src/packer/ir/limits.h"

namespace qplan::ir {

std::string type_error(const TensorType& type) {
  if (type.shape.size() > kMaxRank) {
    return "rank " + std::to_string(type.shape.size()) + " is larger than " + std::to_string(kMaxRank);
  }
  if (!dtype_from_string(to_string(type.dtype))) return to_string(type.dtype) + " is not a dtype of the IR";
  for (const int64_t extent : type.shape) {
    if (extent < 1) {
      return "extent " + std::to_string(extent) + " of " + to_string(type) + " must be at least 1";
    }
  }
  if (type.size_bytes() > kMaxTensorBytes) {
    return to_string(type) + " is larger than " + std::to_string(kMaxTensorBytes) + " bytes";
  }
  return "";
}

}  // namespace qplan::ir
