// Functions of one 8-bit value: HARD_SWISH, LEAKY_RELU, ABS, RSQRT, and functions of a real number. Whatever
// arithmetic such an operator has, 256 results say all of it: the row computes them as TFLite's reference
// kernel does and leaves a qnn.lookup.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/numeric/fixed_point.h"
#include "kernels/numeric/float_functions.h"
#include "kernels/numeric/requantize.h"
#include "src/packer/import/tflite/op_context.h"

namespace qplan::tfl {
namespace {

// function: from an integer of the input to an integer of the output, which has the same dtype and is clamped
// to it.
template <typename Function>
void import_table(OpContext& op, const Function& function) {
  const ir::DType dtype = *op.output().dtype;
  std::vector<uint8_t> table(256);
  for (int64_t x = dtype.min(); x <= dtype.max(); ++x) {
    const int64_t y = std::clamp<int64_t>(function(static_cast<int32_t>(x)), dtype.min(), dtype.max());
    table[static_cast<uint8_t>(x)] = static_cast<uint8_t>(y);
  }
  const ir::ValueId entries = op.constant(ir::make_constant(dtype, {256}, table), op.name() + "/table");
  op.define(op.output(), op.emit("qnn.lookup", {op.value(op.input(0)), entries}, {}));
}

// A multiplier for numbers of 20 bits, whose shifted values fit 32.
QuantizedMultiplier table_multiplier(double real) {
  const QuantizedMultiplier result = quantize_multiplier(real);
  if (result.shift > 22) throw Unsupported{"scales that make a factor of 2^22 or more"};
  return result;
}

// The sum in float32, as TFLite adds the zero point.
float rounded_sum(float value, int32_t zero_point) {
  return std::round(value) + static_cast<float>(zero_point);
}

// ---- HARD_SWISH: docs/numerics/hard_swish.md ----

// multiplier * 2^(exponent - 15) is the real number.
struct Multiplier16 {
  int32_t multiplier;  // 0 or in [2^14, 2^15)
  int32_t exponent;
};

Multiplier16 multiplier16(float real) {
  const QuantizedMultiplier m = quantize_multiplier(static_cast<double>(real));
  return {std::min((m.multiplier >> 16) + (m.multiplier >> 15 & 1), INT16_MAX), m.shift};
}

int32_t to_int16(int32_t value) { return std::clamp<int32_t>(value, INT16_MIN, INT16_MAX); }

// a * b / 2^15 of numbers of 16 bits; rounded: to the nearest, halves up; not rounded: towards zero.
int32_t high_product_rounded(int32_t a, int32_t b) { return to_int16((a * b + (1 << 14)) >> 15); }
int32_t high_product_truncated(int32_t a, int32_t b) { return to_int16(a * b / (1 << 15)); }

// x / 2^n, halves away from zero.
int32_t divide_by_power(int32_t x, int32_t n) {
  const int32_t half = n == 0 ? 0 : 1 << (n - 1);
  return x < 0 ? -((-x + half) >> n) : (x + half) >> n;
}

struct HardSwish {
  QuantParams in, out;
  Multiplier16 output;  // from 1/128 of the input's scale to the output's
  Multiplier16 ramp;    // from there to the scale in which 3.0 is 2^15

  int32_t operator()(int32_t x) const {
    const int32_t fine = (x - in.zero_point) * 128;
    // 2^15 * min(max(real / 3, -1), 1); the last bit of a left shift comes after the rounding.
    int32_t ramped = fine;
    if (ramp.exponent > 1) ramped = to_int16(shifted_left(ramped, ramp.exponent - 1));
    ramped = high_product_rounded(ramped, ramp.multiplier);
    if (ramp.exponent > 0) ramped = to_int16(ramped * 2);
    if (ramp.exponent < 0) ramped = divide_by_power(ramped, -ramp.exponent);
    const int32_t factor = (ramped + (1 << 15)) >> 1;  // 2^15 * min(max(real + 3, 0), 6) / 6
    const int32_t product = high_product_truncated(factor, high_product_rounded(fine, output.multiplier));
    // TFLite adds in 16 bits, and what leaves them wraps.
    return static_cast<int16_t>(divide_by_power(product, -output.exponent) + out.zero_point);
  }

