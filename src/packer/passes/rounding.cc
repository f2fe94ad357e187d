#include "src/packer/passes/rounding.h"

#include <cmath>
#include <string>

#include "src/packer/op/op_def.h"

namespace qplan::passes {
namespace {

// `rounded` is a whole number or infinite; beyond 2^53, where the sum would round, it is far outside anyway.
Quantized saturate(double rounded, int32_t zero_point, ir::DType dtype) {
  const double sum = rounded + zero_point;
  const auto least = static_cast<double>(dtype.min()), most = static_cast<double>(dtype.max());
  if (sum < least) return {static_cast<int32_t>(least), true};
  if (sum > most) return {static_cast<int32_t>(most), true};
  return {static_cast<int32_t>(sum), false};
}

}  // namespace

QuantizeRounding quantize_rounding(const ir::Node& quantize) {
  const std::string& rule = op::attr_string(quantize, "rule");
  if (rule == "mul_even") return QuantizeRounding::kMulEven;
  if (rule == "div_even") return QuantizeRounding::kDivEven;
  if (rule == "div_away") return QuantizeRounding::kDivAway;
  const bool even = op::attr_string(quantize, "contract") == "f32e";
  return even ? QuantizeRounding::kDivEven : QuantizeRounding::kDivAway;
}

Quantized Quantizer::operator()(float x) const {
  const float real = rounding == QuantizeRounding::kMulEven ? x * (1.0f / scale) : x / scale;
  if (std::isnan(real)) return {zero_point, false};
  const auto exact = static_cast<double>(real);
  // In double a float's fraction is exact, and so are both roundings.
  const double rounded = rounding == QuantizeRounding::kDivAway ? std::round(exact) : std::nearbyint(exact);
  return saturate(rounded, zero_point, dtype);
}

Quantized round_to_int32(double x) {
  if (std::isnan(x)) return {0, false};
  return saturate(std::nearbyint(x), 0, ir::kInt32);
}

}  // namespace qplan::passes
