// A pointer and a count (std::span is C++20).
#ifndef QPLAN_SRC_BASE_SPAN_H_
#define QPLAN_SRC_BASE_SPAN_H_

#include <stddef.h>

namespace qplan {

template <typename T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(T* data, size_t size) : data_(data), size_(size) {}
  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T& operator[](size_t i) const { return data_[i]; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace qplan

#endif  // QPLAN_SRC_BASE_SPAN_H_
