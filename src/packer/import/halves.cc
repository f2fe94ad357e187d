#include "src/packer/import/halves.h"

#include <cstring>
#include <span>
#include <vector>

namespace qplan::importer {
namespace {

float widened(uint16_t half) {
  const uint32_t sign = uint32_t{half} >> 15, exponent = (half >> 10) & 0x1fu, fraction = half & 0x3ffu;
  if (exponent == 0) {  // subnormal: fraction * 2^-24
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  const uint32_t wide_exponent = exponent == 0x1f ? 0xff : exponent + 112;
  const uint32_t bits = sign << 31 | wide_exponent << 23 | fraction << 13;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace

ir::ConstantRef widened_halves(const ir::Constant& halves) {
  std::vector<float> values;
  const std::span<const uint8_t> bytes = halves.bytes();
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    uint16_t half = 0;
    std::memcpy(&half, bytes.data() + i, sizeof(half));
    values.push_back(widened(half));
  }
  return ir::make_constant(ir::kFloat32, halves.type().shape, values);
}

}  // namespace qplan::importer
