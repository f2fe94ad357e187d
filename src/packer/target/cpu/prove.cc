#include "src/packer/target/cpu/prove.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "kernels/numeric/requantize.h"

namespace qplan::target::cpu {
namespace {

// ---- requantisation
//
// Why few checks prove all accumulators. Let q be the contract's output less the zero point, clamped, and g
// the same of the float epilogue.
//
// q is monotone: where the left shift does not wrap (checked at both ends of the range), it is a node
// sequence of a product with a number that is not negative, of floors and of roundings, each monotone, and a
// clamp.
//
// g is monotone: float(a), one fused multiply-add with a scale that is not negative, and the conversion are
// monotone functions of reals, each rounded towards zero, which is monotone; the value stays below 2^30
// (checked at both ends), where the conversion cannot overflow. Under SIGNED the offset is not negative, and
// changes from -offset to +offset with the sign of `a`: upwards.
//
// Two monotone functions into the integers of [q(min), q(max)] are equal when they are equal at both ends and
// when for each k of (q(min), q(max)] the least accumulator T with q(T) >= k, which has q(T - 1) < k,
// satisfies g(T) >= k and g(T - 1) < k: at most 255 pairs for 8 bits.
//
// Each of these checks is exact in double. Integers below 2^24 are floats, so that rounding the real number y
// = scale * a + offset towards zero passes no integer, and g reaches k when y >= k, for k <= 0 when y > k
// - 1. The product of two floats has 48 bits; an offset in [1/4, 1) is a multiple of 2^-25, so that k -
// offset has 34.

// Scales that are tried: the nearest float and so many on both sides.
constexpr int32_t kMaxScaleUlps = 12;
// Below this factor the thresholds' numerators could leave 64 bits.
constexpr int32_t kMinShift = -22;
// Integers up to here are floats.
constexpr int64_t kMaxThreshold = int64_t{1} << 24;
// What the form may reach before the clamp.
constexpr double kLargest = 1073741824.0;
constexpr double kLeastOffset = 0.25, kOffsetsEnd = 1.0;

// The least accumulators T that reach the outputs k = `first` .. `first + count - 1`, in ascending order;
// exact in double. T - 1 is negative for k <= 0, and T positive for k > 0: 0 gives 0.
struct Thresholds {
  int32_t first = 0;
  uint32_t count = 0;
  double at[256];

  int32_t output(uint32_t i) const { return first + static_cast<int32_t>(i); }
  // How many of them are of k <= 0.
  uint32_t num_low() const {
    return first > 0                                  ? 0
           : count < static_cast<uint32_t>(1 - first) ? count
                                                      : static_cast<uint32_t>(1 - first);
  }
};

// float(a) rounded towards zero, as a double.
double float_towards_zero(int64_t a) {
  const auto nearest = static_cast<float>(a);
  const auto magnitude = std::bit_cast<uint32_t>(nearest) & 0x7FFFFFFF;
  const auto truth = static_cast<double>(a);
  const bool too_large =
      static_cast<double>(std::bit_cast<float>(magnitude)) > (truth < 0.0 ? -truth : truth);
  const auto value = static_cast<double>(std::bit_cast<float>(magnitude - (too_large ? 1 : 0)));
  return truth < 0.0 ? -value : value;
}

bool offset_is_negated(format::FloatEpilogue form, int64_t a) {
  return form == format::FloatEpilogue_SIGNED && a < 0;
}

// The contract before zero point and clamp.
int32_t requantize(const ChannelRequantization& channel, int64_t a) {
  const auto accumulator = static_cast<int32_t>(a);
  return channel.contract == format::Contract_TFL1
             ? requantize_tfl1(accumulator, channel.multiplier, channel.shift)
             : requantize_tfl2(accumulator, channel.multiplier, channel.shift);
}

int32_t clamped(const ChannelRequantization& channel, int32_t value) {
  return clamp_s32(value, channel.clamp_min - channel.zero_point, channel.clamp_max - channel.zero_point);
}

// Whether nothing wraps on the way: then the contract is monotone.
bool is_monotone(const ChannelRequantization& channel) {
  if (channel.shift < kMinShift || channel.multiplier < 0) return false;
  if (channel.accumulator_min > channel.accumulator_max) return false;
  for (const int64_t a : {channel.accumulator_min, channel.accumulator_max}) {
    if (a < INT32_MIN || a > INT32_MAX) return false;
    if (channel.shift <= 0) continue;
    // TFL2 shifts before it multiplies by something below 1; TFL1's result is below the shifted one too.
    const int64_t limit = int64_t{INT32_MAX} >> channel.shift;
    if (a > limit || a < -limit) return false;
  }
  return true;
}

// ceil(numerator / denominator) as a running sum: one division, then additions.
class CeilingSequence {
 public:
  CeilingSequence(int64_t numerator, int64_t step, int64_t denominator)
      : denominator_(denominator), step_quotient_(step / denominator), step_rest_(step % denominator) {
    quotient_ = numerator / denominator;
    missing_ = quotient_ * denominator - numerator;  // in (-denominator, denominator)
    if (missing_ < 0) {
      ++quotient_;
      missing_ += denominator;
    }
  }
  int64_t value() const { return quotient_; }
  void next() {
    quotient_ += step_quotient_;
    missing_ -= step_rest_;
    if (missing_ < 0) {
      ++quotient_;
      missing_ += denominator_;
    }
  }

