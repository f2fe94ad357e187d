#include "src/runtime/strided_copy.h"

#include <string.h>

namespace qplan {
namespace {

template <uint32_t element_bytes>
void copy_row(uint8_t* to, int64_t to_stride, const uint8_t* from, int64_t from_stride, int64_t count) {
  for (int64_t i = 0; i < count; ++i) memcpy(to + i * to_stride, from + i * from_stride, element_bytes);
}

void copy_row(uint8_t* to, int64_t to_stride, const uint8_t* from, int64_t from_stride, int64_t count,
              uint32_t element_bytes) {
  if (to_stride == element_bytes && from_stride == element_bytes) {
    memmove(to, from, static_cast<size_t>(count) * element_bytes);
    return;
  }
  switch (element_bytes) {
    case 1:
      return copy_row<1>(to, to_stride, from, from_stride, count);
    case 2:
      return copy_row<2>(to, to_stride, from, from_stride, count);
    case 4:
      return copy_row<4>(to, to_stride, from, from_stride, count);
    default:
      return copy_row<8>(to, to_stride, from, from_stride, count);
  }
}

}  // namespace

Strides packed_strides(const int64_t* extents, uint32_t rank, uint32_t element_bytes) {
  Strides strides;
  int64_t stride = element_bytes;
  for (uint32_t axis = rank; axis-- > 0;) {
    strides.bytes[axis] = stride;
    stride *= extents[axis];
  }
  return strides;
}

void strided_copy(void* to, const Strides& to_strides, const void* from, const Strides& from_strides,
                  const int64_t* extents, uint32_t rank, uint32_t element_bytes) {
  auto* to_bytes = static_cast<uint8_t*>(to);
  const auto* from_bytes = static_cast<const uint8_t*>(from);
  // The inner axes that both sides hold packed are one row. The stride of an axis of one element means
  // nothing.
  int64_t row = 1;
  while (rank > 0 && (extents[rank - 1] == 1 || (to_strides.bytes[rank - 1] == row * element_bytes &&
                                                 from_strides.bytes[rank - 1] == row * element_bytes))) {
    row *= extents[--rank];
  }
  int64_t to_stride = element_bytes, from_stride = element_bytes;
  if (row == 1 && rank > 0) {
    row = extents[--rank];
    to_stride = to_strides.bytes[rank];
    from_stride = from_strides.bytes[rank];
  }
  int64_t index[format::kMaxRank] = {};
  for (;;) {
    copy_row(to_bytes, to_stride, from_bytes, from_stride, row, element_bytes);
    // The next index of the outer axes, like an odometer.
    uint32_t axis = rank;
    while (axis > 0) {
      --axis;
      to_bytes += to_strides.bytes[axis];
      from_bytes += from_strides.bytes[axis];
      if (++index[axis] < extents[axis]) break;
      to_bytes -= to_strides.bytes[axis] * extents[axis];
      from_bytes -= from_strides.bytes[axis] * extents[axis];
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (rank == 0) return;
  }
}

}  // namespace qplan
