// The device's reciprocal of a softmax, which has no shift that saturates as the reference's do.
#include <gtest/gtest.h>

#include "kernels/numeric/fixed_point.h"
#include "src/ethosu/sim/machine.h"

namespace qplan::ethosu::sim {
namespace {

// As the device stores it: the low 32 bits.
int32_t stored(int64_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }
int32_t product(int64_t a, int64_t b, uint32_t shift) {
  return stored(scale(a * b, {1, shift}, Rounding::kDouble));
}

int32_t device_reciprocal(int32_t a) {
  const int32_t half = stored(scale(int64_t{a} + INT32_MAX, {1, 1}, Rounding::kDouble));
  int32_t x = stored(int64_t{product(half, -1010580540, 31)} + 1515870810);
  for (int i = 0; i < 3; ++i) {
    const int32_t rest = stored((int64_t{1} << 29) - product(x, half, 31));
    x = stored(int64_t{x} + product(product(x, rest, 31), 4, 0));
  }
  const auto zeros = [](int32_t value) { return __builtin_clz(static_cast<uint32_t>(value)); };
  const int32_t is_two = zeros(zeros(x)) - 30;
  return stored(int64_t{x} + stored(int64_t{x} - is_two));
}

// A sum of exponentials has 2^31 normalised values. All of them were tried once (2026-11), without a
// difference; here every 1009th, and both ends.
TEST(EthosuSoftmax, TheDevicesReciprocalIsTheReferences) {
  const auto differs = [](int64_t a) {
    const auto value = static_cast<int32_t>(a);
    return device_reciprocal(value) != fixed_reciprocal_one_plus(value);
  };
  for (int64_t a = 0; a <= INT32_MAX; a += 1009) ASSERT_FALSE(differs(a)) << a;
  for (int64_t a = 0; a < 100'000; ++a) {
    ASSERT_FALSE(differs(a)) << a;
    ASSERT_FALSE(differs(INT32_MAX - a)) << INT32_MAX - a;
  }
}

}  // namespace
}  // namespace qplan::ethosu::sim
