// float_binary and float_unary by vectors of elements.
#include "kernels/float/float.h"
#include "kernels/simd/float_functions.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// The first count (1 .. kLanes) elements; step 0 repeats the first one.
inline VecF32 load_floats(const float* from, uint64_t step, uint32_t count) {
  if (step == 0) return set_reals(*from);
  return count == kLanes ? load_reals(from) : load_reals(from, count);
}

template <typename Op>
inline void for_each_float_pair(const FloatBinaryArgs& args, uint32_t begin, uint32_t end, const Op& op) {
  const VecF32 least = set_reals(args.clamp_min), most = set_reals(args.clamp_max);
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  const uint32_t last = args.broadcast.rank - 1;
  const uint64_t a_step = args.broadcast.a_strides[last], b_step = args.broadcast.b_strides[last];
  for_each_broadcast_run(
      args.broadcast, range.begin, range.end, [&](uint64_t out, uint64_t a, uint64_t b, uint64_t count) {
        for (uint64_t i = 0; i < count; i += kLanes) {
          const uint32_t now = count - i < kLanes ? static_cast<uint32_t>(count - i) : kLanes;
          const VecF32 value = op(load_floats(args.a + a + i * a_step, a_step, now),
                                  load_floats(args.b + b + i * b_step, b_step, now));
          store_reals(args.output + out + i, clamp(value, least, most), now);
        }
      });
}

inline void float_binary_items(const FloatBinaryArgs& args, uint32_t begin, uint32_t end) {
  switch (args.op) {
    case FloatBinary::kAdd:
      return for_each_float_pair(args, begin, end, [](VecF32 a, VecF32 b) { return add(a, b); });
    case FloatBinary::kSub:
      return for_each_float_pair(args, begin, end, [](VecF32 a, VecF32 b) { return sub(a, b); });
    case FloatBinary::kMul:
      return for_each_float_pair(args, begin, end, [](VecF32 a, VecF32 b) { return mul(a, b); });
    case FloatBinary::kDiv:
      return for_each_float_pair(args, begin, end, [](VecF32 a, VecF32 b) { return div(a, b); });
    case FloatBinary::kMaximum:
      return for_each_float_pair(args, begin, end, [](VecF32 a, VecF32 b) { return if_less(b, a, a, b); });
    case FloatBinary::kMinimum:
      return for_each_float_pair(args, begin, end, [](VecF32 a, VecF32 b) { return if_less(a, b, a, b); });
    case FloatBinary::kPower:
      break;  // refused
  }
}

template <typename Function>
inline void for_each_float(const FloatUnaryArgs& args, uint32_t begin, uint32_t end, const Function& f) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  for (uint64_t i = range.begin; i < range.end; i += kLanes) {
    const uint32_t now = range.end - i < kLanes ? static_cast<uint32_t>(range.end - i) : kLanes;
    store_reals(args.output + i, f(load_floats(args.input + i, 1, now)), now);
  }
}

inline void float_unary_items(const FloatUnaryArgs& args, uint32_t begin, uint32_t end) {
  const VecF32 zero = set_reals(0.0f), one = set_reals(1.0f), p = set_reals(args.p), q = set_reals(args.q);
  switch (args.function) {
    case FloatUnary::kClamp:
      return for_each_float(args, begin, end, [&](VecF32 x) { return clamp(x, p, q); });
    case FloatUnary::kLeakyRelu:
      return for_each_float(args, begin, end, [&](VecF32 x) { return if_less(zero, x, x, mul(x, p)); });
    case FloatUnary::kHardSigmoid:
      return for_each_float(args, begin, end, [&](VecF32 x) { return clamp(add(mul(x, p), q), zero, one); });
    case FloatUnary::kLogistic:
      return for_each_float(args, begin, end, [](VecF32 x) { return logistic_lanes(x); });
    case FloatUnary::kTanh:
      return for_each_float(args, begin, end, [](VecF32 x) { return tanh_lanes(x); });
    case FloatUnary::kExp:
      return for_each_float(args, begin, end, [](VecF32 x) { return exp_lanes(x); });
    case FloatUnary::kNegative:
      return for_each_float(args, begin, end, [](VecF32 x) { return negative(x); });
    case FloatUnary::kAbs:
      return for_each_float(args, begin, end, [](VecF32 x) { return absolute(x); });
    default:
      break;
  }
  const ElementRange range = chunk_range(args.elements, begin, end);
  for (uint64_t i = range.begin; i < range.end; ++i)
    args.output[i] = float_rare_function(args.function, args.input[i], args.p);
}

}  // namespace

QPLAN_SIMD_NAMESPACE(float_binary) {

#if !defined(QPLAN_ONLY_RUN)
// Powers are rare, and the reference computes them one by one.
Refusal accepts(const FloatBinaryArgs& args) {
  return args.op == FloatBinary::kPower ? Refusal::kContract : Refusal::kNone;
}

size_t scratch_bytes(const FloatBinaryArgs&) { return 0; }

uint32_t work_items(const FloatBinaryArgs& args) { return num_chunks(args.broadcast.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const FloatBinaryArgs& args, uint32_t begin, uint32_t end, void*) {
  float_binary_items(args, begin, end);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(float_binary)

QPLAN_SIMD_NAMESPACE(float_unary) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const FloatUnaryArgs&) { return Refusal::kNone; }

size_t scratch_bytes(const FloatUnaryArgs&) { return 0; }

uint32_t work_items(const FloatUnaryArgs& args) { return num_chunks(args.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const FloatUnaryArgs& args, uint32_t begin, uint32_t end, void*) {
  float_unary_items(args, begin, end);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(float_unary)

}  // namespace qplan
