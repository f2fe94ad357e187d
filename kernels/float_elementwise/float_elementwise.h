// float_binary and float_unary: each output element of one or two float32 elements, each operation rounded to
// float32 by itself (docs/numerics/float32.md).
//
//   float_binary: out = clamp(op(a, b)), a and b broadcast as NumPy does
//     kAdd a + b, kSub a - b, kMul a * b, kDiv a / b,
//     kMaximum b < a ? a : b, kMinimum a < b ? a : b, kPower a^b
//   float_unary:  out = f(x)
//     kClamp clamp(x), kLeakyRelu 0 < x ? x : x * p, kHardSigmoid: x * p + q held in [0, 1],
//     kNegative, kAbs,
//     kElu 0 < x ? x : p * (exp(x) - 1),
//     kLogistic, kTanh, kExp, kSqrt, kLog, kErf, kSin, kCos, kFloor, kCeil, kRound (half to even), kRsqrt 1 /
//     sqrt(x): kernels/numeric/float_functions.h
//
//   clamp(v) = v < clamp_min ? clamp_min : clamp_max < v ? clamp_max : v
#ifndef QPLAN_KERNELS_FLOAT_ELEMENTWISE_FLOAT_ELEMENTWISE_H_
#define QPLAN_KERNELS_FLOAT_ELEMENTWISE_FLOAT_ELEMENTWISE_H_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/float_functions.h"
#include "kernels/numeric/wide_functions.h"
#include "kernels/variant.h"

namespace qplan {

// The numbers are those of format/plan.fbs.
enum class FloatBinary : uint8_t { kAdd, kSub, kMul, kDiv, kMaximum, kMinimum, kPower };
enum class FloatUnary : uint8_t {
  kClamp,
  kLeakyRelu,
  kHardSigmoid,
  kLogistic,
  kTanh,
  kExp,
  kNegative,
  kAbs,
  kSqrt,  // from here on float_rare_function
  kRsqrt,
  kLog,
  kFloor,
  kCeil,
  kRound,
  kErf,
  kSin,
  kCos,
  kElu,
};

struct FloatBinaryArgs {
  FloatBinary op = FloatBinary::kAdd;
  const float* a = nullptr;
  const float* b = nullptr;
  float* output = nullptr;
  float clamp_min = 0.0f;  // numbers, clamp_min <= clamp_max
  float clamp_max = 0.0f;
  Broadcast broadcast;
};

struct FloatUnaryArgs {
  FloatUnary function = FloatUnary::kClamp;
  const float* input = nullptr;
  float* output = nullptr;
  uint64_t elements = 0;
  float p = 0.0f;  // kClamp: clamp_min
  float q = 0.0f;  // kClamp: clamp_max
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_FLOAT_BINARY_VARIANTS \
  QPLAN_SIMD_VARIANTS(float_binary) \
  QPLAN_VARIANT(float_binary_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_FLOAT_UNARY_VARIANTS \
  QPLAN_SIMD_VARIANTS(float_unary) \
  QPLAN_VARIANT(float_unary_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FloatBinaryArgs)
QPLAN_FLOAT_BINARY_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FloatUnaryArgs)
QPLAN_FLOAT_UNARY_VARIANTS
#undef QPLAN_VARIANT

// Functions that every variant computes one by one.
static inline float float_rare_function(FloatUnary function, float x, float p) {
  switch (function) {
    case FloatUnary::kSqrt:
      return sqrt_f32(x);
    case FloatUnary::kRsqrt:
      return 1.0f / sqrt_f32(x);
    case FloatUnary::kLog:
      return log_f32(x);
    case FloatUnary::kFloor:
      return floor_f32(x);
    case FloatUnary::kCeil:
      return ceil_f32(x);
    case FloatUnary::kRound:
      return round_f32(x);
    case FloatUnary::kErf:
      return erf_f32(x);
    case FloatUnary::kSin:
      return sin_f32(x);
    case FloatUnary::kCos:
      return cos_f32(x);
    case FloatUnary::kElu:
      return 0.0f < x ? x : p * exp_less_one_f32(x);
    default:
      return x;
  }
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_FLOAT_ELEMENTWISE_FLOAT_ELEMENTWISE_H_