 private:
  int64_t denominator_, step_quotient_, step_rest_;
  int64_t quotient_ = 0;
  int64_t missing_ = 0;  // quotient * denominator - numerator, in [0, denominator)
};

// q(a) >= k where a * M >= k * step - below(k): of TFL1 from its formula; of TFL2 because v / 2^r, rounded
// half away from zero, reaches k at v = k * 2^r - 2^(r - 1) + (k <= 0), or k for r = 0, and v = floor((x * M
// + 2^30) / 2^31) reaches V at x * M = V * 2^31 - 2^30.
// False where they are no thresholds, or too large.
bool find_thresholds(const ChannelRequantization& channel, Thresholds* found) {
  const int32_t first = clamped(channel, requantize(channel, channel.accumulator_min)) + 1;
  const int32_t last = clamped(channel, requantize(channel, channel.accumulator_max));
  found->first = first;
  found->count = last < first ? 0 : static_cast<uint32_t>(last - first + 1);
  if (found->count == 0) return true;
  const bool once = channel.contract == format::Contract_TFL1;
  const int32_t right = channel.shift < 0 ? -channel.shift : 0;
  const int32_t left = !once && channel.shift > 0 ? channel.shift : 0;
  const int64_t step = once ? int64_t{1} << (31 - channel.shift) : int64_t{1} << (31 + right);
  const int64_t denominator = int64_t{channel.multiplier} << left;
  const auto below = [&](int32_t k) {
    if (once || right == 0) return step / 2;
    return step / 2 + (k > 0 ? int64_t{1} << 30 : -(int64_t{1} << 30));
  };
  CeilingSequence sequence(first * step - below(first), step, denominator);
  for (uint32_t i = 0; i < found->count; ++i) {
    const int32_t k = found->output(i);
    if (k == 1 && i != 0) sequence = CeilingSequence(step - below(1), step, denominator);
    const int64_t a = sequence.value();
    sequence.next();
    if (a <= channel.accumulator_min || a > channel.accumulator_max) return false;
    if (a <= -kMaxThreshold || a > kMaxThreshold) return false;
    // The formula above is not trusted: the contract's own function says whether this is the threshold.
    if (requantize(channel, a) < k || requantize(channel, a - 1) >= k) return false;
    found->at[i] = static_cast<double>(a);
  }
  return true;
}

// Whether the form reaches every output at its threshold, and not before.
bool is_exact_at(format::FloatEpilogue form, const FloatConstants& c, const Thresholds& thresholds) {
  const auto scale = static_cast<double>(c.scale), offset = static_cast<double>(c.offset);
  const uint32_t num_low = thresholds.num_low();
  bool exact = true;
  // k <= 0. T may be 0, which always gives 0.
  const double low_offset = form == format::FloatEpilogue_SIGNED ? -offset : offset;
  for (uint32_t i = 0; i < num_low; ++i) {
    const double beyond = thresholds.output(i) - 1 - low_offset;
    exact &= (thresholds.at[i] == 0.0 || thresholds.at[i] * scale > beyond) &&
             (thresholds.at[i] - 1.0) * scale <= beyond;
  }
  for (uint32_t i = num_low; i < thresholds.count; ++i) {
    const double least = thresholds.output(i) - offset;
    exact &= thresholds.at[i] * scale >= least && (thresholds.at[i] - 1.0) * scale < least;
  }
  return exact;
}

bool is_exact(const ChannelRequantization& channel, format::FloatEpilogue form, const FloatConstants& c,
              const Thresholds& thresholds) {
  if (!(c.scale >= 0.0f && static_cast<double>(c.scale) < kLargest)) return false;
  if (!(c.offset >= kLeastOffset && c.offset < kOffsetsEnd)) return false;
  for (const int64_t a : {channel.accumulator_min, channel.accumulator_max}) {
    const double product = float_towards_zero(a) * static_cast<double>(c.scale);
    if (!(product > -kLargest && product < kLargest)) return false;
    const int32_t output = clamped(channel, evaluate_float_epilogue(form, c, static_cast<int32_t>(a)));
    if (output != clamped(channel, requantize(channel, a))) return false;
  }
  return is_exact_at(form, c, thresholds);
}

// The middle of the offsets that suit the scale, within rounding. False: no offset suits it.
bool middle_offset(const ChannelRequantization& channel, format::FloatEpilogue form,
                   const Thresholds& thresholds, FloatConstants* constants) {
  const auto scale = static_cast<double>(constants->scale);
  double lowest = kLeastOffset, highest = kOffsetsEnd;
  const auto at_least = [&](double value) { lowest = value > lowest ? value : lowest; };
  const auto at_most = [&](double value) { highest = value < highest ? value : highest; };
  const uint32_t num_low = thresholds.num_low();
  // Under SIGNED the offset of negative accumulators counts the other way.
  const bool is_signed = form == format::FloatEpilogue_SIGNED;
  if (num_low != 0 && !is_signed) return false;
  for (uint32_t i = 0; i < num_low; ++i) {
    const double beyond = 1 - thresholds.output(i) + thresholds.at[i] * scale;
    at_most(thresholds.at[i] == 0.0 ? highest : beyond);
    at_least(beyond - scale);
  }
  for (uint32_t i = num_low; i < thresholds.count; ++i) {
    const double least = thresholds.output(i) - thresholds.at[i] * scale;
    at_least(least);
    at_most(least + scale);
  }
  // The ends, where no clamp hides what is beyond.
  const int32_t first = thresholds.first - 1, last = first + static_cast<int32_t>(thresholds.count);
  const double min = static_cast<double>(channel.accumulator_min) * scale;
  const double max = static_cast<double>(channel.accumulator_max) * scale;
  if (first > channel.clamp_min - channel.zero_point) {
    first > 0 ? at_least(first - min) : min < 0.0 && is_signed ? at_most(min - first + 1) : void();
  }
  if (last < channel.clamp_max - channel.zero_point) {
    last >= 0 ? at_most(last + 1 - max) : is_signed ? at_least(max - last) : void();
  }
  constants->offset = static_cast<float>((lowest + highest) / 2);
  return lowest <= highest;
}

// M * 2^(e - 31), rounded to float.
float nearest_scale(const ChannelRequantization& channel) {
  const double power = std::bit_cast<double>(static_cast<uint64_t>(1023 + channel.shift - 31) << 52);
  return static_cast<float>(static_cast<double>(channel.multiplier) * power);
}

}  // namespace

int32_t evaluate_float_epilogue(format::FloatEpilogue form, const FloatConstants& constants, int32_t a) {
  // At and above 2^24 the sum in double may be one off the sum in float: no output is as large.
  const double product = float_towards_zero(a) * static_cast<double>(constants.scale);
  return static_cast<int32_t>(
      product + static_cast<double>(offset_is_negated(form, a) ? -constants.offset : constants.offset));
}

format::FloatEpilogue float_epilogue_of(int32_t zero_point, int32_t clamp_min) {
  return clamp_min < zero_point ? format::FloatEpilogue_SIGNED : format::FloatEpilogue_PLAIN;
}

bool float_epilogue_is_exact(const ChannelRequantization& channel, format::FloatEpilogue form,
                             const FloatConstants& constants) {
  Thresholds thresholds;
  return is_monotone(channel) && find_thresholds(channel, &thresholds) &&
         is_exact(channel, form, constants, thresholds);
}

std::optional<FloatConstants> prove_float_epilogue(const ChannelRequantization& channel,
                                                   format::FloatEpilogue form) {
  Thresholds thresholds;
  if (!is_monotone(channel) || !find_thresholds(channel, &thresholds)) return std::nullopt;
  const auto nearest = std::bit_cast<int32_t>(nearest_scale(channel));
  for (int32_t i = 0; i <= 2 * kMaxScaleUlps; ++i) {
    const int32_t ulps = i % 2 == 0 ? -(i / 2) : i / 2 + 1;  // 0, 1, -1, 2, -2, ...
    if (nearest + ulps < 0) continue;
    FloatConstants constants;
    constants.scale = std::bit_cast<float>(nearest + ulps);
    if (middle_offset(channel, form, thresholds, &constants) &&
        is_exact(channel, form, constants, thresholds)) {
      return constants;
    }
  }
  return std::nullopt;
}

namespace {

// ---- sums

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

// ---- sums of products in 16 bits

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
