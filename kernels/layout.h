// Index functions of the weight layouts of format/layouts.def.
#ifndef QPLAN_KERNELS_LAYOUT_H_
#define QPLAN_KERNELS_LAYOUT_H_

#include <stdint.h>

namespace qplan {

enum Layout : uint16_t {
#define QPLAN_LAYOUT(id, name) kLayout_##name = id,
#include "format/layouts.def"
#undef QPLAN_LAYOUT
};

constexpr const char* layout_name(uint16_t layout) {
  switch (layout) {
#define QPLAN_LAYOUT(id, name) \
  case id:                     \
    return #name;
#include "format/layouts.def"
#undef QPLAN_LAYOUT
    default:
      return "unknown";
  }
}

// Byte of weight (o, k) of a [num_o, num_k] matrix, k = (y * KW + x) * I + i.
constexpr uint64_t layout_index(uint16_t layout, uint64_t o, uint64_t k, uint64_t num_o, uint64_t num_k) {
  switch (layout) {
    case kLayout_o16k4:
      return ((o / 16) * ((num_k + 3) / 4) + k / 4) * 64 + (o % 16) * 4 + k % 4;
    case kLayout_hwo16:
      return k * ((num_o + 15) / 16 * 16) + o;
    default:
      return o * num_k + k;
  }
}

// Bytes of a [num_o, num_k] weight tensor in that layout.
constexpr uint64_t layout_bytes(uint16_t layout, uint64_t num_o, uint64_t num_k) {
  const uint64_t padded_o = (num_o + 15) / 16 * 16;
  switch (layout) {
    case kLayout_o16k4:
      return padded_o * ((num_k + 3) / 4 * 4);
    case kLayout_hwo16:
      return padded_o * num_k;
    default:
      return num_o * num_k;
  }
}

// Entries of a per-channel constant (bias, multiplier, shift) that goes with that layout.
constexpr uint64_t layout_channels(uint16_t layout, uint64_t num_o) {
  return layout == kLayout_ohwi ? num_o : (num_o + 15) / 16 * 16;
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_LAYOUT_H_
