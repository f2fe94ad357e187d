#include "src/packer/layer/scales.h"

#include <algorithm>
#include <bit>

#include "src/packer/error.h"

namespace qplan::layer {

QuantizedMultiplier checked_multiplier(double real) {
  constexpr int32_t kMaxShift = 30;
  const QuantizedMultiplier result = quantize_multiplier(real);
  if (result.shift > kMaxShift) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    "its scales make a factor of 2^30 or more between accumulator and output");
  }
  return result;
}

AddMultipliers add_multipliers(float lhs_scale, float rhs_scale, float output_scale) {
  const double lhs = static_cast<double>(lhs_scale), rhs = static_cast<double>(rhs_scale);
  const double twice_max = 2.0 * std::max(lhs, rhs);
  const double output = static_cast<double>(1 << kAddLeftShift) * static_cast<double>(output_scale);
  return {quantize_multiplier(lhs / twice_max), quantize_multiplier(rhs / twice_max),
          quantize_multiplier(twice_max / output)};
}

QuantizedMultiplier mean_multiplier(float input_scale, float output_scale, uint64_t count) {
  const QuantizedMultiplier factor =
      checked_multiplier(static_cast<double>(input_scale) / static_cast<double>(output_scale));
  const int32_t room = std::min({static_cast<int32_t>(std::bit_width(count)) - 1, 32, 31 + factor.shift});
  const uint64_t significand = static_cast<uint64_t>(factor.multiplier) << room;
  return {static_cast<int32_t>(significand / count), factor.shift - room};
}

}  // namespace qplan::layer
