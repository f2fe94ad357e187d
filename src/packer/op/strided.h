// Walking over tensors in row-major order with a stride per axis: broadcasting, transposing and slicing are
// the same walk.
#ifndef QPLAN_SRC_PACKER_OP_STRIDED_H_
#define QPLAN_SRC_PACKER_OP_STRIDED_H_

#include <array>
#include <cstdint>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::op {

// Strides in elements of a packed tensor.
ir::Ints packed_strides(const ir::Shape& shape);
// Strides with which a tensor of this shape is read as one of shape `as`, to which it broadcasts.
ir::Ints broadcast_strides(const ir::Shape& shape, const ir::Shape& as);

// visit(i, offsets) for every element of the shape: its index in row-major order, and where each of N tensors
// stands.
template <size_t N, typename Visit>
void walk(const ir::Shape& shape, const std::array<ir::Ints, N>& strides, std::array<int64_t, N> offsets,
          const Visit& visit) {
  ir::Ints index(shape.size());
  const int64_t total = ir::TensorType{ir::kInt8, shape}.num_elements();
  for (int64_t i = 0; i < total; ++i) {
    visit(i, offsets);
    for (size_t d = shape.size(); d-- > 0;) {
      for (size_t n = 0; n < N; ++n) offsets[n] += strides[n][d];
      if (++index[d] < shape[d]) break;
      for (size_t n = 0; n < N; ++n) offsets[n] -= strides[n][d] * shape[d];
      index[d] = 0;
    }
  }
}

// Elements as bytes, whatever they mean: dtypes below 8 bits are unpacked to one byte each.
class Elements {
 public:
  explicit Elements(const ir::Constant& constant);
  explicit Elements(const ir::TensorType& type);  // zeros
  Elements(Elements&&) = default;
  Elements(const Elements&) = delete;

  size_t element_size() const { return size_; }
  const uint8_t* at(int64_t element) const { return data_ + static_cast<size_t>(element) * size_; }
  uint8_t* at(int64_t element) { return own_.data() + static_cast<size_t>(element) * size_; }  // of zeros
  // element `to` of this becomes element `from` of the other, and `count` after it.
  void copy(int64_t to, const Elements& other, int64_t from, int64_t count = 1);
  ir::ConstantRef finish() &&;

 private:
  ir::TensorType type_;
  size_t size_;
  std::vector<uint8_t> own_;
  const uint8_t* data_;
};

}  // namespace qplan::op

#endif  // QPLAN_SRC_PACKER_OP_STRIDED_H_
