// A positive real multiplier as fixed point: real = multiplier * 2^(shift - 31). Same bits on host and
// device: no libm.
#ifndef QPLAN_KERNELS_NUMERIC_QUANTIZE_MULTIPLIER_H_
#define QPLAN_KERNELS_NUMERIC_QUANTIZE_MULTIPLIER_H_

#include <stdint.h>
#include <string.h>

namespace qplan {

struct QuantizedMultiplier {
  int32_t multiplier;  // 0 or in [2^30, 2^31)
  int32_t shift;       // >= -31, positive to the left; requantize_tfl2 takes up to 30
};

// 31 bits, rounded half up; what would be 2^31 becomes 2^30 with a shift one higher; a shift below -31 gives
// {0, 0}. real is finite and not negative. From 2^30 on the shift is above 30, which no kernel accepts: the
// caller refuses it. The scales' product that makes `real` is formed differently for each source:
// docs/numerics.md, "Scales".
static inline QuantizedMultiplier quantize_multiplier(double real) {
  static_assert(sizeof(double) == sizeof(uint64_t), "double is IEEE 754 binary64");
  uint64_t bits = 0;
  memcpy(&bits, &real, sizeof(bits));
  const uint32_t biased_exponent = static_cast<uint32_t>(bits >> 52) & 0x7ff;
  if (biased_exponent == 0) return {0, 0};  // zero and what is far below 2^-32
  // real = significand * 2^(biased_exponent - 1075), significand in [2^52, 2^53); as a fraction in [0.5, 1)
  // times 2^shift:
  const uint64_t significand = (bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  int32_t shift = static_cast<int32_t>(biased_exponent) - 1022;
  uint64_t rounded = (significand + (uint64_t{1} << 21)) >> 22;
  if (rounded == uint64_t{1} << 31) {
    rounded >>= 1;
    ++shift;
  }
  if (shift < -31) return {0, 0};
  return {static_cast<int32_t>(rounded), shift};
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_QUANTIZE_MULTIPLIER_H_
