#include "src/packer/import/pytorch/quantize_value.h"

#include <algorithm>
#include <cmath>

#include "src/packer/import/text.h"
#include "src/packer/ir/cat.h"

namespace qplan::pt {

int64_t round_half_even(double value) {
  const auto whole = static_cast<int64_t>(value);
  const double rest = value - static_cast<double>(whole);
  const bool odd = whole % 2 != 0;
  if (rest > 0.5 || (rest == 0.5 && odd)) return whole + 1;
  if (rest < -0.5 || (rest == -0.5 && odd)) return whole - 1;
  return whole;
}

int64_t quantize_value(double value, QuantParams quantization, ir::DType dtype) {
  const float product = static_cast<float>(value) * (1.0f / quantization.scale);
  if (std::isnan(product)) importer::invalid("a bound is not a number");
  constexpr double kMost = 1e15;  // beyond every dtype; exact in int64_t
  const int64_t rounded = round_half_even(std::clamp(static_cast<double>(product), -kMost, kMost));
  return std::clamp(quantization.zero_point + rounded, dtype.min(), dtype.max());
}

QuantParams checked_quantization(double scale, int64_t zero_point, ir::DType dtype) {
  const auto narrow = static_cast<float>(scale);
  if (!std::isfinite(narrow) || narrow <= 0) {
    importer::invalid("the scale is " + importer::to_text(narrow) + ", expected a positive finite number");
  }
  if (zero_point < dtype.min() || zero_point > dtype.max()) {
    importer::invalid(cat("zero point ", zero_point, " is outside of ", dtype));
  }
  return {narrow, static_cast<int32_t>(zero_point)};
}

}  // namespace qplan::pt
