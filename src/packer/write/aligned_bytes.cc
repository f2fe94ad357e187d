#include "src/packer/write/aligned_bytes.h"

#include <cstring>

namespace qplan::emit {

AlignedBytes::AlignedBytes(size_t size)
    : bytes_(static_cast<uint8_t*>(::operator new (size, std::align_val_t{kAlignment}))), size_(size) {
  std::memset(bytes_.get(), 0, size);
}

}  // namespace qplan::emit
