#include "src/packer/op/requantize_bytes.h"

#include <algorithm>
#include <cmath>

#include "kernels/numeric/requantize.h"
#include "src/packer/op/op_def.h"

namespace qplan::op {

ByteTable requantized_in_float(ByteQuantization from, ByteQuantization to) {
  ByteTable table;
  for (size_t byte = 0; byte < table.size(); ++byte) {
    const int32_t q = from.integer(static_cast<uint8_t>(byte));
    const float real = static_cast<float>(q - from.zero_point) * from.scale;
    // In double a float's fraction is exact, and so is the rounding; infinities are clamped.
    const double steps = std::round(static_cast<double>(real / to.scale)) + to.zero_point;
    table[byte] = static_cast<int32_t>(
        std::clamp(steps, static_cast<double>(to.dtype.min()), static_cast<double>(to.dtype.max())));
  }
  return table;
}

bool requantizes_in_float(const ir::Node& requantize) {
  return attr_string(requantize, "multiplier") == "none";
}

bool tfl2_requantizes_to(const ByteTable& expected, ByteQuantization from, ByteQuantization to) {
  // Above, the shift of an integer of 9 bits would come near the end of int32.
  constexpr int32_t kMaxShift = 20;
  const QuantizedMultiplier multiplier =
      quantize_multiplier(static_cast<double>(from.scale) / static_cast<double>(to.scale));
  if (multiplier.shift > kMaxShift) return false;
  const auto least = static_cast<int32_t>(to.dtype.min()), most = static_cast<int32_t>(to.dtype.max());
  for (size_t byte = 0; byte < expected.size(); ++byte) {
    const int32_t centered = from.integer(static_cast<uint8_t>(byte)) - from.zero_point;
    const int32_t units = requantize_tfl2(centered, multiplier.multiplier, multiplier.shift);
    if (add_clamp(units, to.zero_point, least, most) != expected[byte]) return false;
  }
  return true;
}

}  // namespace qplan::op
