// What each of the 256 bytes becomes under another scale and zero point: in float32, as TFLite computes
// DEQUANTIZE and then QUANTIZE, or by the fixed point of contract tfl2. The two differ by one step for up to
// a quarter of the bytes. docs/numerics.md#requantize
#ifndef QPLAN_SRC_PACKER_OP_REQUANTIZE_BYTES_H_
#define QPLAN_SRC_PACKER_OP_REQUANTIZE_BYTES_H_

#include <array>
#include <cstdint>

#include "src/packer/ir/module.h"

namespace qplan::op {

struct ByteQuantization {
  ir::DType dtype;  // int8 or uint8
  float scale = 1.0f;
  int32_t zero_point = 0;

  // The integer that a byte is.
  int32_t integer(uint8_t byte) const {
    return dtype == ir::kInt8 ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte};
  }
};

// By byte: the integers that come out.
using ByteTable = std::array<int32_t, 256>;

// (q - zero_point) * scale, then half_away(real / scale) + zero_point, each operation in float32.
ByteTable requantized_in_float(ByteQuantization from, ByteQuantization to);

// A qnn.requantize that is meant so: it has no multiplier.
bool requantizes_in_float(const ir::Node& requantize);

// Whether tfl2, with the multiplier of the double quotient of the scales, gives all of these.
bool tfl2_requantizes_to(const ByteTable& expected, ByteQuantization from, ByteQuantization to);

}  // namespace qplan::op

#endif  // QPLAN_SRC_PACKER_OP_REQUANTIZE_BYTES_H_
