#include "src/packer/op/elements.h"

#include <cstring>
#include <utility>

namespace qplan::op {
namespace {

bool is_packed(ir::DType dtype) { return dtype.bits < 8 && dtype != ir::kBool; }

size_t size_of(ir::DType dtype) { return dtype.bits < 8 ? 1 : dtype.bits / 8U * dtype.lanes; }

}  // namespace

Elements::Elements(const ir::Constant& constant)
    : type_(constant.type()), size_(size_of(type_.dtype)), data_(constant.bytes().data()) {
  if (!is_packed(type_.dtype)) return;
  // Two elements of 4 bits in a byte, the first in the low half.
  const auto count = static_cast<size_t>(type_.num_elements());
  own_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    own_[i] = static_cast<uint8_t>((constant.bytes()[i / 2] >> (i % 2 * 4)) & 15U);
  }
  data_ = own_.data();
}

Elements::Elements(const ir::TensorType& type)
    : type_(type),
      size_(size_of(type.dtype)),
      own_(static_cast<size_t>(type.num_elements()) * size_),
      data_(own_.data()) {}

void Elements::copy(int64_t to, const Elements& other, int64_t from, int64_t count) {
  std::memcpy(at(to), other.at(from), static_cast<size_t>(count) * size_);
}

ir::ConstantRef Elements::finish() && {
  if (is_packed(type_.dtype)) {
    std::vector<uint8_t> packed(static_cast<size_t>(type_.size_bytes()));
    for (size_t i = 0; i < own_.size(); ++i) {
      packed[i / 2] = static_cast<uint8_t>(packed[i / 2] | own_[i] << (i % 2 * 4));
    }
    own_ = std::move(packed);
  }
  return std::make_shared<const ir::Constant>(std::move(type_), std::move(own_));
}

}  // namespace qplan::op
