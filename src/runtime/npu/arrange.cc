#include <string.h>

#include "src/runtime/npu/client.h"

namespace qplan {
namespace {

// A run of bytes that lie together on both sides.
void copy_run(uint8_t* to, const uint8_t* from, size_t count, uint8_t sign_bias) {
  if (sign_bias == 0) {
    memcpy(to, from, count);
    return;
  }
  const uint64_t mask = uint64_t{sign_bias} * 0x0101010101010101u;
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t word;
    memcpy(&word, from + i, 8);
    word ^= mask;
    memcpy(to + i, &word, 8);
  }
  for (; i < count; ++i) to[i] = static_cast<uint8_t>(from[i] ^ sign_bias);
}

void copy_strided(uint8_t* to, uint64_t to_stride, const uint8_t* from, uint64_t from_stride, int64_t count,
                  uint8_t sign_bias) {
  // Uses offsets, because a pointer after the last element might point anywhere.
  for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) {
    to[i * to_stride] = static_cast<uint8_t>(from[i * from_stride] ^ sign_bias);
  }
}

// Calls row(buffer offset, packed offset) for each row of the inner axes, which is `row_bytes` of the packed
// tensor, beginning with these offsets.
template <typename Row>
void for_each_row(const Arrangement& a, uint32_t outer_rank, uint64_t row_bytes, uint64_t buffer,
                  uint64_t packed, const Row& row) {
  int64_t index[format::kMaxRank] = {};
  for (;;) {
    row(buffer, packed);
    packed += row_bytes;
    uint32_t axis = outer_rank;
    while (axis > 0) {
      --axis;
      buffer += a.strides[axis];
      if (++index[axis] < a.extents[axis]) break;
      buffer -= a.strides[axis] * static_cast<uint64_t>(a.extents[axis]);
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (outer_rank == 0) return;
  }
}

// copy(buffer offset, buffer stride, packed offset, packed stride, count); both strides 1: a run.
template <typename Copy>
void for_each_copy(const Arrangement& a, const Copy& copy) {
  const uint64_t element = a.element_bytes;
  uint32_t outer = a.rank;
  const bool is_together = element == 1 || a.byte_stride == 1;  // the bytes of an element
  const auto copy_row = [&](uint64_t buffer, uint64_t stride, uint64_t packed, int64_t extent) {
    if (is_together && stride == element) {
      return copy(buffer, uint64_t{1}, packed, uint64_t{1}, extent * static_cast<int64_t>(element));
    }
    for (uint64_t b = 0; b < element; ++b)
      copy(buffer + b * a.byte_stride, stride, packed + b, element, extent);
  };
  if (a.block != 0) {
    const int64_t extent = a.extents[--outer];
    uint64_t begin = a.origin;
    for (int64_t first = 0; first < extent; first += a.block, begin += a.block_stride) {
      const int64_t left = extent - first, count = left < a.block ? left : a.block;
      for_each_row(
          a, outer, static_cast<uint64_t>(extent) * element, begin, static_cast<uint64_t>(first) * element,
          [&](uint64_t buffer, uint64_t packed) { copy_row(buffer, a.strides[outer], packed, count); });
    }
    return;
  }
  // The inner axes whose elements lie together are one row.
  uint64_t run = element;
  if (is_together) {
    while (outer > 0 && (a.extents[outer - 1] == 1 || a.strides[outer - 1] == run)) {
      run *= static_cast<uint64_t>(a.extents[--outer]);
    }
  }
  if (run > element || (outer == 0 && is_together)) {
    for_each_row(a, outer, run, a.origin, 0, [&](uint64_t buffer, uint64_t packed) {
      copy(buffer, uint64_t{1}, packed, uint64_t{1}, static_cast<int64_t>(run));
    });
    return;
  }
  int64_t extent = 1;
  uint64_t stride = 0;
  if (outer > 0) {
    extent = a.extents[--outer];
    stride = a.strides[outer];
  }
  for_each_row(a, outer, static_cast<uint64_t>(extent) * element, a.origin, 0,
               [&](uint64_t buffer, uint64_t packed) { copy_row(buffer, stride, packed, extent); });
}

}  // namespace

bool Arrangement::covers_all() const {
  uint64_t expected = element_bytes;
  int64_t blocks = block == 0 ? 1 : extents[rank - 1] / block;  // until they are found between two axes
  if (block != 0 && extents[rank - 1] % block != 0) return false;
  for (uint32_t axis = rank; axis-- > 0;) {
    const bool is_divided = block != 0 && axis + 1 == rank;
    const int64_t extent = is_divided ? int64_t{block} : extents[axis];
    if (extent != 1 && strides[axis] != expected) return false;
    expected *= static_cast<uint64_t>(extent);
    if (blocks == 1 || block_stride != expected) continue;
    expected *= static_cast<uint64_t>(blocks);
    blocks = 1;
  }
  return blocks == 1 && size == expected && origin == 0 && (element_bytes == 1 || byte_stride == 1);
}

Arrangement arrangement_of(const format::NpuBind& bind, const format::Tensor& tensor) {
  Arrangement a;
  a.rank = format::rank_of(tensor);
  a.element_bytes = format::element_bytes(tensor);
  a.size = bind.size();
  uint64_t packed = a.element_bytes;
  for (uint32_t axis = a.rank; axis-- > 0;) {
    a.extents[axis] = tensor.shape()->Get(axis);
    a.strides[axis] = bind.strides() == nullptr ? packed : bind.strides()->Get(axis);
    packed *= static_cast<uint64_t>(a.extents[axis]);
    if (a.extents[axis] == 1) a.strides[axis] = 0;  // nobody takes that step, however long the plan makes it
  }
  if (bind.strides() == nullptr) return a;
  a.origin = bind.origin();
  a.byte_stride = bind.byte_stride();
  a.fill = bind.fill();
  a.sign_bias = bind.flip();
  if (a.rank == 0 || bind.block() >= static_cast<uint64_t>(a.extents[a.rank - 1])) return a;
  a.block = bind.block();
  a.block_stride = bind.block_stride();
  return a;
}

void scatter(uint8_t* buffer, const uint8_t* packed, const Arrangement& a) {
  if (a.is_packed()) {
    memcpy(buffer, packed, static_cast<size_t>(a.size));
    return;
  }
  if (!a.covers_all()) memset(buffer, a.fill, static_cast<size_t>(a.size));
  for_each_copy(a, [&](uint64_t to, uint64_t to_stride, uint64_t from, uint64_t from_stride, int64_t count) {
    if (to_stride == 1 && from_stride == 1) {
      copy_run(buffer + to, packed + from, static_cast<size_t>(count), a.sign_bias);
    } else {
      copy_strided(buffer + to, to_stride, packed + from, from_stride, count, a.sign_bias);
    }
  });
}

void gather(uint8_t* packed, const uint8_t* buffer, const Arrangement& a) {
  if (a.is_packed()) {
    memcpy(packed, buffer, static_cast<size_t>(a.size));
    return;
  }
  for_each_copy(a, [&](uint64_t from, uint64_t from_stride, uint64_t to, uint64_t to_stride, int64_t count) {
    if (to_stride == 1 && from_stride == 1) {
      copy_run(packed + to, buffer + from, static_cast<size_t>(count), a.sign_bias);
    } else {
      copy_strided(packed + to, to_stride, buffer + from, from_stride, count, a.sign_bias);
    }
  });
}

}  // namespace qplan
