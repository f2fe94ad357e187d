// mul, maximum, minimum, prelu and lut8 by vectors; add_simd.cc has add and sub.
#include <stddef.h>
#include <stdint.h>

#include "kernels/elementwise/binary_simd.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/simd/simd.h"

namespace qplan {

// ---- mul ----

namespace {

inline void mul_tfl2(const MulArgs& args, uint32_t begin, uint32_t end) {
  const VecI32 zero1 = set_ints(args.input1_zero_point);
  const VecI32 zero2 = set_ints(args.input2_zero_point);
  const Requant requant = set_requant(args.output_multiplier, args.output_shift);
  const Output output = set_output(args.output_zero_point, args.clamp_min, args.clamp_max);
  for_each_pair(args, begin, end, [&](VecI32 a, VecI32 b) {
    return finish(requantize(mul(sub(a, zero1), sub(b, zero2)), requant), output);
  });
}

inline void mul_f32e(const MulArgs& args, uint32_t begin, uint32_t end) {
  const VecI32 zero1 = set_ints(args.input1_zero_point);
  const VecI32 zero2 = set_ints(args.input2_zero_point);
  const VecF32 scale1 = set_reals(args.input1_scale);
  const VecF32 scale2 = set_reals(args.input2_scale);
  const VecF32 output_scale = set_reals(args.output_scale);
  const RealOutput output = set_real_output(args.output_zero_point, args.clamp_min, args.clamp_max);
  for_each_pair(args, begin, end, [&](VecI32 a, VecI32 b) {
    const VecF32 product = mul(dequantize(a, zero1, scale1), dequantize(b, zero2, scale2));
    return finish(div(product, output_scale), output);
  });
}

inline void mul_lanes(const MulArgs& args, uint32_t begin, uint32_t end) {
  if (args.contract == Contract::kF32e) {
    mul_f32e(args, begin, end);
  } else {
    mul_tfl2(args, begin, end);
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(mul) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const MulArgs& args) { return args.dtype == Dtype::kS16 ? Refusal::kDtype : Refusal::kNone; }

size_t scratch_bytes(const MulArgs&) { return 0; }

uint32_t work_items(const MulArgs& args) { return num_chunks(args.broadcast.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const MulArgs& args, uint32_t begin, uint32_t end, void*) { mul_lanes(args, begin, end); }
#endif

}  // QPLAN_SIMD_NAMESPACE(mul)

// ---- maximum, minimum ----

namespace {

// By whole vectors of bytes. int8 is compared as uint8 with the sign bias, which keeps the order.
inline void minmax_bytes(const MinmaxArgs& args, uint32_t begin, uint32_t end) {
  const VecI32 sign_bias = set_bytes(args.dtype == Dtype::kS8 ? 0x80 : 0);
  for_each_vector_pair(args, begin, end, [&](const VectorPair& pair) {
    const VecI32 a = bit_xor(load_repeated(pair.a, pair.a_step, pair.count), sign_bias);
    const VecI32 b = bit_xor(load_repeated(pair.b, pair.b_step, pair.count), sign_bias);
    const VecI32 chosen = args.is_maximum ? max_bytes(a, b) : min_bytes(a, b);
    store_vector(pair.output, bit_xor(chosen, sign_bias), pair.count);
  });
}

}  // namespace

QPLAN_SIMD_NAMESPACE(minmax) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const MinmaxArgs& args) {
  return args.dtype == Dtype::kS16 ? Refusal::kDtype : Refusal::kNone;
}

size_t scratch_bytes(const MinmaxArgs&) { return 0; }

uint32_t work_items(const MinmaxArgs& args) { return num_chunks(args.broadcast.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const MinmaxArgs& args, uint32_t begin, uint32_t end, void*) { minmax_bytes(args, begin, end); }
#endif

}  // QPLAN_SIMD_NAMESPACE(minmax)

// ---- prelu ----

namespace {

// The input is a, alpha is b.
struct PreluPairs {
  explicit PreluPairs(const PreluArgs& args)
      : dtype(args.dtype), a(args.input), b(args.alpha), output(args.output), broadcast(args.broadcast) {}

  Dtype dtype;
  const void* a;
  const void* b;
  void* output;
  const Broadcast& broadcast;
};

// An output is the sum of two parts, of what is above the zero point and of what is below it: one of them is
// 0 for each element, and requantises to 0.
inline void prelu_lanes(const PreluArgs& args, uint32_t begin, uint32_t end) {
  const VecI32 zero = set_ints(0);
  const VecI32 input_zero = set_ints(args.input_zero_point), alpha_zero = set_ints(args.alpha_zero_point);
  const Requant above = set_requant(args.above_multiplier, args.above_shift);
  const Requant below = set_requant(args.below_multiplier, args.below_shift);
  const Output output = set_output(args.output_zero_point, dtype_min(args.dtype), dtype_max(args.dtype));
  for_each_pair(PreluPairs(args), begin, end, [&](VecI32 x, VecI32 alpha) {
    const VecI32 v = sub(x, input_zero);
    const VecI32 product = mul(min(v, zero), sub(alpha, alpha_zero));
    return finish(add(requantize(max(v, zero), above), requantize(product, below)), output);
  });
}

}  // namespace

QPLAN_SIMD_NAMESPACE(prelu) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const PreluArgs& args) {
  return args.dtype == Dtype::kS16 ? Refusal::kDtype : Refusal::kNone;
}

size_t scratch_bytes(const PreluArgs&) { return 0; }

uint32_t work_items(const PreluArgs& args) { return num_chunks(args.broadcast.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const PreluArgs& args, uint32_t begin, uint32_t end, void*) { prelu_lanes(args, begin, end); }
#endif

}  // QPLAN_SIMD_NAMESPACE(prelu)

// ---- lut8 ----

namespace {

// A vector at a time, by the vocabulary's look-up in a table.
inline void lut8_bytes(const Lut8Args& args, uint32_t begin, uint32_t end) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  const ByteTable table(args.table);
  uint64_t i = range.begin;
  for (; i + kBytes <= range.end; i += kBytes) {
    store_ints(args.output + i, table.look_up(load_ints(args.input + i)));
  }
  if (kLoadsFewBytes && i < range.end) {
    const uint32_t left = static_cast<uint32_t>(range.end - i);
    store_vector(args.output + i, table.look_up(load_vector(args.input + i, left)), left);
    return;
  }
  for (; i < range.end; ++i) args.output[i] = args.table[args.input[i]];
}

}  // namespace

QPLAN_SIMD_NAMESPACE(lut8) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Lut8Args& args) { return args.elements >= 64 ? Refusal::kNone : Refusal::kTooSmall; }

size_t scratch_bytes(const Lut8Args&) { return 0; }

uint32_t work_items(const Lut8Args& args) { return num_chunks(args.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const Lut8Args& args, uint32_t begin, uint32_t end, void*) { lut8_bytes(args, begin, end); }
#endif

}  // QPLAN_SIMD_NAMESPACE(lut8)

}  // namespace qplan
