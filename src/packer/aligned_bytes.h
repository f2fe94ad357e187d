// Bytes at an address that a plan may be opened at.
#ifndef QPLAN_SRC_PACKER_ALIGNED_BYTES_H_
#define QPLAN_SRC_PACKER_ALIGNED_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace qplan {

// A fixed number of zeros to begin with; movable, never copied.
class AlignedBytes {
 public:
  static constexpr size_t kAlignment = 64;

  AlignedBytes() = default;
  explicit AlignedBytes(size_t size)
      : bytes_(static_cast<uint8_t*>(::operator new (size, std::align_val_t{kAlignment}))), size_(size) {
    std::memset(bytes_.get(), 0, size);
  }

  uint8_t* data() const { return bytes_.get(); }
  size_t size() const { return size_; }
  std::span<const uint8_t> span() const { return {bytes_.get(), size_}; }

 private:
  struct Free {
    void operator()(uint8_t* bytes) const { ::operator delete (bytes, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<uint8_t[], Free> bytes_;
  size_t size_ = 0;
};

}  // namespace qplan

#endif  // QPLAN_SRC_PACKER_ALIGNED_BYTES_H_
