// TFLite's functions of one 8-bit number, which the importer leaves as tables: what a table must be, written
// from docs/numerics/logistic.md, hard_swish.md, leaky_relu.md and softmax.md, and the importer's own.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_TFLITE_FUNCTIONS_H_
#define QPLAN_TESTS_PACKER_PIPELINE_TFLITE_FUNCTIONS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "tests/packer/import/tflite_builder.h"
#include "tests/packer/pipeline/naive_interpreter.h"

namespace qplan::naive {

struct TfliteFunction {
  tflite::BuiltinOperator op;
  ir::DType dtype;  // of the input and the output
  float in_scale, out_scale;
  int32_t in_zero_point, out_zero_point;
  float alpha = 0;           // of LEAKY_RELU
  bool approximate = false;  // of GELU
};
// What the table of a qnn.lookup stands for, by the name of the node.
using TfliteFunctions = std::map<std::string, TfliteFunction>;

// ---- integers ----

inline int64_t saturate16(int64_t x) { return std::clamp<int64_t>(x, INT16_MIN, INT16_MAX); }

// 1 / sqrt(s) as multiplier and shift.
inline Multiplier inverse_sqrt(int64_t s) {
  constexpr int64_t kMost = INT32_MAX, kLeast = INT32_MIN;
  const auto times = [](int64_t a, int64_t b) { return (a * b + (int64_t{1} << 30)) >> 31; };
  const auto left = [&](int64_t x, int bits) { return std::clamp(x * (int64_t{1} << bits), kLeast, kMost); };
  if (s <= 1) return {kMost, 0};
  int r = 11;
  for (; s >= int64_t{1} << 29; s /= 4) ++r;
  for (; s < int64_t{1} << 27; s *= 4) --r;
  const int64_t h = ((s >> 1) + 1) / 2;
  int64_t x = int64_t{1} << 28;
  for (int i = 0; i < 5; ++i) {
    const int64_t cube = left(times(times(x, x), x), 6);
    x = left(times(int64_t{3} << 27, x) - times(h, cube), 3);
  }
  x = times(x, 1518500250);
  return r >= 0 ? Multiplier{x, -r} : Multiplier{x * (int64_t{1} << -r), 0};
}

// A multiplier for numbers of 16 bits is rounded half up and at most 2^15 - 1.
inline Multiplier quantize_multiplier16(float real) {
  const Multiplier by = quantize_multiplier(static_cast<double>(real));
  return {std::min<int64_t>((by.m + (1 << 15)) >> 16, INT16_MAX), by.e};
}

inline int64_t hard_swish(const TfliteFunction& f, int64_t x) {
  const float fine_scale = f.in_scale / 128.0f;
  const Multiplier m = quantize_multiplier16(fine_scale / f.out_scale);
  const Multiplier r = quantize_multiplier16(fine_scale / (3.0f / 32768.0f));
  const int64_t fine = 128 * (x - f.in_zero_point);
  const int64_t scaled = saturate16((fine * m.m + (1 << 14)) >> 15);
  int64_t ramp = saturate16(fine * (int64_t{1} << std::max(r.e - 1, 0)));
  ramp = saturate16((ramp * r.m + (1 << 14)) >> 15);
  if (r.e > 0) ramp = saturate16(2 * ramp);
  if (r.e < 0) ramp = static_cast<int64_t>(half_away(std::ldexp(static_cast<double>(ramp), r.e)));
  const int64_t factor = (ramp + (1 << 15)) >> 1;
  const int64_t product = factor * scaled / (1 << 15);  // towards zero
  const double y = half_away(std::ldexp(static_cast<double>(product), m.e));
  return static_cast<int16_t>(static_cast<int64_t>(y) + f.out_zero_point);
}

// ---- reals: each operation is rounded to float32 ----

inline float rounded_once(double x) { return static_cast<float>(x); }

inline float tflite_real_function(const TfliteFunction& f, float v) {
  const auto wide = static_cast<double>(v);
  switch (f.op) {
    case tflite::BuiltinOperator_TANH:
      return rounded_once(std::tanh(wide));
    case tflite::BuiltinOperator_EXP:
      return rounded_once(std::exp(wide));
    case tflite::BuiltinOperator_ELU:
      return v < 0 ? rounded_once(std::exp(wide)) - 1.0f : v;
    case tflite::BuiltinOperator_LOG:
      if (v <= 0) return static_cast<float>(-128 - f.out_zero_point) * f.out_scale;
      return rounded_once(std::log(wide));
    default:
      break;  // GELU
  }
  if (!f.approximate)
    return 0.5f * v * rounded_once(std::erfc(static_cast<double>(v * rounded_once(-std::sqrt(0.5)))));
  const float inner = v + 0.044715f * v * v * v;
  const auto scaled = static_cast<double>(rounded_once(std::sqrt(2 / std::acos(-1.0))) * inner);
  return 0.5f * v * (1.0f + rounded_once(std::tanh(scaled)));
}

inline int64_t tflite_function(const TfliteFunction& f, int64_t x) {
  const int64_t c = x - f.in_zero_point;
  const float v = f.in_scale * static_cast<float>(c);
  int64_t y = 0;
  const auto by = [](float real) { return quantize_multiplier(static_cast<double>(real)); };
  switch (f.op) {
    case tflite::BuiltinOperator_HARD_SWISH:
      y = hard_swish(f, x);
      break;
    case tflite::BuiltinOperator_LEAKY_RELU:
      y = f.out_zero_point +
          (c >= 0 ? tfl2(c, by(f.in_scale / f.out_scale)) : tfl2(c, by(f.in_scale * f.alpha / f.out_scale)));
      break;
    case tflite::BuiltinOperator_ABS:
      y = f.out_zero_point +
          (f.in_scale == f.out_scale ? std::abs(c) : tfl2(std::abs(c), by(f.in_scale / f.out_scale)));
      break;
    case tflite::BuiltinOperator_RSQRT: {
      if (c <= 0) return f.dtype.max();
      const Multiplier inverse = inverse_sqrt(c);
      Multiplier scale = quantize_multiplier(1.0 / static_cast<double>(std::sqrt(f.in_scale) * f.out_scale));
      scale.e -= 20;
      y = f.out_zero_point + tfl2(tfl2(1, {inverse.m, inverse.e + 20}), scale);
      break;
    }
    case tflite::BuiltinOperator_SQRT:
      y = f.out_zero_point +
          static_cast<int64_t>(half_away(static_cast<double>(std::sqrt(std::max(v, 0.0f)) / f.out_scale)));
      break;
    default: {
      const float scaled = tflite_real_function(f, v) * (1.0f / f.out_scale);
      const double limited = std::clamp(static_cast<double>(scaled), -0x1p20, 0x1p20);
      y = f.out_zero_point + static_cast<int64_t>(half_away(limited));
    }
  }
  return std::clamp<int64_t>(y, f.dtype.min(), f.dtype.max());
}

// ---- the importer's ----

// Empty where it refuses the scales.
inline std::vector<uint8_t> imported_table(const TfliteFunction& f) {
  tflite_test::TfliteBuilder b;
  const auto type = f.dtype == ir::kInt8 ? tflite::TensorType_INT8 : tflite::TensorType_UINT8;
  const int32_t x = b.activation("x", {1, 4}, f.in_scale, f.in_zero_point, type);
  const int32_t y = b.activation("y", {1, 4}, f.out_scale, f.out_zero_point, type);
  if (f.op == tflite::BuiltinOperator_LEAKY_RELU) {
    b.op(f.op, {x}, {y}, tflite::BuiltinOptions_LeakyReluOptions,
         tflite::CreateLeakyReluOptions(b.fbb(), f.alpha).Union());
  } else if (f.op == tflite::BuiltinOperator_GELU) {
    b.op(f.op, {x}, {y}, tflite::BuiltinOptions_GeluOptions,
         tflite::CreateGeluOptions(b.fbb(), f.approximate).Union());
  } else {
    b.op(f.op, {x}, {y});
  }
  try {
    const ir::Module module = import_tflite(b.finish({x}, {y}), "net.tflite");
    const auto bytes = module.main().value(module.main().nodes().back().operands[1]).constant->bytes();
    return {bytes.begin(), bytes.end()};
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    return {};
  }
}

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_TFLITE_FUNCTIONS_H_
