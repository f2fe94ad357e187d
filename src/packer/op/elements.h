// The elements of constants as bytes, whatever they mean, and as expressions of xtensor, which transposes,
// slices and broadcasts them.
#ifndef QPLAN_SRC_PACKER_OP_ELEMENTS_H_
#define QPLAN_SRC_PACKER_OP_ELEMENTS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>
#include <xtensor/xadapt.hpp>
#include <xtensor/xbroadcast.hpp>

#include "src/packer/error.h"
#include "src/packer/ir/module.h"

namespace qplan::op {

// An element of kSize bytes. It needs no alignment: constants may be anywhere in a file.
template <size_t kSize>
using ElementBytes = std::array<uint8_t, kSize>;

inline std::vector<size_t> extents(const ir::Shape& shape) { return {shape.begin(), shape.end()}; }

// Dtypes below 8 bits are unpacked to one byte each.
class Elements {
 public:
  explicit Elements(const ir::Constant& constant);
  explicit Elements(const ir::TensorType& type);  // zeros
  Elements(Elements&&) = default;
  Elements(const Elements&) = delete;

  // work(const T* elements), where T is ElementBytes of this dtype's size.
  template <typename Work>
  auto visit(const Work& work) const {
    switch (size_) {
      case 1:
        return work(as<1>());
      case 2:
        return work(as<2>());
      case 4:
        return work(as<4>());
      case 8:
        return work(as<8>());
      default:
        throw PackError(QPLAN_INTERNAL, "elements of " + std::to_string(size_) + " bytes");
    }
  }
  // All elements of zeros become those of the expression, in row-major order.
  template <typename Expression>
  void assign(const Expression& expression) {
    using T = typename Expression::value_type;
    std::copy(expression.template begin<xt::layout_type::row_major>(),
              expression.template end<xt::layout_type::row_major>(), reinterpret_cast<T*>(own_.data()));
  }
  const uint8_t* at(int64_t element) const { return data_ + static_cast<size_t>(element) * size_; }
  uint8_t* at(int64_t element) { return own_.data() + static_cast<size_t>(element) * size_; }  // of zeros
  // element `to` of this becomes element `from` of the other, and `count` after it.
  void copy(int64_t to, const Elements& other, int64_t from, int64_t count = 1);
  ir::ConstantRef finish() &&;

 private:
  template <size_t kSize>
  const ElementBytes<kSize>* as() const {
    return reinterpret_cast<const ElementBytes<kSize>*>(data_);
  }

  ir::TensorType type_;
  size_t size_;
  std::vector<uint8_t> own_;
  const uint8_t* data_;
};

// Elements of that shape in memory, for xtensor.
template <typename T>
auto tensor_of(const T* elements, const ir::Shape& shape) {
  const auto count = static_cast<size_t>(ir::TensorType{ir::kInt8, shape}.num_elements());
  return xt::adapt(elements, count, xt::no_ownership(), extents(shape));
}

// Which element of a packed tensor of shape `own`, which broadcasts to `shape`, stands at each place of
// `shape`.
inline std::vector<size_t> broadcast_indices(const ir::Shape& own, const ir::Shape& shape) {
  std::vector<size_t> indices(static_cast<size_t>(ir::TensorType{ir::kInt8, own}.num_elements()));
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = i;
  const auto all = xt::broadcast(tensor_of(indices.data(), own), extents(shape));
  return {all.begin(), all.end()};
}

}  // namespace qplan::op

#endif  // QPLAN_SRC_PACKER_OP_ELEMENTS_H_
