// Tensors between their packed form and what a device's program reads and writes: padded rows and channels,
// borders, planes of bytes, a flipped sign bit. format/plan.fbs, NpuBind, has the formula.
#ifndef QPLAN_SRC_RUNTIME_NPU_ARRANGE_H_
#define QPLAN_SRC_RUNTIME_NPU_ARRANGE_H_

#include <stdint.h>

#include "format/plan_view.h"

namespace qplan {

struct Arrangement {
  uint32_t rank = 0;
  uint32_t element_bytes = 1;
  int64_t extents[format::kMaxRank] = {};
  uint64_t strides[format::kMaxRank] = {};  // bytes
  uint64_t origin = 0;                      // bytes
  uint64_t byte_stride = 1;                 // bytes, between the bytes of one element
  uint64_t size = 0;                        // bytes of the buffer
  uint8_t fill = 0;
  uint8_t sign_bias = 0;

  // The elements lie as in the packed tensor, and the buffer has no other bytes.
  bool covers_all() const;
  // The buffer holds the packed tensor, byte for byte.
  bool is_packed() const { return covers_all() && sign_bias == 0; }
};

// The arrangement of a verified bind.
Arrangement arrangement_of(const format::NpuBind& bind, const format::Tensor& tensor);

// Fills the buffer of arrangement.size bytes from the packed tensor, and back. The two do not overlap.
void scatter(uint8_t* buffer, const uint8_t* packed, const Arrangement& arrangement);
void gather(uint8_t* packed, const uint8_t* buffer, const Arrangement& arrangement);

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_NPU_ARRANGE_H_