  // Saturated to 32 bits.
  static int32_t shifted_left(int32_t value, int32_t bits) {
    const int64_t wide = int64_t{value} * (int64_t{1} << bits);
    return static_cast<int32_t>(std::clamp<int64_t>(wide, INT32_MIN, INT32_MAX));
  }
};

// ---- LEAKY_RELU: docs/numerics/leaky_relu.md ----

struct LeakyRelu {
  QuantParams in, out;
  QuantizedMultiplier slope_above, slope_below;  // of values that are not negative, and of negative ones

  int32_t operator()(int32_t x) const {
    const int32_t value = x - in.zero_point;
    const QuantizedMultiplier& slope = value >= 0 ? slope_above : slope_below;
    return requantize_tfl2(value, slope.multiplier, slope.shift) + out.zero_point;
  }
};

}  // namespace

void import_hard_swish(OpContext& op) {
  op.expect_counts(1, 1, 1);
  op.require_same_8bit({&op.input(0), &op.output()});
  HardSwish f = {op.quantization(op.input(0)), op.quantization(op.output()), {}, {}};
  const float fine_scale = (1.0f / 128.0f) * f.in.scale;
  f.output = multiplier16(fine_scale / f.out.scale);
  f.ramp = multiplier16(fine_scale / (3.0f / 32768.0f));
  // TFLite refuses the first; its shifts of numbers of 16 bits mean nothing beyond the others.
  if (f.output.exponent > 0 || f.output.exponent < -15 || f.ramp.exponent < -15 || f.ramp.exponent > 31) {
    throw Unsupported{"input scale " + to_text(f.in.scale) + " and output scale " + to_text(f.out.scale) +
                      ", which its 16-bit arithmetic has no multipliers for"};
  }
  import_table(op, f);
}

namespace {

// LEAKY_RELU of int16 is a PRELU whose factor is one for all: 1 in units of alpha.
void import_leaky_relu_int16(OpContext& op) {
  op.require_same_quantized({&op.input(0), &op.output()});
  const float alpha = op.options<tflite::LeakyReluOptions>().alpha();
  if (!(alpha >= 0) || !std::isfinite(alpha)) throw Unsupported{"alpha " + to_text(alpha)};
  const QuantParams in = op.quantization(op.input(0)), out = op.quantization(op.output());
  const std::vector<int16_t> one = {static_cast<int16_t>(alpha == 0 ? 0 : 1)};
  const ir::ValueId factor = op.constant(ir::make_constant(ir::kInt16, {}, one), op.name() + "/alpha");
  op.define(op.output(), op.emit("qnn.prelu",
                                 {op.value(op.input(0)), factor, op.scale(in.scale), op.zero_point(0),
                                  op.scale(alpha == 0 ? 1.0f : alpha), op.zero_point(0), op.scale(out.scale),
                                  op.zero_point(0)},
                                 {}));
}

}  // namespace

void import_leaky_relu(OpContext& op) {
  op.expect_counts(1, 1, 1);
  if (op.input(0).dtype == ir::kInt16) return import_leaky_relu_int16(op);
  op.require_same_8bit({&op.input(0), &op.output()});
  const float alpha = op.options<tflite::LeakyReluOptions>().alpha();
  LeakyRelu f = {op.quantization(op.input(0)), op.quantization(op.output()), {}, {}};
  const float above = f.in.scale / f.out.scale, below = f.in.scale * alpha / f.out.scale;
  // Below 2^22 no sum leaves 32 bits. TFLite has no agreed arithmetic for negative multipliers.
  constexpr float kLimit = 0x1p22f;
  if (!(above < kLimit) || !(below >= 0) || !(below < kLimit)) {
    throw Unsupported{"alpha " + to_text(alpha) + ", input scale " + to_text(f.in.scale) +
                      " and output scale " + to_text(f.out.scale) +
                      ", which make slopes outside of [0, 2^22)"};
  }
  f.slope_above = quantize_multiplier(static_cast<double>(above));
  f.slope_below = quantize_multiplier(static_cast<double>(below));
  import_table(op, f);
}

// ---- functions of a real number, in float32: docs/numerics/tables.md ----
namespace {

// Half away from zero, saturated to where every result is clamped anyway.
int32_t rounded(float value) {
  constexpr float kLimit = 1048576.0f;
  if (!(value > -kLimit)) return -(1 << 20);
  if (!(value < kLimit)) return 1 << 20;
  const auto whole = static_cast<int32_t>(value);
  const float rest = value - static_cast<float>(whole);
  return rest >= 0.5f ? whole + 1 : rest <= -0.5f ? whole - 1 : whole;
}

// The functions in double, rounded to float32: what a good math library gives, on every host.
float exp_float(float x) {
  const double value = exp_double(static_cast<double>(x));
  constexpr float kMost = std::numeric_limits<float>::max();
  return value > static_cast<double>(kMost) ? std::numeric_limits<float>::infinity()
                                            : static_cast<float>(value);
}

float tanh_float(float x) {
  const double e = exp_double(-2.0 * std::fabs(static_cast<double>(x)));
  const double magnitude = std::fabs(x) < 1e-4f ? std::fabs(static_cast<double>(x)) : (1.0 - e) / (1.0 + e);
  return static_cast<float>(x < 0 ? -magnitude : magnitude);
}

// The complement of the error function: a series without cancellation up to 3, then a continued fraction.
double erfc_double(double x) {
  constexpr double kTwoOverSqrtPi = 1.1283791670955126, kSqrtPi = 1.7724538509055161;
  const double magnitude = x < 0 ? -x : x;
  double above = 0.0;  // erfc of the magnitude
  if (magnitude < 3.0) {
    double term = magnitude, sum = magnitude;
    for (int32_t n = 1; n < 100; ++n) {
      term *= 2.0 * magnitude * magnitude / (2.0 * n + 1.0);
      sum += term;
    }
    above = 1.0 - kTwoOverSqrtPi * exp_double(-magnitude * magnitude) * sum;
  } else {
    double fraction = magnitude;
    for (int32_t n = 60; n >= 1; --n) fraction = magnitude + 0.5 * n / fraction;
    above = exp_double(-magnitude * magnitude) / (fraction * kSqrtPi);
  }
  return x < 0 ? 2.0 - above : above;
}

float gelu_float(float x) {
  return 0.5f * x * static_cast<float>(erfc_double(static_cast<double>(x * -0.70710678118654752440f)));
}

float gelu_approximate_float(float x) {
  constexpr float kSqrtTwoOverPi = 0.79788456080286535588f;
  return 0.5f * x * (1.0f + tanh_float(kSqrtTwoOverPi * (x + 0.044715f * x * x * x)));
}

// As TFLite fills its look-up tables: the product with the inverse of the output's scale.
template <typename Function>
void import_real_function(OpContext& op, const Function& function) {
  op.expect_counts(1, 1, 1);
  op.require_same_8bit({&op.input(0), &op.output()});
  const QuantParams in = op.quantization(op.input(0)), out = op.quantization(op.output());
  const float inverse = 1.0f / out.scale;
  if (!std::isfinite(inverse)) throw Unsupported{"output scale " + to_text(out.scale)};
  import_table(op, [&](int32_t x) {
    const float real = in.scale * static_cast<float>(x - in.zero_point);
    const float value = function(real);
    return rounded(rounded_sum(value * inverse, out.zero_point));
  });
}

}  // namespace

void import_tanh_table(OpContext& op) { import_real_function(op, tanh_float); }

void import_exp(OpContext& op) {
  if (op.num_inputs() > 0 && op.input(0).dtype == ir::kUint8) throw Unsupported{"uint8 input"};
  import_real_function(op, exp_float);
}

void import_elu(OpContext& op) {
  if (op.num_inputs() > 0 && op.input(0).dtype == ir::kUint8) throw Unsupported{"uint8 input"};
  import_real_function(op, [](float x) { return x < 0 ? exp_float(x) - 1.0f : x; });
}

void import_gelu(OpContext& op) {
  const auto* options = op.optional_options<tflite::GeluOptions>();
  const bool approximate = options != nullptr && options->approximate();
  import_real_function(op, approximate ? gelu_approximate_float : gelu_float);
}

// What is not positive gives the least output.
void import_log(OpContext& op) {
  op.expect_counts(1, 1, 1);
  op.require_same_8bit({&op.input(0), &op.output()});
  if (op.input(0).dtype == ir::kUint8) throw Unsupported{"uint8 input"};
  const QuantParams out = op.quantization(op.output());
  const float least = static_cast<float>(INT8_MIN - out.zero_point) * out.scale;
  import_real_function(op, [least](float x) {
    return x <= 0.0f ? least : static_cast<float>(log_double(static_cast<double>(x)));
  });
}

// The quotient, not the product with the inverse. TFLite's kernel fails where the input is negative; here
// that counts as 0.
void import_sqrt(OpContext& op) {
  op.expect_counts(1, 1, 1);
  op.require_same_8bit({&op.input(0), &op.output()});
  if (op.input(0).dtype == ir::kUint8) throw Unsupported{"uint8 input"};
  const QuantParams in = op.quantization(op.input(0)), out = op.quantization(op.output());
  import_table(op, [&](int32_t x) {
    const float real = in.scale * static_cast<float>(x - in.zero_point);
    return rounded(std::sqrt(real > 0.0f ? real : 0.0f) / out.scale) + out.zero_point;
  });
}

// ---- ABS and RSQRT, in integers ----

void import_abs(OpContext& op) {
  op.expect_counts(1, 1, 1);
  if (is_integer(op.input(0))) {
    const ir::ValueId negative = negated_integers(op);
    return op.define(op.output(), op.emit("maximum", {op.value(op.input(0)), negative}, {}));
  }
  op.require_same_8bit({&op.input(0), &op.output()});
  if (op.input(0).dtype == ir::kUint8) throw Unsupported{"uint8 input"};
  const QuantParams in = op.quantization(op.input(0)), out = op.quantization(op.output());
  const QuantizedMultiplier scale = table_multiplier(static_cast<double>(in.scale / out.scale));
  import_table(op, [&](int32_t x) {
    const int32_t value = x < in.zero_point ? in.zero_point - x : x - in.zero_point;
    return (in.scale == out.scale ? value : requantize_tfl2(value, scale.multiplier, scale.shift)) +
           out.zero_point;
  });
}

// 1 / sqrt in 20 bits of fraction. TFLite's kernel fails where the input is negative; here that counts as 0,
// which gives the largest output.
void import_rsqrt(OpContext& op) {
  op.expect_counts(1, 1, 1);
  op.require_same_8bit({&op.input(0), &op.output()});
  if (op.input(0).dtype == ir::kUint8) throw Unsupported{"uint8 input"};
  const QuantParams in = op.quantization(op.input(0)), out = op.quantization(op.output());
  constexpr int32_t kFraction = 20;
  // TFLite takes the root in float32 and divides in double.
  const auto root = static_cast<double>(std::sqrt(in.scale) * out.scale);
  const QuantizedMultiplier scale = table_multiplier(1.0 / root);
  if (scale.shift - kFraction < -31) throw Unsupported{"scales whose product is too large"};
  import_table(op, [&](int32_t x) -> int32_t {
    const int32_t value = x - in.zero_point;
    if (value <= 0) return INT8_MAX;
    const InverseSqrt inverse = fixed_inverse_sqrt(value);
    const int32_t fraction = requantize_tfl2(1, inverse.multiplier, inverse.shift + kFraction);
    return requantize_tfl2(fraction, scale.multiplier, scale.shift - kFraction) + out.zero_point;
  });
}

}  // namespace qplan::tfl
