// The formulas of float_elementwise.h as they stand there.
#include "kernels/elementwise/broadcast.h"
#include "kernels/float_elementwise/float_elementwise.h"
#include "kernels/numeric/float_functions.h"

namespace qplan {
namespace {

float held(float v, float least, float most) { return v < least ? least : most < v ? most : v; }

float combined(FloatBinary op, float a, float b) {
  switch (op) {
    case FloatBinary::kAdd:
      return a + b;
    case FloatBinary::kSub:
      return a - b;
    case FloatBinary::kMul:
      return a * b;
    case FloatBinary::kDiv:
      return a / b;
    case FloatBinary::kMaximum:
      return b < a ? a : b;
    case FloatBinary::kMinimum:
      return a < b ? a : b;
    case FloatBinary::kPower:
      return power_f32(a, b);
  }
  return a;
}

float function_of(const FloatUnaryArgs& args, float x) {
  switch (args.function) {
    case FloatUnary::kClamp:
      return held(x, args.p, args.q);
    case FloatUnary::kLeakyRelu:
      return 0.0f < x ? x : x * args.p;
    case FloatUnary::kHardSigmoid:
      return held(x * args.p + args.q, 0.0f, 1.0f);
    case FloatUnary::kLogistic:
      return logistic_f32(x);
    case FloatUnary::kTanh:
      return tanh_f32(x);
    case FloatUnary::kExp:
      return exp_f32(x);
    case FloatUnary::kNegative:
      return float_negative(x);
    case FloatUnary::kAbs:
      return float_abs(x);
    default:
      return float_rare_function(args.function, x, args.p);
  }
}

}  // namespace

namespace float_binary_ref {

Refusal accepts(const FloatBinaryArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const FloatBinaryArgs&) { return 0; }
uint32_t work_items(const FloatBinaryArgs& args) { return num_chunks(args.broadcast.elements); }

void run(const FloatBinaryArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  combine_elements(args.broadcast, range, args.a, args.b, args.output, [&](float a, float b) {
    return held(combined(args.op, a, b), args.clamp_min, args.clamp_max);
  });
}

}  // namespace float_binary_ref

namespace float_unary_ref {

Refusal accepts(const FloatUnaryArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const FloatUnaryArgs&) { return 0; }
uint32_t work_items(const FloatUnaryArgs& args) { return num_chunks(args.elements); }

void run(const FloatUnaryArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  for (uint64_t i = range.begin; i < range.end; ++i) args.output[i] = function_of(args, args.input[i]);
}

}  // namespace float_unary_ref
}  // namespace qplan
