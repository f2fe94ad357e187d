// Operands of kernels in tests: bytes that end where they end, so that sanitizers see what reads on, and
// guards around outputs, so that every build sees what writes on.
#ifndef QPLAN_TESTS_SUPPORT_BUFFER_H_
#define QPLAN_TESTS_SUPPORT_BUFFER_H_

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace qplan::testing {

// `offset` elements after a 64-byte boundary.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(const std::vector<T>& values, size_t offset = 0) : offset_(offset), size_(values.size()) {
    bytes_.reset(
        static_cast<std::byte*>(::operator new ((offset + size_) * sizeof(T), std::align_val_t{64})));
    if (size_ > 0) std::memcpy(data(), values.data(), size_ * sizeof(T));
  }

  T* data() { return reinterpret_cast<T*>(bytes_.get()) + offset_; }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.get()) + offset_; }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { ::operator delete (bytes, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
  size_t offset_ = 0;
  size_t size_ = 0;
};

// count elements of garbage with guards of 64 elements on both sides.
template <typename T>
class OutputBuffer {
 public:
  explicit OutputBuffer(size_t count, size_t offset = 0)
      : buffer_(std::vector<T>(count + 2 * kGuard, kFill), offset) {}

  T* data() { return buffer_.data() + kGuard; }
  std::vector<T> values() { return std::vector<T>(data(), data() + buffer_.size() - 2 * kGuard); }
  bool guards_intact() const {
    bool intact = true;
    for (size_t i = 0; i < kGuard; ++i) {
      intact = intact && buffer_.data()[i] == kFill && buffer_.data()[buffer_.size() - 1 - i] == kFill;
    }
    return intact;
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr T kFill = static_cast<T>(0x5a);
  Buffer<T> buffer_;
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_BUFFER_H_
