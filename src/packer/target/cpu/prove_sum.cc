#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "kernels/numeric/requantize.h"
#include "src/packer/target/cpu/prove.h"

namespace qplan::target::cpu {
namespace {

constexpr uint32_t kValues = 256;
// Scales that are tried: the nearest float and so many on both sides, for either input.
constexpr int32_t kMaxSumUlps = 2;
// Scales below this and offsets within these keep the sum within int32, whatever host converts it.
constexpr double kMaxScale = 65536.0;
constexpr double kMaxOffset = 1e8;

// Outputs for every pair, [a][b], inputs counted from the dtype's minimum.
using Outputs = std::vector<uint8_t>;

int32_t rescaled(int32_t value, const QuantizedMultiplier& m) {
  return requantize_tfl2(value, m.multiplier, m.shift);
}

Outputs all_outputs(const SumRequantization& sum) {
  std::array<int32_t, kValues> scaled1, scaled2;
  for (uint32_t i = 0; i < kValues; ++i) {
    const int32_t value = sum.dtype_min + static_cast<int32_t>(i), one = int32_t{1} << sum.left_shift;
    scaled1[i] = rescaled((value - sum.zero_point1) * one, sum.multiplier1);
    const int32_t right = rescaled((value - sum.zero_point2) * one, sum.multiplier2);
    scaled2[i] = sum.subtract ? -right : right;
  }
  Outputs outputs(kValues * kValues);
  for (uint32_t a = 0; a < kValues; ++a) {
    for (uint32_t b = 0; b < kValues; ++b) {
      const int32_t scaled = rescaled(scaled1[a] + scaled2[b], sum.output_multiplier);
      const int32_t output = add_clamp(scaled, sum.output_zero_point, sum.clamp_min, sum.clamp_max);
      outputs[a * kValues + b] = static_cast<uint8_t>(output - sum.dtype_min);
    }
  }
  return outputs;
}

// What a multiplier with a left shift of `left_shift` bits before it stands for.
double real_multiplier(const QuantizedMultiplier& m) { return std::ldexp(m.multiplier, m.shift - 31); }

// The middle of the offsets with which the real sum is nearest to every output; false where no offset does
// it.
bool middle_offset(const SumRequantization& sum, const Outputs& outputs, SumConstants* constants) {
  const double scale1 = constants->scale1, scale2 = constants->scale2;
  double lowest = -kMaxOffset, highest = kMaxOffset;
  for (uint32_t a = 0; a < kValues; ++a) {
    const double from_a = (sum.dtype_min + static_cast<int32_t>(a)) * scale1;
    for (uint32_t b = 0; b < kValues; ++b) {
      const double real = from_a + (sum.dtype_min + static_cast<int32_t>(b)) * scale2;
      const int32_t output = sum.dtype_min + outputs[a * kValues + b];
      if (output > sum.clamp_min) lowest = std::max(lowest, output - 0.5 - real);
      if (output < sum.clamp_max) highest = std::min(highest, output + 0.5 - real);
    }
  }
  constants->offset = static_cast<float>((lowest + highest) / 2);
  return lowest <= highest;
}

bool is_exact(const SumRequantization& sum, const Outputs& outputs, const SumConstants& constants) {
  for (uint32_t a = 0; a < kValues; ++a) {
    for (uint32_t b = 0; b < kValues; ++b) {
      const int32_t value = evaluate_float_sum(constants, sum.dtype_min + static_cast<int32_t>(a),
                                               sum.dtype_min + static_cast<int32_t>(b));
      if (clamp_s32(value, sum.clamp_min, sum.clamp_max) != sum.dtype_min + outputs[a * kValues + b])
        return false;
    }
  }
  return true;
}

float ulps_from(float value, int32_t ulps) {
  for (; ulps > 0; --ulps) value = std::nextafter(value, HUGE_VALF);
  for (; ulps < 0; ++ulps) value = std::nextafter(value, -HUGE_VALF);
  return value;
}

}  // namespace

bool SumRequantization::operator<(const SumRequantization& other) const {
  const auto key = [](const SumRequantization& s) {
    return std::make_tuple(s.subtract, s.dtype_min, s.left_shift, s.zero_point1, s.zero_point2,
                           s.output_zero_point, s.multiplier1.multiplier, s.multiplier1.shift,
                           s.multiplier2.multiplier, s.multiplier2.shift, s.output_multiplier.multiplier,
                           s.output_multiplier.shift, s.clamp_min, s.clamp_max);
  };
  return key(*this) < key(other);
}

std::optional<SumConstants> SumProofs::prove(const SumRequantization& sum) {
  const auto known = proofs_.find(sum);
  if (known != proofs_.end()) return known->second;
  if (proofs_.size() >= kMaxProofs) return std::nullopt;
  return proofs_.emplace(sum, prove_float_sum(sum)).first->second;
}

int32_t evaluate_float_sum(const SumConstants& constants, int32_t a, int32_t b) {
  const float scaled = std::fma(static_cast<float>(b), constants.scale2, constants.offset);
  return static_cast<int32_t>(std::nearbyint(std::fma(static_cast<float>(a), constants.scale1, scaled)));
}

std::optional<SumConstants> prove_float_sum(const SumRequantization& sum) {
  const double common = std::ldexp(real_multiplier(sum.output_multiplier), sum.left_shift);
  const double scale1 = real_multiplier(sum.multiplier1) * common;
  const double scale2 = real_multiplier(sum.multiplier2) * common * (sum.subtract ? -1 : 1);
  if (!(scale1 > 0.0 && scale1 < kMaxScale && std::abs(scale2) < kMaxScale)) return std::nullopt;
  const Outputs outputs = all_outputs(sum);
  for (int32_t i = 0; i <= 2 * kMaxSumUlps; ++i) {
    for (int32_t j = 0; j <= 2 * kMaxSumUlps; ++j) {
      const auto ulps = [](int32_t n) { return n % 2 == 0 ? -(n / 2) : n / 2 + 1; };  // 0, 1, -1, 2, -2
      SumConstants constants;
      constants.scale1 = ulps_from(static_cast<float>(scale1), ulps(i));
      constants.scale2 = ulps_from(static_cast<float>(scale2), ulps(j));
      if (constants.scale1 > 0.0f && middle_offset(sum, outputs, &constants) &&
          is_exact(sum, outputs, constants)) {
        return constants;
      }
    }
  }
  return std::nullopt;
}

// Sums of products in 16 bits.
namespace {

constexpr size_t kGroupBytes = 64;  // of 16 outputs

// Whether sums of `count` groups of each tap fit, at every place. The bytes that make a sum largest make no
// number of it negative, so that the sum of the first ones is not larger; nor smaller where they make it
// smallest.
bool fits(std::span<const uint8_t> weights, size_t tap_bytes, size_t count) {
  for (size_t tap = 0; tap < weights.size(); tap += tap_bytes) {
    for (size_t first = tap; first < tap + tap_bytes; first += count * kGroupBytes) {
      const size_t end = std::min(first + count * kGroupBytes, tap + tap_bytes);  // within the weights
      for (size_t place = 0; place < kGroupBytes; ++place) {
        int32_t largest = 0, smallest = 0;
        for (size_t at = first + place; at < end; at += kGroupBytes) {
          const int32_t weight = static_cast<int8_t>(weights[at]);
          largest += std::max(weight * INT8_MIN, weight * INT8_MAX);
          smallest += std::min(weight * INT8_MIN, weight * INT8_MAX);
        }
        if (largest > INT16_MAX || smallest < INT16_MIN) return false;
      }
    }
  }
  return true;
}

}  // namespace

uint8_t prove_int16_groups(std::span<const uint8_t> weights, uint64_t tap_groups) {
  const auto tap_bytes = static_cast<size_t>(tap_groups * kGroupBytes);
  return fits(weights, tap_bytes, 4) ? 4 : fits(weights, tap_bytes, 2) ? 2 : 0;
}

}  // namespace qplan::target::cpu
