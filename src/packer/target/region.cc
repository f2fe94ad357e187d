#include "src/packer/target/region.h"

namespace qplan::target {

Arrangement packed_arrangement(const ir::TensorType& type) {
  Arrangement result;
  result.size = static_cast<uint64_t>(type.size_bytes());
  result.strides.resize(type.shape.size());
  uint64_t stride = type.dtype.bits / 8u;
  for (size_t axis = type.shape.size(); axis-- > 0;) {
    result.strides[axis] = stride;
    stride *= static_cast<uint64_t>(type.shape[axis]);
  }
  return result;
}

bool Arrangement::is_packed(const ir::TensorType& type) const {
  const Arrangement packed = packed_arrangement(type);
  return flip == 0 && origin == 0 && size == packed.size && byte_stride == 1 && strides == packed.strides;
}

}  // namespace qplan::target
