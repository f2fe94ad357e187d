// Clamps, and int32 arithmetic that wraps instead of being undefined. Internal linkage only: ISA files
// include this.
#ifndef QPLAN_KERNELS_NUMERIC_SATURATE_H_
#define QPLAN_KERNELS_NUMERIC_SATURATE_H_

#include <stdint.h>

namespace qplan {

// lo <= hi.
static constexpr int32_t clamp_s32(int32_t value, int32_t lo, int32_t hi) {
  return value < lo ? lo : value > hi ? hi : value;
}

// The result modulo 2^32, read as two's complement.
static constexpr int32_t wrap_add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

static constexpr int32_t wrap_sub(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}

static constexpr int32_t wrap_mul(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}

// count in [0, 31].
static constexpr int32_t wrap_shift_left(int32_t a, int32_t count) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) << count);
}

// a + b clamped to [lo, hi], without wrapping in between: for a zero point added to a value of any size.
static constexpr int32_t add_clamp(int32_t a, int32_t b, int32_t lo, int32_t hi) {
  const int64_t sum = int64_t{a} + b;
  return sum < lo ? lo : sum > hi ? hi : static_cast<int32_t>(sum);
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_SATURATE_H_
