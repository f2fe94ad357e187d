// Functions of one 8-bit value: HARD_SWISH, LEAKY_RELU. Whatever arithmetic such an operator has, 256 results
// say all of it: the row computes them as TFLite's reference kernel does and leaves a qnn.lookup.
#include <algorithm>
#include <cstdint>

#include "kernels/numeric/quantize_multiplier.h"
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

void import_leaky_relu(OpContext& op) {
  op.expect_counts(1, 1, 1);
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

}  // namespace qplan::tfl
