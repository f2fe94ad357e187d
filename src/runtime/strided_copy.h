// Copies between two arrangements of the same elements.
#ifndef QPLAN_SRC_RUNTIME_STRIDED_COPY_H_
#define QPLAN_SRC_RUNTIME_STRIDED_COPY_H_

#include <stdint.h>

#include "format/container.h"

namespace qplan {

// Strides in bytes, outermost first; any sign.
struct Strides {
  int64_t bytes[format::kMaxRank] = {};
};

// The strides of a packed row-major tensor.
Strides packed_strides(const int64_t* extents, uint32_t rank, uint32_t element_bytes);

// Elements may lie at any address. The two arrangements must not overlap unless both are packed.
void strided_copy(void* to, const Strides& to_strides, const void* from, const Strides& from_strides,
                  const int64_t* extents, uint32_t rank, uint32_t element_bytes);

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_STRIDED_COPY_H_
