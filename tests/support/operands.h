// Random quantised operands that conv2d, depthwise_conv2d and fully_connected have in common.
#ifndef QPLAN_TESTS_SUPPORT_OPERANDS_H_
#define QPLAN_TESTS_SUPPORT_OPERANDS_H_

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "tests/support/exact_requantize.h"
#include "tests/support/random.h"

namespace qplan::testing {

enum class Values { kUniform, kWithEnds, kOnlyEnds };
enum class Bias {
  kSmall,  // within +-2^16
  kLarge,  // near +-2^30: the true sums still fit int32
  kWrap,   // near +-2^31: the sums wrap
};

// One element of an 8-bit type.
inline int32_t random_value(Random& random, Dtype dtype, Values values) {
  const int32_t lo = dtype_min(dtype), hi = dtype_max(dtype);
  const int64_t kind = random.integer(0, 7);
  if (values == Values::kOnlyEnds) return kind < 4 ? lo : hi;
  if (values == Values::kWithEnds && kind < 2) return kind == 0 ? lo : hi;
  return static_cast<int32_t>(random.integer(lo, hi));
}

inline int32_t random_bias(Random& random, Bias bias) {
  const int64_t near = random.integer(-(1 << 16), 1 << 16);
  const int64_t sign = random.chance(0.5) ? 1 : -1;
  if (bias == Bias::kLarge) return static_cast<int32_t>(sign * (int64_t{1} << 30) + near);
  if (bias == Bias::kWrap) {
    return static_cast<int32_t>(sign > 0 ? INT32_MAX - (near < 0 ? -near : near)
                                         : INT32_MIN + (near < 0 ? -near : near));
  }
  return static_cast<int32_t>(near);
}

// Multiplier and shift, and scale under F32E, of a channel whose accumulators reach `largest` in magnitude,
// so that outputs fill their dtype or saturate a little; one in sixteen is any legal pair, with the ends
// preferred. One scale in four is a power of two, which makes ties.
struct ChannelScale {
  int32_t multiplier;
  int32_t shift;
  float scale;
};
inline Contract random_contract(Random& random) {
  const std::vector<Contract> contracts = {Contract::kTfl2, Contract::kTfl2, Contract::kF32e, Contract::kF32e,
                                           Contract::kTfl1};
  return random.pick(contracts);
}
// A layer of weights whose accumulators are its output.
template <typename Args>
void use_acc32(Args* args) {
  args->contract = Contract::kAcc32;
  args->output_dtype = Dtype::kS32;
  args->output_zero_point = args->clamp_min = args->clamp_max = 0;
}
inline ChannelScale random_scale(Random& random, double largest) {
  constexpr int64_t kLowest = int64_t{1} << 30;
  if (random.integer(0, 15) == 0) {
    const std::vector<int64_t> multipliers = {0, kLowest, INT32_MAX, random.integer(kLowest, INT32_MAX)};
    const std::vector<int64_t> shifts = {-31, 30, 0, -1, 1, random.integer(-31, 30)};
    const std::vector<float> scales = {0.0f, FLT_MAX, FLT_MIN, FLT_TRUE_MIN, 1.0f, 0.5f};
    return {static_cast<int32_t>(random.pick(multipliers)), static_cast<int32_t>(random.pick(shifts)),
            random.pick(scales)};
  }
  const int bits = std::ilogb(largest < 1 ? 1 : largest);
  const int64_t shift = random.integer(6, 9) - bits;
  const double significand = random.chance(0.25) ? 0.5 : 0.5 + random.unit() / 2;
  return {static_cast<int32_t>(random.integer(kLowest, INT32_MAX)),
          static_cast<int32_t>(exact_clamp(shift, -31, 30)),
          static_cast<float>(std::ldexp(significand, static_cast<int>(shift)))};
}

// lo <= hi within the dtype: the whole range half of the time.
inline void random_clamp(Random& random, Dtype dtype, int32_t* lo, int32_t* hi) {
  *lo = dtype_min(dtype);
  *hi = dtype_max(dtype);
  if (random.chance(0.5)) return;
  const int64_t a = random.integer(*lo, *hi), b = random.integer(*lo, *hi);
  *lo = static_cast<int32_t>(a < b ? a : b);
  *hi = static_cast<int32_t>(a < b ? b : a);
}

// A zero point: an end of the dtype one time in three.
inline int32_t random_zero_point(Random& random, Dtype dtype) {
  return random_value(random, dtype, random.integer(0, 2) == 0 ? Values::kOnlyEnds : Values::kUniform);
}

// 8-bit values as the bytes that memory holds, and back from there; int32 too.
inline std::vector<uint8_t> to_bytes(const std::vector<int32_t>& values) {
  return std::vector<uint8_t>(values.begin(), values.end());
}
inline std::vector<int32_t> from_bytes(const std::vector<uint8_t>& bytes, Dtype dtype) {
  if (dtype == Dtype::kS32) {
    std::vector<int32_t> words(bytes.size() / sizeof(int32_t));
    std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
  }
  std::vector<int32_t> values;
  for (const uint8_t byte : bytes) values.push_back(dtype == Dtype::kS8 ? static_cast<int8_t>(byte) : byte);
  return values;
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_OPERANDS_H_
